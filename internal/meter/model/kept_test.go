package model

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/loop"
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
	first := tokens(int64(len(conversation(0))))
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
			r := start(t, Anthropic, func(w http.ResponseWriter, _ *http.Request) {
				usage := fmt.Sprintf(`{"input_tokens":%d,"output_tokens":50}`, first/2)
				if c.cached && turns == 0 {
					usage = fmt.Sprintf(`{"input_tokens":10,"cache_creation_input_tokens":%d,"output_tokens":50}`, first/2)
				} else if c.cached {
					usage = fmt.Sprintf(`{"input_tokens":10,"cache_read_input_tokens":%d,"cache_creation_input_tokens":150,"output_tokens":50}`, first/2)
				}
				write(w, `{"model":"m","content":[{"text":"hello"}],"usage":`+usage+`}`)
			}, func(e *Endpoint) {
				e.Clock = now
				e.Account = &Account{Grant: loop.Amount{Tokens: first + first/2}}
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

func TestWhatTwoRequestsHaveInCommonIsNoMoreThanEitherHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) []byte {
			return []byte(strings.Repeat(rapid.StringMatching(`[ab]`).Draw(t, name), rapid.IntRange(0, 9000).Draw(t, name+" times")))
		}
		head, tail := text("head"), text("tail")
		a := append(append(append([]byte{}, head...), text("first")...), tail...)
		b := append(append(append([]byte{}, head...), text("second")...), tail...)
		x, y := outlineOf(a), outlineOf(b)
		if got := x.common(y); got != y.common(x) || got > int64(min(len(a), len(b))) {
			t.Fatalf("%d and %d bytes have %d and %d in common", len(a), len(b), got, y.common(x))
		}
		if got := x.common(x); got != int64(len(a)/blockSize*blockSize) {
			t.Fatalf("%d bytes have %d in common with themselves", len(a), got)
		}
	})
}

func TestOnlyWholeBlocksAreRemembered(t *testing.T) {
	for size, want := range map[int]int{0: 0, blockSize - 1: 0, blockSize: 1, 2*blockSize - 1: 1, 2 * blockSize: 2} {
		if o := outlineOf(make([]byte, size)); len(o.front) != want || len(o.back) != want {
			t.Errorf("%d bytes have %d and %d blocks, want %d", size, len(o.front), len(o.back), want)
		}
	}
}

func TestWhatAProviderKeepsIsExpectedForFiveMinutes(t *testing.T) {
	a, o := &Account{}, outlineOf([]byte(strings.Repeat("x", 30<<10)))
	a.remember("m", o, loop.Usage{CacheRead: 100, Source: loop.UsageMetered}, noon)
	for after, want := range map[time.Duration]bool{keptFor - time.Nanosecond: true, keptFor: false} {
		if got := a.kept("m", o, noon.Add(after)); (got > 0) != want {
			t.Errorf("after %s, %d tokens are kept", after, got)
		}
	}
	if got := a.kept("other", o, noon); got != 0 {
		t.Errorf("%d tokens are kept by a model that was not asked", got)
	}
}
