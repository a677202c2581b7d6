package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Main is the agent: it reads its task from stdin, works in the directory and
// with the environment of the process, and reports on stdout. It returns the exit
// status: 0 for every turn whose end it reported, even a failed one, and 2 if it
// got no readable task.
func Main(ctx context.Context, stdin io.Reader, stdout io.Writer) int {
	w := &wire{in: bufio.NewReader(stdin), out: json.NewEncoder(stdout)}
	var t task
	if err := w.readLine(&t); err != nil {
		fmt.Fprintf(os.Stderr, "read the task: %v\n", err)
		return loop.ExitUsage
	}
	if f := doTask(ctx, t, w); f != nil {
		w.printLine(line{Kind: agent.EventError, Failure: f})
	}
	w.printLine(line{Kind: agent.EventEnd})
	return loop.ExitOK
}

// doTask does the task. It returns nil if the model considers it done.
func doTask(ctx context.Context, t task, w *wire) *loop.Failure {
	if err := t.validate(); err != nil {
		return &loop.Failure{Class: loop.FailureRequest, Text: err.Error()}
	}
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return &loop.Failure{Class: loop.FailureCrash, Text: fmt.Sprintf("open the tree: %v", err)}
	}
	defer func() { _ = root.Close() }()
	p := &place{root: root, dir: t.Dir, report: os.Getenv("PAWL_REPORT"), env: os.Environ(), permit: w.askPermission}
	m := newModel(t, w, clock.System{})
	talk := &talk{
		model: m, place: p, wire: w, maxCalls: cmp.Or(t.Turns, maxTurns),
		c: conversation{model: t.Model, effort: t.Effort, system: systemPrompt, tools: p.availableTools(), messages: []message{{text: t.Prompt}}},
	}
	return talk.runTurn(ctx)
}

// wire is the agent's connection to its driver.
type wire struct {
	in  *bufio.Reader
	out *json.Encoder
}

// readLine reads a line of JSON.
func (w *wire) readLine(v any) error {
	text, err := w.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// printLine prints a line. Errors are ignored, since without its driver the agent
// is about to end.
func (w *wire) printLine(l line) { _ = w.out.Encode(l) }

// askPermission waits for permission. Without a driver nobody gives it.
func (w *wire) askPermission(id string, c policy.Call) policy.Answer {
	w.printLine(line{Kind: kindAsk, ID: id, Tool: c.Tool, Call: &c})
	for {
		var a answer
		if err := w.readLine(&a); err != nil {
			return policy.Answer{Rule: "no_answer", Words: "nobody is there to allow it"}
		}
		if a.ID == id {
			return a.Answer
		}
	}
}
