package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestARunTakesDefersOrWaits(t *testing.T) {
	began := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	src := func(change ...func(*loop.Contender)) loop.Contender {
		c := loop.Contender{Run: "r", LoopID: "other", Loop: "other", N: 7, Seq: 5, Started: began, Lock: loop.Lock{Scope: []string{"src/**"}, Priority: 25, Bound: 5, Wall: time.Hour}}
		for _, fn := range change {
			fn(&c)
		}
		return c
	}
	live := func(c *loop.Contender) { c.Live = true }
	priority := func(n int) func(*loop.Contender) { return func(c *loop.Contender) { c.Lock.Priority = n } }
	deferred := func(n int) func(*loop.Contender) { return func(c *loop.Contender) { c.Deferrals = n } }
	scope := func(globs ...string) func(*loop.Contender) { return func(c *loop.Contender) { c.Lock.Scope = globs } }
	branch := func(name string) func(*loop.Contender) {
		return func(c *loop.Contender) { c.Lock.Branch, c.Lock.Scope = name, nil }
	}
	group := func(name string) func(*loop.Contender) { return func(c *loop.Contender) { c.Lock.Group = name } }
	most := func(n int) func(*loop.Contender) { return func(c *loop.Contender) { c.Lock.Most = n } }
	seq := func(n int64) func(*loop.Contender) { return func(c *loop.Contender) { c.Seq = n } }
	insists := func(age time.Duration) func(*loop.Contender) {
		return func(c *loop.Contender) { c.Lock.Insists, c.Age = true, age }
	}
	none := func(c *loop.Contender) { c.Lock.Scope = nil }
	both := func(fns ...func(*loop.Contender)) []func(*loop.Contender) { return fns }

	for name, c := range map[string]struct {
		asks       []func(*loop.Contender)
		others     []loop.Contender
		foreground bool
		want       LockMove
		why        loop.Reason
	}{
		"nobody is there":                             {nil, nil, false, LockTake, loop.ReasonLockFree},
		"it may change nothing":                       {both(none), []loop.Contender{src(live)}, false, LockTake, loop.ReasonLockNone},
		"the other one changes something else":        {nil, []loop.Contender{src(live, scope("docs/**"))}, false, LockTake, loop.ReasonLockFree},
		"a higher one is at work":                     {nil, []loop.Contender{src(live, priority(50))}, false, LockDefer, loop.ReasonLockHigher},
		"one of the same priority is at work":         {nil, []loop.Contender{src(live)}, false, LockDefer, loop.ReasonLockHigher},
		"a lower one is at work":                      {nil, []loop.Contender{src(live, priority(10))}, false, LockWait, loop.ReasonLockHeld},
		"a higher one is due":                         {nil, []loop.Contender{src(priority(50))}, false, LockDefer, loop.ReasonLockDue},
		"one of the same priority fired before":       {nil, []loop.Contender{src(seq(1))}, false, LockDefer, loop.ReasonLockDue},
		"one of the same priority fired after":        {nil, []loop.Contender{src(seq(90))}, false, LockTake, loop.ReasonLockFree},
		"a lower one is due":                          {nil, []loop.Contender{src(priority(10))}, false, LockTake, loop.ReasonLockFree},
		"a lower one that deferred often is due":      {nil, []loop.Contender{src(priority(10), deferred(5))}, false, LockDefer, loop.ReasonLockOverdue},
		"it deferred often, and a higher one is due":  {both(deferred(5)), []loop.Contender{src(priority(50))}, false, LockTake, loop.ReasonLockFree},
		"it deferred often, and a higher one is live": {both(deferred(5)), []loop.Contender{src(live, priority(50))}, false, LockWait, loop.ReasonLockHeld},
		"both deferred often, the other fired before": {both(deferred(5)), []loop.Contender{src(priority(10), deferred(6))}, false, LockWait, loop.ReasonLockOverdue},
		"both deferred often, the other fired after":  {both(deferred(5)), []loop.Contender{src(priority(50), deferred(9), seq(90))}, false, LockTake, loop.ReasonLockFree},
		"it waits for a lower, and a higher one is due": {
			nil, []loop.Contender{src(live, priority(10)), src(priority(50))}, false, LockDefer, loop.ReasonLockDue,
		},
		"of the same group": {both(group("org")), []loop.Contender{src(live, priority(50), group("org"))}, false, LockTake, loop.ReasonLockFree},
		"two of its group are at work, and no more may be": {
			both(group("org"), most(2)), []loop.Contender{src(live, group("org"), priority(50)), {Run: "r2", LoopID: "third", Lock: loop.Lock{Group: "org"}, Live: true}, src(live, group("org"))}, true, LockWait, loop.ReasonLockGroup,
		},
		"one of its group is at work, and two may be":  {both(group("org"), most(2)), []loop.Contender{src(live, group("org"))}, false, LockTake, loop.ReasonLockFree},
		"it may change nothing, and its group is full": {both(none, group("org"), most(1)), []loop.Contender{src(live, none, group("org"))}, false, LockWait, loop.ReasonLockGroup},
		"of another group":                             {both(group("org")), []loop.Contender{src(live, priority(50), group("board"))}, false, LockDefer, loop.ReasonLockHigher},
		"without a group both":                         {both(group("")), []loop.Contender{src(live, priority(50), group(""))}, false, LockDefer, loop.ReasonLockHigher},
		"an event, and a higher one is at work":        {both(insists(0)), []loop.Contender{src(live, priority(50))}, false, LockWait, loop.ReasonLockHeld},
		"an event, and a higher one is due":            {both(insists(0)), []loop.Contender{src(priority(50))}, false, LockWait, loop.ReasonLockDue},
		"an event of an hour ago goes first":           {both(insists(time.Hour)), []loop.Contender{src(priority(50))}, false, LockTake, loop.ReasonLockFree},
		"a person, and one is at work":                 {nil, []loop.Contender{src(live, priority(10))}, true, LockWait, loop.ReasonLockHeld},
		"a person, and a higher one is at work":        {nil, []loop.Contender{src(live, priority(50))}, true, LockWait, loop.ReasonLockHeld},
		"a person, and a higher one is due":            {nil, []loop.Contender{src(priority(50))}, true, LockTake, loop.ReasonLockFree},
		"a person, and one that deferred often is due": {nil, []loop.Contender{src(deferred(5))}, true, LockWait, loop.ReasonLockOverdue},
		"two that move one branch":                     {both(branch("main")), []loop.Contender{src(live, branch("main"))}, true, LockWait, loop.ReasonLockHeld},
		"two that move two branches":                   {both(branch("main")), []loop.Contender{src(live, branch("next"))}, true, LockTake, loop.ReasonLockFree},
		"one that lands, and one that works":           {both(branch("main")), []loop.Contender{src(live)}, true, LockTake, loop.ReasonLockFree},
	} {
		t.Run(name, func(t *testing.T) {
			asks := src(append([]func(*loop.Contender){func(c *loop.Contender) { c.Run, c.LoopID, c.Loop, c.Seq = "mine", "mine", "mine", 9 }}, c.asks...)...)
			got := Arbitrate(asks, c.others, c.foreground)
			if got.Move != c.want || got.Reason != c.why {
				t.Fatalf("it is %s, %s, because of %s; want %s, %s", got.Move, got.Reason, got.By.Name(), c.want, c.why)
			}
			if got.Move == LockTake {
				return
			}
			if got.Why.Rule != c.why || got.Why.Loop != "other" || got.Why.N != 7 || got.Why.Run != "r" || got.Why.Scope == "" {
				t.Errorf("it names %+v", got.Why)
			}
			if want := got.By.Live; got.Why.Until.IsZero() == want || want && !got.Why.Until.Equal(began.Add(time.Hour)) {
				t.Errorf("it is over at %v", got.Why.Until)
			}
			if alone := Arbitrate(asks, nil, c.foreground); alone.Move != LockTake {
				t.Errorf("alone it is %s", alone.Move)
			}
			for i := range c.others {
				c.others[i].LoopID = asks.LoopID
			}
			if own := Arbitrate(asks, c.others, c.foreground); own.Move != LockTake {
				t.Errorf("a run of its own loop counts: %s", own.Reason)
			}
		})
	}
}

