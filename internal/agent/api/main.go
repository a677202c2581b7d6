package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/clock"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
)

// Main is the agent: it reads its task from stdin, works in the folder and with
// the environment of the process, and tells on stdout what it does. It returns
// the exit status: 0 for every turn that it told the end of, however it went,
// and 2 if there was no task that can be read.
func Main(ctx context.Context, stdin io.Reader, stdout io.Writer) int {
	w := &wire{in: bufio.NewReader(stdin), out: json.NewEncoder(stdout)}
	var t task
	if err := w.read(&t); err != nil {
		fmt.Fprintf(os.Stderr, "read the task: %v\n", err)
		return loop.ExitUsage
	}
	if f := work(ctx, t, w); f != nil {
		w.tell(line{Kind: agent.EventError, Failure: f})
	}
	w.tell(line{Kind: agent.EventEnd})
	return loop.ExitOK
}

// work does the task. Its failure is nil if it was done as far as the model can
// say.
func work(ctx context.Context, t task, w *wire) *loop.Failure {
	if err := t.check(); err != nil {
		return &loop.Failure{Class: loop.FailureRequest, Text: err.Error()}
	}
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return &loop.Failure{Class: loop.FailureCrash, Text: fmt.Sprintf("open the tree: %v", err)}
	}
	defer func() { _ = root.Close() }()
	p := &place{root: root, dir: t.Dir, report: os.Getenv("PAWL_REPORT"), env: os.Environ(), leave: w.ask}
	m := newModel(t, w, clock.System{})
	talk := &talk{
		model: m, place: p, wire: w, most: cmp.Or(t.Turns, mostTurns),
		c: conversation{model: t.Model, effort: t.Effort, system: system, tools: p.tools(), messages: []message{{text: t.Prompt}}},
	}
	return talk.run(ctx)
}

// wire is how the agent talks with its driver.
type wire struct {
	in  *bufio.Reader
	out *json.Encoder
}

// read reads a line of JSON.
func (w *wire) read(v any) error {
	text, err := w.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// tell prints a line. If the driver is gone, so is the agent in a moment.
func (w *wire) tell(l line) { _ = w.out.Encode(l) }

// ask waits for leave. Without a driver there is none.
func (w *wire) ask(id string, c policy.Call) policy.Answer {
	w.tell(line{Kind: kindAsk, ID: id, Tool: c.Tool, Call: &c})
	for {
		var a answer
		if err := w.read(&a); err != nil {
			return policy.Answer{Rule: "no_answer", Words: "nobody is there to allow it"}
		}
		if a.ID == id {
			return a.Answer
		}
	}
}
