package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// What a child that carries one call out is told: the name of a verb, its request as JSON, and
// the key.
const (
	verbEnv = "PAWL_TEST_VERB"
	sentEnv = "PAWL_TEST_SENT"
	keyEnv  = "PAWL_TEST_KEY"
)

// carryOut is a child that carries one call out.
func carryOut(ctx context.Context, open func() (*compose.Parts, error)) int {
	d, err := open()
	if err != nil {
		return fail(err)
	}
	at := slices.IndexFunc(api.Verbs(), func(v verb.Info) bool { return v.Name == os.Getenv(verbEnv) })
	v := api.Verbs()[at]
	in := reflect.New(reflect.TypeOf(v.Request()))
	if err := json.Unmarshal([]byte(os.Getenv(sentEnv)), in.Interface()); err != nil {
		return fail(err)
	}
	if _, err := keyed(d, ".", os.Getenv(keyEnv)).ask(ctx, v, in.Elem().Interface()); err != nil {
		return fail(err)
	}
	return say(told{}, d)
}

// keyedCaller makes calls with a key.
type keyedCaller struct{ verb.Local }

func keyed(d *compose.Parts, dir, key string) keyedCaller {
	return keyedCaller{verb.Local{Request: verb.Call{
		Open:  func(ctx context.Context, register bool) (verb.Workspace, error) { return d.Open(ctx, dir, register) },
		Store: d.StoreVerbs(), By: ann, Say: func(verb.Progress) {}, Key: key,
	}}}
}

// ask returns the answer of a verb as JSON.
func (c keyedCaller) ask(ctx context.Context, v verb.Info, in any) (string, error) {
	var out any
	if err := c.Call(ctx, v, in, &out); err != nil {
		return "", err
	}
	body, err := json.Marshal(out)
	return string(body), err
}

// calls are a workspace in which calls with keys are made, by two compositions that share one
// store as two processes do.
type calls struct {
	*always
	other       *compose.Parts
	board, task string
}

func startCalls(t *testing.T, s *fixture) *calls {
	t.Helper()
	c := &calls{always: startDaemon(t, s, `printf "{\"outcome\":\"quiet\"}" > "$PAWL_REPORT"`)}
	second := &always{fixture: s}
	second.opens()
	c.other = second.parts
	ctx, in := t.Context(), c.callIn(s.root)
	_, err := api.CreateAgent.Call(ctx, in, api.AgentChange{Agent: "fixer", Change: roster.Change{Driver: new("command"), Command: new("true")}})
	must(t, err)
	b, err := boards.CreateBoard.Call(ctx, in, boards.BoardCreation{Name: "Work", BoardChange: boards.BoardChange{Scope: []string{"src/**"}}})
	must(t, err)
	c.board = b.ID
	_, err = boards.CreateMember.Call(ctx, in, boards.MemberChange{Agent: "ada", AgentChange: boards.AgentChange{Boards: []string{b.ID}}})
	must(t, err)
	task, err := boards.CreateTask.Call(ctx, in, boards.CreateTaskRequest{Board: b.ID, TaskChange: boards.TaskChange{Title: new("first")}})
	must(t, err)
	c.task = task.ID
	return c
}

// made is a call that makes something new.
type made struct {
	what string
	verb verb.Info
	in   any
}

// making are calls that make something new. Those of another round make something else.
func (c *calls) making(round string) []made {
	c.t.Helper()
	writeFile(c.t, filepath.Join(c.root, ".loops", "later-"+round, "loop.config.yaml"), strings.Replace(readFile(c.t, filepath.Join(c.root, ".loops/fix/loop.config.yaml")), "name: fix", "name: later-"+round, 1))
	scope := boards.BoardChange{Scope: []string{"src/**"}}
	return []made{
		{"specs", specs.CreateSpec.Info, specs.CreateRequest{Fill: specs.Fill{Goal: "a.txt says two.", Agent: "fixer"}}},
		{"generated specs", specs.GenerateSpec.Info, specs.GenerateRequest{Task: "a.txt says four.", Fill: specs.Fill{Agent: "fixer", Test: "true"}, Create: true}},
		{"boards", boards.CreateBoard.Info, boards.BoardCreation{Name: "Board " + round, BoardChange: scope}},
		{"tasks", boards.CreateTask.Info, boards.CreateTaskRequest{Board: c.board, TaskChange: boards.TaskChange{Title: new("task " + round)}}},
		{"comments", boards.CommentTask.Info, boards.CommentRequest{Task: c.task, Text: "looks fine " + round}},
		{"messages", boards.SendMessage.Info, boards.SendRequest{To: "ada", Kind: "question", Content: "what is new in " + round + "?"}},
		{"resources", boards.CreateResource.Info, boards.CreateResourceRequest{Board: c.board, ResourceChange: boards.ResourceChange{Title: new("r " + round), Content: new("c")}}},
		{"members", boards.CreateMember.Info, boards.MemberChange{Agent: "bea-" + round, AgentChange: boards.AgentChange{Boards: []string{c.board}}}},
		{"memories", api.AddMemory.Info, memories.Addition{Text: "tests need a database " + round}},
		{"agents", api.CreateAgent.Info, api.AgentChange{Agent: "another-" + round, Change: roster.Change{Driver: new("command"), Command: new("true")}}},
		{"channels", api.AddChannel.Info, loop.Channel{Name: "hook-" + round, Kind: loop.ChannelNtfy, Target: "https://127.0.0.1/" + round}},
		{"runs", api.StartRun.Info, runs.StartRequest{Loop: "fix"}},
		{"queued runs", api.FireRun.Info, runs.StartRequest{Loop: "later-" + round}},
	}
}