func TestADefinitionSaysWhatItsRunsLock(t *testing.T) {
	fix := loop.Definition{Tier: loop.TierAssisted, Scope: []string{"src/**"}, Pattern: "ci-watch", MaxWallClock: time.Hour}
	if got := LockOf(fix); got.IsZero() || got.Priority != 50 || got.Bound != 5 || got.Wall != time.Hour || got.Branch != "" {
		t.Errorf("a loop locks %+v", got)
	}
	for name, c := range map[string]struct {
		change func(*loop.Definition)
		want   func(loop.Lock) bool
	}{
		"a loop that reports":       {func(d *loop.Definition) { d.Tier = loop.TierReport }, loop.Lock.IsZero},
		"a loop without a scope":    {func(d *loop.Definition) { d.Scope = nil }, loop.Lock.IsZero},
		"its own priority":          {func(d *loop.Definition) { d.Priority = 3 }, func(l loop.Lock) bool { return l.Priority == 3 }},
		"an unknown pattern":        {func(d *loop.Definition) { d.Pattern = "" }, func(l loop.Lock) bool { return l.Priority == 25 }},
		"the daily scan":            {func(d *loop.Definition) { d.Pattern = "daily-scan" }, func(l loop.Lock) bool { return l.Priority == 10 }},
		"its own bound":             {func(d *loop.Definition) { d.DeferBound = 2 }, func(l loop.Lock) bool { return l.Bound == 2 }},
		"its group":                 {func(d *loop.Definition) { d.Group = "org" }, func(l loop.Lock) bool { return l.Group == "org" }},
		"what lands by itself":      {func(d *loop.Definition) { d.Autoland, d.Base = []string{"lockfile-patch"}, "next" }, func(l loop.Lock) bool { return l.Branch == "next" }},
		"what opens a pull request": {func(d *loop.Definition) { d.Autoland, d.Base = []string{"green-pr"}, "next" }, func(l loop.Lock) bool { return l.Branch == "" }},
	} {
		d := fix
		c.change(&d)
		if got := LockOf(d); !c.want(got) {
			t.Errorf("%s locks %+v", name, got)
		}
	}
	if got := LandingLock("main", fix); got.Branch != "main" || len(got.Scope) > 0 || !got.Insists {
		t.Errorf("a landing locks %+v", got)
	}
}

