package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// metrics counts what the runs of this node came to since the daemon was started. Labels
// are names of loops, outcomes and kinds, which are few; no run is named.
type metrics struct {
	mu     sync.Mutex
	counts map[series]float64
}

// series is a metric with its labels, as it is written.
type series struct{ name, labels string }

// lagBounds are the upper bounds of the buckets of the schedule's lag, in seconds.
var lagBounds = []float64{0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300}

// metricHelp says what each metric is.
var metricHelp = map[string][2]string{
	"pawl_runs_total":           {"counter", "Runs of this node that ended, by loop and outcome."},
	"pawl_run_seconds_total":    {"counter", "Time that these runs took, by loop and what it was spent on."},
	"pawl_tokens_total":         {"counter", "Tokens that these runs used, by loop and type."},
	"pawl_cost_usd_total":       {"counter", "What these runs cost in US dollars, as far as their models have a price, by loop."},
	"pawl_schedule_lag_seconds": {"histogram", "How long after its planned time a loop fired, jitter included."},
	"pawl_runs_working":         {"gauge", "Runs that this daemon executes."},
	"pawl_queue_depth":          {"gauge", "Queued runs that this node could take."},
	"pawl_approvals_pending":    {"gauge", "Approvals of the store that wait for a person."},
	"pawl_loops":                {"gauge", "Loops on this node, by whether their definition can run."},
	"pawl_workspaces":           {"gauge", "Workspaces on this node."},
	"pawl_commits_total":        {"counter", "Transactions of this daemon that wrote to the store."},
	"pawl_loops_late":           {"gauge", "Loops of the store that have stopped coming."},
}

func (m *metrics) add(name string, n float64, labels ...string) {
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(labels[i] + "=" + quoteLabel(labels[i+1]))
	}
	if m.counts == nil {
		m.counts = map[series]float64{}
	}
	m.counts[series{name, b.String()}] += n
}

// quoteLabel quotes a value as Prometheus reads it.
func quoteLabel(v string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(v) + `"`
}

// countFiring counts how late a loop was fired.
func (m *metrics) countFiring(lag time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seconds := max(0, lag.Seconds())
	for _, bound := range lagBounds {
		n := 0.0
		if seconds <= bound {
			n = 1
		}
		m.add("pawl_schedule_lag_seconds_bucket", n, "le", strconv.FormatFloat(bound, 'g', -1, 64))
	}
	m.add("pawl_schedule_lag_seconds_bucket", 1, "le", "+Inf")
	m.add("pawl_schedule_lag_seconds_sum", seconds)
	m.add("pawl_schedule_lag_seconds_count", 1)
}

// countRun counts a run that ended, once.
func (m *metrics) countRun(name string, r loop.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add("pawl_runs_total", 1, "loop", name, "outcome", string(r.Outcome))
	m.add("pawl_run_seconds_total", r.Spent.Agent.Seconds(), "loop", name, "on", "agent")
	m.add("pawl_run_seconds_total", r.Spent.Gates.Seconds(), "loop", name, "on", "gates")
	m.add("pawl_run_seconds_total", r.Spent.Overhead().Seconds(), "loop", name, "on", "overhead")
	for kind, n := range map[string]int64{"input": r.Usage.Input, "output": r.Usage.Output, "cache_read": r.Usage.CacheRead, "cache_write": r.Usage.CacheWrite} {
		if n > 0 {
			m.add("pawl_tokens_total", float64(n), "loop", name, "type", kind)
		}
	}
	m.add("pawl_cost_usd_total", float64(r.Cost.MicroUSD)/1e6, "loop", name)
}

// countEnded counts the runs of this node that end, until ctx ends.
func (d *Daemon) countEnded(ctx context.Context) error {
	feed := event.Feed{Store: d.Store, Pulse: d.Pulse}
	after, err := feed.Head(ctx)
	ends := func(e loop.FeedEntry) bool {
		return e.Kind == loop.FeedRun && !slices.Contains([]loop.RunState{loop.RunQueued, loop.RunRunning, loop.RunSettling}, loop.RunState(e.State))
	}
	// A run that has ended may get more entries, soon after the first.
	const mostCounted = 10_000
	var counted, before map[string]bool
	for {
		if len(counted) > mostCounted || counted == nil {
			before, counted = counted, map[string]bool{}
		}
		if errors.Is(err, store.ErrFeedPruned) { // The counters miss what was pruned meanwhile.
			after, err = feed.Head(ctx)
		}
		if err != nil {
			return err
		}
		var entries []loop.FeedEntry
		entries, after, err = feed.Next(ctx, after, time.Minute, ends)
		if err != nil {
			continue
		}
		err = d.Store.View(ctx, func(r *store.Reader) error {
			for _, e := range entries {
				if counted[e.ID] || before[e.ID] {
					continue
				}
				run, err := r.Run(ctx, e.ID)
				if err != nil {
					return err
				}
				l, err := r.Loop(ctx, run.LoopID)
				if err != nil {
					return err
				}
				if run.Node == d.Node && run.State == loop.RunEnded {
					counted[e.ID] = true
					d.metrics.countRun(l.Name, run)
				}
			}
			return nil
		})
	}
}

// WriteMetrics writes the metrics of this daemon as Prometheus reads them.
func (d *Daemon) WriteMetrics(ctx context.Context, w io.Writer) error {
	var backlog store.Backlog
	var lasting []loop.Notice
	err := d.Store.View(ctx, func(r *store.Reader) (err error) {
		if backlog, err = r.Backlog(ctx, d.Node); err == nil {
			lasting, err = r.LastingNotices(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	late := 0
	for _, n := range lasting {
		if n.Event == loop.NoticeLate {
			late++
		}
	}
	workspaces, found := d.Loops()
	m := &metrics{}
	d.metrics.mu.Lock()
	m.counts = maps.Clone(d.metrics.counts)
	d.metrics.mu.Unlock()
	m.add("pawl_runs_working", float64(d.Working()))
	m.add("pawl_queue_depth", float64(backlog.Queued))
	m.add("pawl_approvals_pending", float64(backlog.Approvals))
	m.add("pawl_loops", float64(found.Loops-found.Broken), "definition", "runnable")
	m.add("pawl_loops", float64(found.Broken), "definition", "broken")
	m.add("pawl_workspaces", float64(workspaces))
	m.add("pawl_loops_late", float64(late))
	m.add("pawl_commits_total", float64(d.Store.Commits()))
	return m.write(w)
}

func (m *metrics) write(w io.Writer) error {
	all := slices.SortedFunc(maps.Keys(m.counts), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.labels, b.labels))
	})
	told := ""
	for _, s := range all {
		family := s.name
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if f, ok := strings.CutSuffix(s.name, part); ok {
				family = f
			}
		}
		if help := metricHelp[family]; family != told {
			if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", family, help[1], family, help[0]); err != nil {
				return err
			}
			told = family
		}
		labels := s.labels
		if labels != "" {
			labels = "{" + labels + "}"
		}
		if _, err := fmt.Fprintf(w, "%s%s %s\n", s.name, labels, strconv.FormatFloat(m.counts[s], 'g', -1, 64)); err != nil {
			return err
		}
	}
	return nil
}
