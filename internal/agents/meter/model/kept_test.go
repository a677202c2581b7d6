package model

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// conversation is a request of which everything but the last words was said before.
func conversation(turns int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"`)
	for i := range 60 * (10 + turns) {
		fmt.Fprintf(&b, "word %d ", i)
	}
	b.WriteString(`"}],"system":"` + strings.Repeat("rule ", 2000) + `"}`)
	return b.String()
}

func TestAConversationThatIsCachedIsNotFundedAnewEachTime(t *testing.T) {
	first := modelapi.EstimateTokens(int64(len(conversation(0))))
	for name, c := range map[string]struct {
		cached      bool
		pause       time.Duration
		least, most int
	}{
		"cached":                     {true, time.Minute, 8, 20},
		"cached, and then forgotten": {true, time.Hour, 1, 1},
		"not cached":                 {false, time.Minute, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			now := &stepClock{at: noon}
			turns := 0
			r := start(t, modelapi.Anthropic, func(w http.ResponseWriter, _ *http.Request) {
				usage := fmt.Sprintf(`{"input_tokens":%d,"output_tokens":50}`, first/2)
				if c.cached && turns == 0 {
					usage = fmt.Sprintf(`{"input_tokens":10,"cache_creation_input_tokens":%d,"output_tokens":50}`, first/2)
				} else if c.cached {
					usage = fmt.Sprintf(`{"input_tokens":10,"cache_read_input_tokens":%d,"cache_creation_input_tokens":150,"output_tokens":50}`, first/2)
				}
				write(w, `{"model":"m","content":[{"text":"hello"}],"usage":`+usage+`}`)
			}, func(e *Endpoint) {
				e.Clock = now
				e.Account = &spend.Account{Grant: loop.Amount{Tokens: first + first/2}}
			})
			for turns < 20 && r.post("/v1/messages", conversation(turns)).status == http.StatusOK {
				turns++
				now.at = now.at.Add(c.pause)
			}
			if turns < c.least || turns > c.most {
				t.Errorf("%d calls were funded, %v", turns, r.Account.Cause())
			}
			if used, grant := r.Account.Used().Tokens, r.Account.Grant.Tokens; used > grant {
				t.Errorf("used %d of %d", used, grant)
			}
		})
	}
}

type stepClock struct{ at time.Time }

func (c *stepClock) Now() time.Time { return c.at }
