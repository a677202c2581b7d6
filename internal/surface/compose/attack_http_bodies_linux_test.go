package compose_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/client"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// A bomb is JSON that is small to send and large to read.
type bomb struct{ name, text string }

func bombs() []bomb {
	nest := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	return []bomb{
		{"lists, 100,000 deep", nest("[", "]", 100_000)},
		{"objects, 100,000 deep", nest(`{"a":`, "}", 100_000)},
		{"lists that never end", strings.Repeat("[", 900_000)},
		{"a number of a million digits", `{"loop":` + strings.Repeat("9", 900_000) + "}"},
		{"a fraction of a million digits", `{"loop":0.` + strings.Repeat("9", 900_000) + "}"},
		{"a number beyond all", `{"loop":1e999999999}`},
		{"a list of half a million", `{"loop":[1` + strings.Repeat(",1", 450_000) + "]}"},
		{"a hundred thousand names", `{"a":1` + strings.Repeat(`,"a":1`, 99_999) + "}"},
		{"a name twice", `{"loop":"fix","loop":"hook"}`},
		{"what is not UTF-8", "{\"loop\":\"\xff\xfe\"}"},
		{"half of a character", `{"loop":"\ud800"}`},
		{"a NUL", `{"loop":"a\u0000b"}`},
		{"rubble", strings.Repeat("{", 10) + "\x00\x01"},
	}
}

// It measures the heap of the process: no other test may work beside it.
func TestAttack131BombsOfJSONAreRefusedOverHTTP(t *testing.T) {
	s := startSurfaces(t)
	s.begins()
	s.joins()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i, b := range bombs() {
		verb := s.request(http.MethodPost, "http://pawl"+api.ShowLoop.Path()+"?workspace="+s.root, b.text)
		if status, said, _ := s.send(verb); status != http.StatusBadRequest || len(said) > 2000 {
			t.Errorf("the socket answers %s with %d %.300s", b.name, status, said)
		}
		agent := s.agent(b.text)
		if status, said, _ := s.send(agent); status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge || len(said) > 2000 {
			t.Errorf("MCP answers %s with %d %.300s", b.name, status, said)
		}
		call := s.agent(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"loop_get","arguments":` + b.text + `}}`)
		if status, said, _ := s.send(call); len(said) > 5000 || status == http.StatusOK && !strings.Contains(said, `"error"`) && !strings.Contains(said, `"isError":true`) {
			t.Errorf("a call with %s is answered %d %.300s", b.name, status, said)
		}
		for verb, document := range map[string]string{ // A document is JSON in a text.
			specs.CreateSpec.Path(): strings.Replace(b.text, `"loop"`, `"goal"`, 1), boards.PlanBoardImport.Path(): strings.Replace(b.text, `"loop"`, `"tasks"`, 1),
		} {
			r := s.request(http.MethodPost, "http://pawl"+verb+"?workspace="+s.root, quoteJSON(t, map[string]string{"document": document}))
			taken := func(status int, said string) bool {
				return status == http.StatusOK && !strings.Contains(said, `"added":0`)
			}
			if status, said, _ := s.send(r); taken(status, said) || status >= 500 || len(said) > 300_000 {
				t.Errorf("%s answers %s with %d, %d bytes, %.300s", verb, b.name, status, len(said), said)
			}
		}
		hook := s.request(http.MethodPost, s.hooks, b.text) // A body is text to pawl, and reads it as nothing else.
		maps.Copy(hook.Header, s.key.Sign(fmt.Sprint("m", i), s.parts.Now(), []byte(b.text)))
		if status, said, _ := s.send(hook); status != http.StatusAccepted {
			t.Errorf("a webhook answers %s with %d %s", b.name, status, said)
		}
	}
	for name, length := range map[string]int64{"without a length": -1, "of a length": 100 << 20, "of another length": 10 << 20} {
		for surface, r := range map[string]*http.Request{
			"the socket": s.request(http.MethodPost, "http://pawl"+api.ShowLoop.Path()+"?workspace="+s.root, "x"), "MCP": s.agent("x"), "a webhook": s.request(http.MethodPost, s.hooks, "x"),
		} {
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"loop":"`), io.LimitReader(letters{}, 100<<20))), length
			if status := s.sendLong(r); status != 0 && status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
				t.Errorf("%s answers 100 MB %s with %d", surface, name, status)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
		t.Errorf("%d MB stay in the heap", grown>>20)
	}
	s.until("each is kept in bounds", func(r *store.Reader) (bool, error) {
		loops, err := s.loopRows(r)
		if err != nil {
			return false, err
		}
		list, err := r.LoopEvents(t.Context(), loops["hook"].ID, 100)
		for _, e := range list {
			if len(e.Payload) > 64<<10 {
				t.Errorf("%d bytes of a delivery are kept", len(e.Payload))
			}
		}
		return len(list) == len(bombs()), err
	})
}