// world is a repository with loops that fire, and runs that are queued or live.
type world struct {
	t     *rapid.T
	loops []*member
	runs  []*loop.Contender
	seq   int64
	takes int // by anybody
}

// member is a loop. wants says whether it has fired and not gone since.
type member struct {
	id        string
	lock      loop.Lock
	deferrals int
	wants     bool
	waited    int // rounds since it wants
}

func (w *world) contenders() []loop.Contender {
	list := make([]loop.Contender, len(w.runs))
	for i, r := range w.runs {
		r.Deferrals = w.member(r.LoopID).deferrals
		list[i] = *r
	}
	return list
}

func (w *world) member(id string) *member {
	return w.loops[slices.IndexFunc(w.loops, func(m *member) bool { return m.id == id })]
}

func (w *world) drop(run *loop.Contender) {
	w.runs = slices.DeleteFunc(w.runs, func(r *loop.Contender) bool { return r == run })
}

func (w *world) liveOf(m *member) bool {
	return slices.ContainsFunc(w.runs, func(r *loop.Contender) bool { return r.LoopID == m.id && r.Live })
}

// fire queues a run, unless one is queued or live.
func (w *world) fire(m *member) {
	if slices.ContainsFunc(w.runs, func(r *loop.Contender) bool { return r.LoopID == m.id }) {
		return
	}
	w.seq++
	w.runs = append(w.runs, &loop.Contender{Run: fmt.Sprint(w.seq), LoopID: m.id, Loop: m.id, N: w.seq, Seq: w.seq, Lock: m.lock})
	m.wants = true
}

// execute does what a queue does with a run.
func (w *world) execute(run *loop.Contender) {
	m := w.member(run.LoopID)
	if run.Live || w.liveOf(m) {
		return
	}
	all := w.contenders()
	asks := *run
	asks.Deferrals = m.deferrals
	switch w.arbitrate(asks, all, false).Move {
	case LockTake:
		w.begin(run)
	case LockDefer:
		w.drop(run)
		m.deferrals++
	case LockWait:
	}
}

// arbitrate is Arbitrate, which says the same if it is told only of those that may go first.
func (w *world) arbitrate(asks loop.Contender, all []loop.Contender, foreground bool) Ruling {
	ruling, may := Arbitrate(asks, all, foreground), Ahead(asks, foreground)
	first := slices.DeleteFunc(slices.Clone(all), func(c loop.Contender) bool { return !c.Live && !may.Includes(c) })
	if got := Arbitrate(asks, first, foreground); !reflect.DeepEqual(got, ruling) {
		w.t.Fatalf("%+v is ruled %+v, and beside %d of %d contenders %+v", asks, ruling, len(first), len(all), got)
	}
	return ruling
}