func TestOfEqualCallsAtOnceOneIsCarriedOut(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		c := startCalls(t, s)
		for _, call := range c.making("once") {
			what, before := call.what, c.made()
			seen := new(fault.Plan)
			ctx := fault.With(t.Context(), seen)
			answers, failed := make([]string, 20), make([]error, 20)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					parts := c.parts
					if i%2 == 1 {
						parts = c.other
					}
					answers[i], failed[i] = keyed(parts, s.root, what).ask(ctx, call.verb, call.in)
				})
			}
			all.Wait()
			if begun := slices.DeleteFunc(seen.Hits(), func(point string) bool { return point != "api.call.claim.after" }); len(begun) != 1 {
				t.Errorf("%s: %d calls were begun, want 1", what, len(begun))
			}
			if err := errors.Join(failed...); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if slices.Sort(answers); answers[0] != answers[len(answers)-1] || answers[0] == "" {
				t.Errorf("%s: calls are answered\n%s\nand\n%s", what, answers[0], answers[len(answers)-1])
			}
			c.wantOneMore(what, before)
		}
	})
}

// made are the keys of what verbs have made, by what it is.
func (c *calls) made() map[string]int {
	c.t.Helper()
	ctx, in, made := c.t.Context(), c.callIn(c.root), map[string]int{}
	const many = 1000
	all, err := specs.ListSpecs.Call(ctx, in, specs.Query{Limit: many})
	must(c.t, err)
	made["specs"] = len(all)
	tasks, err := boards.ListTasks.Call(ctx, in, boards.TaskQuery{Limit: many})
	must(c.t, err)
	made["tasks"] = len(tasks)
	messages, err := boards.ListMessages.Call(ctx, in, boards.MessageQuery{Limit: many})
	must(c.t, err)
	made["messages"] = len(messages)
	learned, err := api.ListMemories.Call(ctx, in, memories.Query{Limit: many})
	must(c.t, err)
	made["memories"] = len(learned)
	agents, err := api.ListAgents.Call(ctx, in, verb.None{})
	must(c.t, err)
	made["agents"] = len(agents)
	list, err := api.ListRuns.Call(ctx, in, api.RunQuery{Limit: many})
	must(c.t, err)
	made["runs"] = len(list)
	known, err := boards.ListBoards.Call(ctx, in, verb.None{})
	must(c.t, err)
	made["boards"] = len(known)
	task, err := boards.ShowTask.Call(ctx, in, boards.TaskRef{Task: c.task})
	must(c.t, err)
	made["comments"] = len(task.Comments)
	resources, err := boards.ListResources.Call(ctx, in, boards.ResourceQuery{Limit: many})
	must(c.t, err)
	made["resources"] = len(resources)
	members, err := boards.ListMembers.Call(ctx, in, verb.None{})
	must(c.t, err)
	made["members"] = len(members)
	channels, err := api.ListChannels.Call(ctx, in, verb.None{})
	must(c.t, err)
	made["channels"] = len(channels)
	return made
}

// wantOneMore wants that one thing was made since before.
func (c *calls) wantOneMore(what string, before map[string]int) {
	c.t.Helper()
	more := 0
	for kind, n := range c.made() {
		more += n - before[kind]
	}
	if more != 1 {
		c.t.Errorf("%s: %d were made, want 1", what, more)
	}
}

