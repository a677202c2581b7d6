package cli

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
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

func newLogsCommand(a *app) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use: "logs RUN", Short: "Print what happened in a run; with -f go on while it runs", Args: exactArgs(1),
		Long: `Print the events of a run: phases, notes, gates and what agent and gates printed. With -f the backlog
comes first, then whatever happens until the run has ended.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`,
		ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			filter, err := newLineFilter(a, o)
			if err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error { return printLogs(cmd.Context(), a, c, o, filter) })
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

// lineFilter turns events into lines, and leaves out those that nobody asked for.
type lineFilter struct {
	json       bool
	phase      loop.Phase
	after      time.Time
	grep       *regexp.Regexp
	timeLayout string
	prompts    bool
}

func newLineFilter(a *app, o logsOptions) (lineFilter, error) {
	f := lineFilter{json: a.json, phase: loop.Phase(o.phase), timeLayout: time.TimeOnly, prompts: o.prompts}
	switch {
	case o.phase != "" && !slices.Contains(loop.Phases, f.phase):
		return f, &loop.Fault{Exit: loop.ExitUsage, What: "there is no phase " + quoteArg(o.phase), Fix: "use one of: " + phaseNames()}
	case o.tail < -1 || o.since < 0:
		return f, &loop.Fault{Exit: loop.ExitUsage, What: "--tail and --since count backwards from now", Fix: "write a number above 0"}
	case o.follow && a.jq != "":
		return f, &loop.Fault{Exit: loop.ExitUsage, What: "--jq does not go with -f", Fix: "pipe it: pawl logs -f --json RUN | jq …"}
	}
	if o.timestamps {
		f.timeLayout = "2006-01-02T15:04:05.000Z07:00"
	}
	var err error
	if o.grep != "" {
		f.grep, err = regexp.Compile(o.grep)
	}
	if err != nil {
		return f, &loop.Fault{Exit: loop.ExitUsage, What: "invalid --grep " + quoteArg(o.grep), Why: err.Error(), Fix: "write a Go regular expression"}
	}
	return f, nil
}

// printLogs prints the backlog. With -f it goes on until the run has ended.
func printLogs(ctx context.Context, a *app, c verb.Caller, o logsOptions, filter lineFilter) error {
	p := a.printer()
	run, err := api.ShowRun.Call(ctx, c, api.RunRef{Run: o.run})
	if err != nil {
		return err
	}
	if o.since > 0 {
		filter.after = a.rowTime().Add(-o.since)
	}
	head, err := api.FindFeedHead.Call(ctx, c, verb.None{})
	if err != nil {
		return err
	}
	f := follower{caller: c, run: run.ID, seen: head.Cursor}
	lines, more, err := f.readBacklog(ctx, filter)
	if err != nil {
		return err
	}
	if o.tail >= 0 && len(lines) > o.tail {
		lines = lines[len(lines)-o.tail:]
	}
	if p.JSON && !o.follow {
		var events []json.RawMessage
		for _, line := range lines {
			events = append(events, json.RawMessage(line))
		}
		return output.WriteListing(p, "pawl.events/v1", events)
	}
	switch {
	case f.after == 0:
		p.Note("pawl: %s is %s, and nothing has happened in it yet", runName(run), run.State)
	case len(lines) == 0 && !o.follow:
		p.Note("pawl: %s has no such lines", runName(run))
	}
	for {
		if len(lines) > 0 {
			p.Text(strings.Join(lines, "\n") + "\n")
		}
		if p.Err() != nil || !o.follow || !more {
			return p.Err()
		}
		moved, err := api.AwaitRun.Call(ctx, c, api.RunWait{ID: f.run, After: f.seen})
		if err != nil {
			return err
		}
		f.seen = moved.Cursor
		if lines, more, err = f.readBacklog(ctx, filter); err != nil {
			return err
		}
	}
}

// follower remembers how far the events of a run have been read.
type follower struct {
	caller verb.Caller
	run    string
	after  int64       // number of the last event that was read
	seen   loop.Cursor // place in the store's feed up to which the run's changes were read
}

// readBacklog reads all events that there are now. More reports whether others may
// follow.
func (f *follower) readBacklog(ctx context.Context, filter lineFilter) (lines []string, more bool, err error) {
	const page = 1000 // events that are read at once
	for {
		got, err := api.ListEvents.Call(ctx, f.caller, api.EventQuery{ID: f.run, After: f.after, Limit: page})
		if err != nil {
			return nil, false, err
		}
		for _, e := range got.Events {
			lines, f.after = append(lines, filter.lines(e)...), e.Seq
		}
		if len(got.Events) < page {
			return lines, got.More, nil
		}
	}
}

// lines returns the wanted lines of an event: one JSON object, or text.
func (f lineFilter) lines(e loop.Event) []string {
	if f.phase != "" && e.Phase != f.phase || e.At.Before(f.after) {
		return nil
	}
	var lines []string
	if f.json {
		body, err := json.Marshal(e)
		if err != nil {
			panic("cli: an event does not marshal: " + err.Error()) // It holds texts, a number and a time.
		}
		lines = []string{string(body)}
	} else {
		text := describeEvent(e)
		if e.Kind == loop.EventPrompt && f.prompts {
			text = e.Text
		}
		lines = stampLines(e, f.timeLayout, text)
	}
	if f.grep == nil {
		return lines
	}
	return slices.DeleteFunc(lines, func(l string) bool { return !f.grep.MatchString(l) })
}