func (w *world) begin(run *loop.Contender) {
	m := w.member(run.LoopID)
	run.Live, m.deferrals, m.wants, m.waited = true, 0, false, 0
	w.takes++
	for _, o := range w.runs {
		if _, excludes := Shared(run.Lock, o.Lock); excludes && o.Live && o != run {
			w.t.Fatalf("%s (%+v) and %s (%+v) are live at once", run.Loop, run.Lock, o.Loop, o.Lock)
		}
	}
}

// person runs a loop in the foreground, if that is possible now, and reports whether
// it began.
func (w *world) person(m *member) bool {
	if w.liveOf(m) {
		return false
	}
	w.seq++
	run := &loop.Contender{Run: fmt.Sprint(w.seq), LoopID: m.id, Loop: m.id, N: w.seq, Seq: w.seq, Lock: m.lock}
	if w.arbitrate(*run, w.contenders(), true).Move != LockTake {
		return false
	}
	w.runs = append(w.runs, run)
	w.begin(run)
	return true
}

func (w *world) endOne() {
	var live []*loop.Contender
	for _, r := range w.runs {
		if r.Live {
			live = append(live, r)
		}
	}
	if len(live) > 0 {
		w.drop(live[rapid.IntRange(0, len(live)-1).Draw(w.t, "ends")])
	}
}

// executeAll does it in a random order.
func (w *world) executeAll() {
	for _, run := range rapid.Permutation(slices.Clone(w.runs)).Draw(w.t, "order") {
		if slices.Contains(w.runs, run) {
			w.execute(run)
		}
	}
}

func drawWorld(t *rapid.T) *world {
	w := &world{t: t}
	for i := range rapid.IntRange(2, 6).Draw(t, "loops") {
		w.loops = append(w.loops, &member{id: fmt.Sprintf("loop%d", i), lock: loop.Lock{
			Scope:    rapid.SliceOfN(rapid.SampledFrom([]string{"a/**", "b/**", "a/x", "*/y", "c"}), 0, 2).Draw(t, "scope"),
			Priority: rapid.IntRange(1, 4).Draw(t, "priority"), Bound: rapid.IntRange(1, 4).Draw(t, "bound"),
			Group: rapid.SampledFrom([]string{"", "", "org"}).Draw(t, "group"), Insists: rapid.Bool().Draw(t, "insists"),
		}})
	}
	return w
}

func TestNoTwoLiveRunsMayTouchTheSameAndNoneStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		pick := func() *member { return w.loops[rapid.IntRange(0, len(w.loops)-1).Draw(t, "loop")] }
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				w.fire(pick())
			case 2:
				w.executeAll()
			case 3:
				w.person(pick())
			case 4:
				w.endOne()
			}
		}
		// From here on all loops fire as often as they can, the queue tries all runs
		// whenever one ends, and people come in between.
		most := 12 + 2*len(w.loops)*len(w.loops)
		for range most + 10 {
			for _, m := range w.loops {
				w.fire(m)
			}
			w.executeAll()
			if rapid.Bool().Draw(t, "person") {
				w.person(pick())
			}
			w.endOne()
			for _, r := range w.runs {
				r.Age += 10 * time.Minute
			}
			for _, m := range w.loops {
				if m.wants {
					m.waited++
				}
				if m.waited > most {
					t.Fatalf("%s (%+v, %d deferrals) has waited for %d rounds", m.id, m.lock, m.deferrals, m.waited)
				}
			}
		}
	})
}

func TestWhatIsQueuedNeverWaitsForEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, m := range w.loops {
			m.deferrals = rapid.IntRange(0, 5).Draw(t, "deferrals")
			if rapid.IntRange(0, 3).Draw(t, "fires") > 0 {
				w.fire(m)
			}
		}
		for _, r := range w.runs {
			r.Age = time.Duration(rapid.IntRange(0, 2).Draw(t, "hours")) * time.Hour
		}
		// Nothing is live, so something begins, in whatever order they are tried, and
		// whether or not a person waits for one of them to begin.
		waits := w.loops[rapid.IntRange(0, len(w.loops)-1).Draw(t, "person")]
		began := rapid.Bool().Draw(t, "a person is first") && w.person(waits)
		queued := len(w.runs) > 0
		w.executeAll()
		if queued && w.takes == 0 {
			t.Fatalf("%d runs are queued, nothing is live, and none of them begins", len(w.runs))
		}
		// The person begins once nothing is live and what is overdue has gone.
		for rounds := 0; !began; rounds++ {
			if began = w.person(waits); began {
				break
			}
			if rounds > 3*len(w.loops) {
				t.Fatalf("a person still waits for %s", waits.id)
			}
			w.endOne()
			w.executeAll()
		}
	})
}
