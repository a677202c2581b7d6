package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// meteredRig is a rig whose agents reach a scripted model through the endpoint that
// meters them, and whose clock can be moved.
type meteredRig struct {
	*rig
	model  *fakemodel.Server
	url    string
	ahead  atomic.Int64 // of the machine's clock
	mu     sync.Mutex
	slept  []time.Duration
	turns  atomic.Int64
	writes atomic.Int64 // tokens of an answer, if the call allows as many; 0: as the script says
}

// cheap is a model that has a price: 1 USD for a million tokens of input, 5 of
// output.
const cheap = "claude-haiku-4-5"

func onBothMetered(t *testing.T, script fakemodel.Script, test func(t *testing.T, p *meteredRig)) {
	t.Helper()
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newMeteredRig(t, url(t), script))
		})
	}
}

func newMeteredRig(t *testing.T, database string, script fakemodel.Script) *meteredRig {
	t.Helper()
	return newMeteredRigAt(t, database, script, nil)
}

// newMeteredRigAt is newMeteredRig by another clock; nil: the machine's.
func newMeteredRigAt(t *testing.T, database string, script fakemodel.Script, now func() time.Time) *meteredRig {
	t.Helper()
	script.Bare = true
	p := &meteredRig{model: fakemodel.New(script)}
	p.ahead.Store(int64(pastMidnight(time.Now())))
	server := httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(server.Close)
	p.url = server.URL
	if now == nil {
		now = p.now
	}
	p.rig = newRigAt(t, database, now)
	p.deps.Sleep = p.sleep
	p.deps.Environ = append(os.Environ(), "ANTHROPIC_API_KEY=sk-false-0123456789")
	p.deps.Drivers["caller"] = caller{p}
	p.deps.Drivers["lasting"] = lasting{caller{p}}
	p.engine = engine.New(p.deps)
	return p
}

// pastMidnight is by how much a test's clock is ahead so that no window ends in
// the middle of the test.
func pastMidnight(now time.Time) time.Duration {
	const longest = 10 * time.Minute
	if left := loop.WindowDay.End(now).Sub(now); left < longest {
		return left + time.Second
	}
	return 0
}

// answer is the model, which obeys max_tokens.
func (p *meteredRig) answer(w http.ResponseWriter, r *http.Request) {
	if p.writes.Load() == 0 {
		p.model.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	var call struct {
		Most int64 `json:"max_tokens"`
	}
	if err = errors.Join(err, json.Unmarshal(body, &call)); err != nil {
		p.t.Error(err)
	}
	n := min(call.Most, p.writes.Load())
	name := fmt.Sprint("most", n)
	p.model.Set(name, fakemodel.Script{Bare: true, Turns: []fakemodel.Turn{{Say: "so it is", Usage: usage(10, n)}}})
	r.URL.Path, r.Body = "/s/"+name+r.URL.Path, io.NopCloser(bytes.NewReader(body))
	p.model.ServeHTTP(w, r)
}

func (p *meteredRig) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

func (p *meteredRig) later(d time.Duration) { p.ahead.Add(int64(d)) }

// sleep takes no time.
func (p *meteredRig) sleep(_ context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slept = append(p.slept, d)
	p.later(d)
	return nil
}

// caller is a driver whose program is metered.
type caller struct{ p *meteredRig }

func (caller) Profile() agent.Profile {
	return agent.Profile{Name: "caller", Program: "sh", Providers: []string{"anthropic"}}
}

func (c caller) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	c.p.turns.Add(1)
	return c.p.agent(ctx, r)
}

// lasting is a driver that can go on with a conversation.
type lasting struct{ caller }

func (lasting) Profile() agent.Profile {
	return agent.Profile{Name: "lasting", Program: "sh", Home: true, Providers: []string{"anthropic"}, Sessions: []string{".chats"}}
}

// calls is a loop whose agent asks the model.
func (p *meteredRig) calls(name string, more func(*loop.Definition)) engine.Target {
	d := loop.Definition{
		Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, Agent: "caller", Model: cheap, BaseURL: p.url,
	}
	if more != nil {
		more(&d)
	}
	return p.target(name, boardLike{nil, []string{"the task"}}, d)
}

// ask makes one call of the model, as a program does, and returns the status
// and the answer.
func ask(ctx context.Context, t *testing.T, r agent.Request, most int) (int, string) {
	t.Helper()
	return askModel(ctx, t, r, most, r.Model, false)
}

func askModel(ctx context.Context, t *testing.T, r agent.Request, most int, model string, stream bool) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model": model, "max_tokens": most, "stream": stream, "messages": []any{map[string]string{"role": "user", "content": "go on"}},
	})
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Models.URL+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, string(text) // It was cut.
	}
	return resp.StatusCode, string(text)
}

// ended is a turn as a metered program ends it, which says nothing of tokens.
func ended(failure *loop.Failure) (agent.Result, error) {
	res := agent.Result{Ended: proc.Exited, Took: time.Millisecond, Claims: true, Failure: failure}
	if failure != nil {
		res.Exit = 1
	}
	return res, nil
}

// spends is a turn that asks until the model is refused, or at most so often,
// and then changes a file.
func (p *meteredRig) spends(times, most int) func(context.Context, agent.Request) (agent.Result, error) {
	return func(ctx context.Context, r agent.Request) (agent.Result, error) {
		for range times {
			if status, text := ask(ctx, p.t, r, most); status != http.StatusOK {
				return ended(&loop.Failure{Class: loop.FailureAuth, Status: status, Text: text})
			}
		}
		gittest.WriteFile(p.t, r.Dir+"/src/"+variable(r, "PAWL_LOOP")+".txt", "spent\n")
		return ended(nil)
	}
}

// budget caps what a scope may spend in a day.
func (p *meteredRig) budget(scope loop.BudgetScope, window loop.BudgetWindow, most loop.Amount) {
	p.t.Helper()
	err := p.store.Update(p.t.Context(), func(tx *store.Tx) error {
		return tx.SetBudget(p.t.Context(), loop.Budget{Scope: scope, Window: window, Cap: most, By: "ada"})
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

var all = loop.BudgetScope{Kind: loop.BudgetAll}

func (p *meteredRig) standing(scope loop.BudgetScope) (s loop.Standing) {
	p.t.Helper()
	p.view(func(r *store.Reader) error {
		list, err := r.Standings(p.t.Context(), []loop.BudgetScope{scope}, nil, p.now())
		if len(list) > 0 {
			s = list[0]
		}
		return err
	})
	return s
}

func (p *meteredRig) holds() (list []loop.Hold) {
	p.t.Helper()
	p.view(func(r *store.Reader) (err error) {
		list, err = r.Holds(p.t.Context())
		return err
	})
	return list
}

// turnRows are the turns of a run.
func (r *rig) turnRows(id string) (rows []loop.Turn) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) {
		rows, err = rd.Turns(r.t.Context(), id)
		return err
	})
	return rows
}

// told is everything that the events of a run say.
func (r *rig) told(id string) string {
	r.t.Helper()
	var b strings.Builder
	r.view(func(rd *store.Reader) error {
		events, err := rd.Events(r.t.Context(), id, 0, 1<<20)
		for _, e := range events {
			b.WriteString(e.Kind + ": " + e.Text + "\n")
		}
		return err
	})
	return b.String()
}

func usage(input, output int64) *fakemodel.Usage {
	return &fakemodel.Usage{Input: input, Output: output}
}
