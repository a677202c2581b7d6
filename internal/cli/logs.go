package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
)

type logsOptions struct {
	run        string
	follow     bool
	tail       int // -1: everything
	since      time.Duration
	phase      string
	grep       string
	timestamps bool
	prompts    bool
}

func (a *app) cmdLogs() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use: "logs RUN", Short: "Print what happened in a run, and go on while it runs", Args: exactly(1),
		Long: `Print the events of a run: phases, notes, gates and what agent and gates printed. With -f the backlog
comes first, then whatever happens until the run has ended.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`,
		ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			view, err := o.view(a)
			if err != nil {
				return err
			}
			return a.reading(cmd.Context(), func(s *compose.Verbs) error { return a.logs(cmd.Context(), s, o, view) })
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the run has ended")
	f.IntVar(&o.tail, "tail", -1, "only the last `n` lines of the backlog")
	f.DurationVar(&o.since, "since", 0, "only what is younger than this, like 10m")
	f.StringVar(&o.phase, "phase", "", "only this `phase`: "+phaseNames())
	f.StringVar(&o.grep, "grep", "", "only lines that match this regular `expression`")
	f.BoolVar(&o.timestamps, "timestamps", false, "full dates and times")
	f.BoolVar(&o.prompts, "prompts", false, "the prompts in full")
	return cmd
}

func phaseNames() string {
	names := make([]string, 0, len(loop.Phases))
	for _, p := range loop.Phases {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// logView turns events into lines, and leaves out what is not asked for.
type logView struct {
	json    bool
	phase   loop.Phase
	after   time.Time
	grep    *regexp.Regexp
	stamp   string
	prompts bool
}

func (o logsOptions) view(a *app) (logView, error) {
	v := logView{json: a.json, phase: loop.Phase(o.phase), stamp: time.TimeOnly, prompts: o.prompts}
	if o.phase != "" && !slices.Contains(loop.Phases, v.phase) {
		return v, &loop.Fault{Exit: loop.ExitUsage, What: "there is no phase " + quote(o.phase), Fix: "use one of: " + phaseNames()}
	}
	if o.tail < -1 || o.since < 0 {
		return v, &loop.Fault{Exit: loop.ExitUsage, What: "--tail and --since count backwards from now", Fix: "write a number above 0"}
	}
	if o.jsonFilter(a) {
		return v, &loop.Fault{Exit: loop.ExitUsage, What: "--jq does not go with -f", Fix: "pipe it: pawl logs -f --json RUN | jq …"}
	}
	if o.timestamps {
		v.stamp = "2006-01-02T15:04:05.000Z07:00"
	}
	if o.since > 0 {
		v.after = a.Now().Add(-o.since)
	}
	var err error
	if o.grep != "" {
		v.grep, err = regexp.Compile(o.grep)
	}
	if err != nil {
		return v, &loop.Fault{Exit: loop.ExitUsage, What: "invalid --grep " + quote(o.grep), Why: err.Error(), Fix: "write a Go regular expression"}
	}
	return v, nil
}

func (o logsOptions) jsonFilter(a *app) bool { return o.follow && a.jq != "" }

// page is how many events are read at once.
const page = 1000

func (a *app) logs(ctx context.Context, s *compose.Verbs, o logsOptions, view logView) error {
	run, err := s.Run(ctx, o.run)
	if err != nil {
		return err
	}
	f := follower{s: s, run: run.ID}
	if f.seen, err = s.FeedHead(ctx); err != nil {
		return err
	}
	backlog, more, err := f.backlog(ctx, view)
	if err != nil {
		return err
	}
	if o.tail >= 0 && len(backlog) > o.tail {
		backlog = backlog[len(backlog)-o.tail:]
	}
	if a.json && !o.follow {
		return a.printJSON(listOf("pawl.events/v1", raw(backlog)))
	}
	if err := a.printLines(backlog); err != nil || !o.follow {
		return err
	}
	return a.follow(ctx, f, view, more)
}

// follow prints what comes until the run has ended. Whoever interrupts it has
// seen enough.
func (a *app) follow(ctx context.Context, f follower, view logView, more bool) error {
	for more {
		var lines []string
		var err error
		if f.seen, err = f.s.WaitForRun(ctx, f.run, f.seen); err != nil {
			return err
		}
		if lines, more, err = f.backlog(ctx, view); err != nil {
			return err
		}
		if err := a.printLines(lines); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printLines(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	return err
}

func raw(lines []string) []json.RawMessage {
	var list []json.RawMessage
	for _, l := range lines {
		list = append(list, json.RawMessage(l))
	}
	return list
}

// follower remembers how far the events of a run have been read.
type follower struct {
	s     *compose.Verbs
	run   string
	after int64       // number of the last event that was read
	seen  loop.Cursor // place in the store's feed: what it says of the run has been read
}

// backlog reads until there is nothing more at this moment. The second value
// says whether more may come.
func (f *follower) backlog(ctx context.Context, view logView) (lines []string, more bool, err error) {
	for {
		got, more, err := f.s.Events(ctx, f.run, f.after, page)
		if err != nil {
			return nil, false, err
		}
		for _, e := range got {
			lines, f.after = append(lines, view.lines(e)...), e.Seq
		}
		if len(got) < page {
			return lines, more, nil
		}
	}
}

// lines are the lines of one event that are wanted: one JSON object, or text.
func (v logView) lines(e loop.Event) []string {
	if v.phase != "" && e.Phase != v.phase || e.At.Before(v.after) {
		return nil
	}
	var lines []string
	if v.json {
		body, err := json.Marshal(e)
		if err != nil {
			panic("cli: an event does not marshal: " + err.Error()) // It holds texts, a number and a time.
		}
		lines = []string{string(body)}
	} else {
		lines = v.text(e)
	}
	if v.grep == nil {
		return lines
	}
	return slices.DeleteFunc(lines, func(l string) bool { return !v.grep.MatchString(l) })
}

func (v logView) text(e loop.Event) []string {
	body := eventText(e)
	if e.Kind == engine.EventPrompt && v.prompts {
		body = e.Text
	}
	return stamped(e, v.stamp, body)
}