// TestACallWhoseProcessDiesIsCarriedOutOnce kills the process of a call when it has claimed the
// key, and when it has done what it is for. The same call, five times at once, then has one
// answer, and was carried out once.
func TestACallWhoseProcessDiesIsCarriedOutOnce(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		c := startCalls(t, s)
		for round, at := range map[string]string{"claimed": "api.call.claim.after:1", "done": "api.call.answer.before:1"} {
			for _, call := range c.making(round) {
				what, before := call.what+" "+round, c.made()
				body, err := json.Marshal(call.in)
				must(t, err)
				if died := c.pawl("call", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at, verbEnv+"="+call.verb.Name, sentEnv+"="+string(body), keyEnv+"="+what); died != nil {
					t.Fatalf("%s: the process did not die at %s", what, at)
				}
				answers := map[string]bool{}
				var mu sync.Mutex
				var all sync.WaitGroup
				for range 5 {
					all.Go(func() {
						answer, err := keyed(c.parts, c.root, what).ask(t.Context(), call.verb, call.in)
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							t.Errorf("%s after %s: %v", what, at, err)
						}
						answers[answer] = true
					})
				}
				all.Wait()
				if len(answers) != 1 {
					t.Errorf("%s after %s has %d answers", what, at, len(answers))
				}
				c.wantOneMore(what, before)
			}
		}
	})
}

// TestACallThatNobodyKnowsTheEndOfIsNotMadeAgain kills the process of a call that says yes to a
// question: no row says by which call it was answered.
func TestACallThatNobodyKnowsTheEndOfIsNotMadeAgain(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		c := startCalls(t, s)
		in := api.LoopRef{Loop: "fix"}
		body, err := json.Marshal(in)
		must(t, err)
		for _, at := range []string{"api.call.claim.after:1", "api.call.answer.before:1"} {
			if died := c.pawl("call", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at, verbEnv+"="+api.ForgetLoop.Name, sentEnv+"="+string(body), keyEnv+"="+at); died != nil {
				t.Fatalf("the process did not die at %s", at)
			}
			for range 2 {
				_, err := keyed(c.parts, c.root, at).ask(t.Context(), api.ForgetLoop.Info, in)
				if err == nil || verb.Explain(err).Exit != loop.ExitHeld || !strings.Contains(verb.Explain(err).Fix, "use a new key") {
					t.Errorf("after %s it is answered %v, want that nobody knows", at, err)
				}
			}
		}
	})
}

// TestAKeyIsFreeAgainAfterACallThatDidNothing makes a call that fails and then one with the same
// key and other arguments.
func TestAKeyIsFreeAgainAfterACallThatDidNothing(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		c := startCalls(t, s)
		k := keyed(c.parts, c.root, "k")
		if _, err := k.ask(t.Context(), boards.CreateTask.Info, boards.CreateTaskRequest{Board: "none", TaskChange: boards.TaskChange{Title: new("t")}}); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("a task of no board: %v", err)
		}
		task := boards.CreateTaskRequest{Board: c.board, TaskChange: boards.TaskChange{Title: new("t")}}
		first, err := k.ask(t.Context(), boards.CreateTask.Info, task)
		must(t, err)
		if again, err := k.ask(t.Context(), boards.CreateTask.Info, task); err != nil || again != first {
			t.Errorf("the same call again: %v\n%s\nwant\n%s", err, again, first)
		}
		task.Title = new("another")
		if _, err := k.ask(t.Context(), boards.CreateTask.Info, task); err == nil || verb.Explain(err).Exit != loop.ExitUsage {
			t.Errorf("another call with the key: %v, want that it is refused", err)
		}
	})
}

// TestACallThatIsOvertakenHasTheAnswerOfTheOther lets the claim of a call lapse, as that of a process
// that was suspended, while an equal call is made.
func TestACallThatIsOvertakenHasTheAnswerOfTheOther(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		c := startCalls(t, s)
		for _, call := range c.making("overtaken") {
			before, other := c.made(), ""
			ctx := fault.With(t.Context(), new(fault.Plan).Do("api.call.claim.after", 1, func(context.Context) (err error) {
				c.sql(`UPDATE keyed_calls SET lease_until_ms = 1`)
				other, err = keyed(c.other, c.root, call.what).ask(t.Context(), call.verb, call.in)
				return err
			}))
			got, err := keyed(c.parts, c.root, call.what).ask(ctx, call.verb, call.in)
			if err != nil || got != other || got == "" {
				t.Errorf("%s: %v\n%s\nwant\n%s", call.what, err, got, other)
			}
			c.wantOneMore(call.what, before)
		}
	})
}