// letters never end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// sendLong is send for a request that nobody reads to its end. The status is 0 if the connection
// was closed before the answer was read.
func (s *surfaces) sendLong(r *http.Request) (status int) {
	s.t.Helper()
	resp, err := s.client(r).Do(r)
	if err != nil {
		return 0
	}
	s.checkHeaders(r, resp)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// It is attack 110 as well: of another workspace there is no such approval.
func TestAttack112OfYesAndNoAtOnceOverTheSocketOneWins(t *testing.T) {
	t.Parallel()
	d := startServing(t, newFixture(t, ""), "")
	writeFile(t, filepath.Join(d.root, ".loops/fix/loop.config.yaml"), fixConfig) // The daemon's own would void the proposal.
	proposed(t, d.fixture)
	c := client.New(d.socket)
	defer c.Close()
	c.Dir, c.By = d.root, loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "api"}
	list, err := api.ListApprovals.Call(t.Context(), c, api.ApprovalQuery{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d approvals wait: %v", len(list), err)
	}
	other := &fixture{t: t, root: t.TempDir(), home: d.home}
	other.git("init", "-q", "-b", "main")
	other.git("commit", "-q", "--allow-empty", "-m", "first")
	stranger := c.As(other.root, c.By, "", c.Say)
	answers := map[string]func(verb.Caller) error{
		"yes": func(to verb.Caller) error {
			_, err := api.Approve.Call(t.Context(), to, api.AnswerRequest{Approval: list[0].ID})
			return err
		},
		"no": func(to verb.Caller) error {
			_, err := api.Reject.Call(t.Context(), to, api.AnswerRequest{Approval: list[0].ID})
			return err
		},
	}
	for answer, give := range answers {
		if err := give(stranger); err == nil || verb.Explain(err).Exit != loop.ExitNotFound {
			t.Errorf("%s in another workspace is answered %v", answer, err)
		}
	}
	said := make(chan error, 2)
	for _, give := range answers {
		go func() { said <- give(c) }()
	}
	if one, two := <-said, <-said; (one == nil) == (two == nil) {
		t.Errorf("both are answered: %v and %v, want one to win", one, two)
	}
	left, err := api.ListApprovals.Call(t.Context(), c, api.ApprovalQuery{})
	if err != nil || len(left) != 0 {
		t.Errorf("%d approvals wait: %v", len(left), err)
	}
}

// The cadences that come over HTTP are those of agents of boards. Those of files, schedule judges.
func TestAttack130AnAgentOfBoardsIsNotWokenAlwaysOrNever(t *testing.T) {
	t.Parallel()
	s := startServing(t, newFixture(t, ""), "")
	in := "?workspace=" + s.root
	if status, said := s.ask(http.MethodPost, boards.CreateBoard.Path()+in, `{"name":"door"}`); status != http.StatusOK {
		t.Fatalf("a board is answered %d %s", status, said)
	}
	for i, interval := range []string{"0s", "1ns", "1s", "-1m", "@every 0s", "* * * * * *", "0 0 31 2 *", "1000000d", "99999999999999999999m", strings.Repeat("1", 100_000) + "m"} {
		body := quoteJSON(t, map[string]any{"agent": fmt.Sprint("a", i), "interval": interval, "boards": []string{"door"}})
		if status, said := s.ask(http.MethodPost, boards.CreateMember.Path()+in, body); status < 400 || status >= 500 || !strings.Contains(said, "nterval") || len(said) > 2000 {
			t.Errorf("an agent with the interval %.30q is answered %d %.500s", interval, status, said)
		}
	}
	if status, said := s.ask(http.MethodPost, boards.CreateMember.Path()+in, `{"agent":"fine","interval":"20m","boards":["door"]}`); status != http.StatusOK {
		t.Errorf("an agent with a good interval is answered %d %s", status, said)
	}
}
