package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// theLogin is the wish of a run that is lent the only login.
var theLogin = loop.SeatWish{Agent: "claude", Account: "claude:login", Login: "~/login.json", AccountRuns: 1}

// take wants a seat for a live run.
func take(ctx context.Context, s *store.Store, r loop.Run, w loop.SeatWish) error {
	return held(ctx, s, r, func(rt *store.RunTx) error { return rt.TakeSeat(ctx, w) })
}

// refused is the refusal of a seat, nil for any other result.
func refused(err error) *loop.SeatError {
	e, _ := errors.AsType[*loop.SeatError](err)
	return e
}

func TestALoginIsOneSeatOfOneRunUntilThatHasEnded(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		here := alice
		here.Node = "node_a"
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveNode(ctx, loop.Node{ID: "node_a", Name: "attic"})
		})
		ci, lint := seed(t, s, "ci"), seed(t, s, "lint")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Place(ctx, loop.Placement{WorkspaceID: "ws", NodeID: "node_a", Path: "/repo"})
		})
		first, second := fire(t, s, ci, "-1", here), fire(t, s, lint, "-1", bob)
		if err := take(t.Context(), s, first, theLogin); err != nil {
			t.Fatal(err)
		}
		err := refused(take(t.Context(), s, second, theLogin))
		if err == nil || err.Reason != loop.FailureHeld || len(err.Holders) != 1 {
			t.Fatalf("a second run with the login = %v, want it held", err)
		}
		want := loop.Seat{RunID: first.ID, Loop: "ci", N: 1, Agent: "claude", Account: "claude:login", Login: "~/login.json", Node: "attic", Holder: here}
		if diff := cmp.Diff(want, err.Holders[0], cmpopts.IgnoreFields(loop.Seat{}, "Since")); diff != "" {
			t.Errorf("the holder (-want +got):\n%s", diff)
		}
		if text := err.Error(); !strings.HasPrefix(text, "the login ~/login.json is held by process 1 on a for ci#1 on node attic since 20") {
			t.Errorf("it says %q", text)
		}
		if err := take(t.Context(), s, first, theLogin); err != nil {
			t.Errorf("its own seat is in its way: %v", err)
		}
		other := theLogin
		other.Account = "claude:another"
		if err := take(t.Context(), s, second, other); err != nil {
			t.Errorf("another account = %v", err)
		}
		settle(t, s, first, loop.OutcomeDone)
		if err := take(t.Context(), s, second, theLogin); err != nil {
			t.Errorf("after the end of the first = %v", err)
		}
		taken := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Seat, error) { return r.Seats(ctx) })
		if len(taken) != 1 || taken[0].RunID != second.ID {
			t.Errorf("seats = %+v, want that of the second run", taken)
		}
	})
}

func TestTheOtherSeatsAreThoseOfTheAgentOrTheAccountInOtherLoops(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		for _, other := range []struct{ loop, agent, account string }{
			{"own", "claude", "claude:login"},
			{"agent", "claude", ""},
			{"account", "codex", "claude:login"},
			{"neither", "codex", "codex:login"},
			{"nameless", "codex", ""},
		} {
			run := fire(t, s, seed(t, s, other.loop), "-1", alice)
			if err := take(t.Context(), s, run, loop.SeatWish{Agent: other.agent, Account: other.account}); err != nil {
				t.Fatal(err)
			}
		}
		others := func(w loop.SeatWish) (loops []string) {
			t.Helper()
			for _, seat := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Seat, error) { return r.OtherSeats(ctx, "lp_own", w) }) {
				loops = append(loops, seat.Loop)
			}
			slices.Sort(loops)
			return loops
		}
		if got := others(theLogin); !slices.Equal(got, []string{"account", "agent"}) {
			t.Errorf("beside %+v sit the runs of %v", theLogin, got)
		}
		if got := others(loop.SeatWish{Agent: "claude"}); !slices.Equal(got, []string{"agent"}) {
			t.Errorf("beside a run without an account sit those of %v", got)
		}
	})
}

func TestAStaleHolderTakesNoSeat(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.Claim(ctx, run.ID, run.Fence, bob, alice)
			return err
		})
		if err := take(t.Context(), s, run, theLogin); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a seat with a stale fence = %v", err)
		}
	})
}

// Nobody recovers the run: its process was killed, or its node is off. By the time of
// the database its seat is free; if it goes on all the same, it knows that it has none.
func TestASeatIsFreeWhenTheLeaseOfItsRunIsOver(t *testing.T) {
	for name, url := range map[string]string{"sqlite": storetest.SQLite(t), "postgres": storetest.PostgreSQL(t)} {
		t.Run(name, func(t *testing.T) {
			behind := func() time.Time { return time.Now().Add(-time.Hour) } // The clock of a host decides nothing.
			short, err := store.Open(t.Context(), store.Options{Database: url, Now: behind, Lease: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = short.Close() })
			s := open(t, url)
			dead, next := fire(t, short, seed(t, s, "ci"), "-1", alice), fire(t, s, seed(t, s, "lint"), "-1", bob)
			if err := take(t.Context(), short, dead, theLogin); err != nil {
				t.Fatal(err)
			}
			for {
				err := take(t.Context(), s, next, theLogin)
				if err == nil {
					break
				}
				if refused(err) == nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			has := func(r loop.Run) bool {
				return look(t, s, func(ctx context.Context, rd *store.Reader) (bool, error) { return rd.HasSeat(ctx, r) })
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Extend(ctx, dead.ID, dead.Fence)
				return err
			})
			if has(dead) || !has(next) {
				t.Errorf("the run that woke has its seat: %t, the next one: %t", has(dead), has(next))
			}
			if seats := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Seat, error) { return r.Seats(ctx) }); len(seats) != 1 || seats[0].RunID != next.ID {
				t.Errorf("seats = %+v, want that of the next run", seats)
			}
		})
	}
}

func TestOfManyRunsAtOnceAsManyActAsMay(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		const runs = 8
		for most := range int64(4) {
			w := loop.SeatWish{Agent: fmt.Sprint("dev", most), Account: fmt.Sprint("anthropic:", most), AgentRuns: most + 1}
			if most%2 == 1 {
				w.AgentRuns, w.AccountRuns = 0, most+1
			}
			var all [runs]loop.Run
			for i := range all {
				all[i] = fire(t, s, seed(t, s, fmt.Sprintf("l%d-%d", most, i)), "-1", alice)
			}
			got := int64(0)
			for _, err := range together(runs, func(i int) error { return take(t.Context(), s, all[i], w) }) {
				why := refused(err)
				switch {
				case err == nil:
					got++
				case why == nil:
					t.Errorf("a seat = %v", err)
				case int64(len(why.Holders)) != most+1 || why.Reason != loop.ReasonAgentBusy && w.AgentRuns > 0 || why.Reason != loop.ReasonAccountBusy && w.AccountRuns > 0:
					t.Errorf("refused = %s %v, want all who have one", why.Reason, why)
				}
			}
			if got != most+1 {
				t.Errorf("%d runs act at once, want %d", got, most+1)
			}
		}
	})
}

// Two that want one seat at once wait for each other: the second sees what the first
// has taken. (SQLite has one writer.)
func TestASeatIsTakenUnderALock(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	one, two := fire(t, s, seed(t, s, "a"), "-1", alice), fire(t, s, seed(t, s, "b"), "-1", bob)
	enter := func(r loop.Run) func(context.Context, *store.Tx) error {
		return func(ctx context.Context, tx *store.Tx) error {
			rt, err := tx.Enter(ctx, r, loop.PhaseDecide)
			if err != nil {
				return err
			}
			return rt.TakeSeat(ctx, theLogin)
		}
	}
	first, second := sideBySide(t, s, enter(one), enter(two))
	if first != nil || refused(second) == nil {
		t.Errorf("first = %v, second = %v, want the second refused", first, second)
	}
}

// acting is a run of the model.
type acting struct {
	run   loop.Run
	wish  loop.SeatWish
	acts  bool // it has a seat
	sleep bool // its lease is over
}

// Whatever comes in whatever order, no more runs act than may, and whoever is refused
// is told of those who act. A run that sleeps past its lease gives its seat to whoever
// wants it, and acts again only if nobody did.
func TestNeverMoreRunsActThanMay(t *testing.T) {
	sample.Checks(t, 20)
	for name, url := range map[string]string{"sqlite": storetest.SQLite(t), "postgres": storetest.PostgreSQL(t)} {
		t.Run(name, func(t *testing.T) {
			s, rounds := open(t, url), 0
			rapid.Check(t, func(rt *rapid.T) {
				rounds++
				m := &seatModel{t: t, s: s, name: fmt.Sprintf("r%d", rounds), account: rapid.Int64Range(1, 3).Draw(rt, "most of the account")}
				m.agent = rapid.SliceOfN(rapid.Int64Range(0, 2), 2, 2).Draw(rt, "most of the agents")
				rt.Repeat(map[string]func(*rapid.T){"begin": m.begin, "try again": m.tryAgain, "end": m.end, "sleep": m.sleep, "wake": m.wake, "": m.check})
				for _, r := range m.live {
					settle(t, s, r.run, loop.OutcomeDone)
				}
			})
		})
	}
}

type seatModel struct {
	t       *testing.T
	s       *store.Store
	name    string
	account int64   // most runs of the account
	agent   []int64 // most runs of each agent, 0: any number
	made    int
	live    []*acting
}

func (m *seatModel) begin(rt *rapid.T) {
	i := rapid.IntRange(0, len(m.agent)-1).Draw(rt, "agent")
	m.made++
	r := &acting{
		run:  fire(m.t, m.s, seed(m.t, m.s, fmt.Sprint(m.name, "-", m.made)), "-1", alice),
		wish: loop.SeatWish{Agent: fmt.Sprint(m.name, "-", i), Account: m.name, AgentRuns: m.agent[i], AccountRuns: m.account},
	}
	m.live = append(m.live, r)
	m.want(rt, r)
}

func (m *seatModel) pick(rt *rapid.T, which func(*acting) bool) *acting {
	var some []*acting
	for _, r := range m.live {
		if which(r) {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		rt.Skip("no run is in that state")
	}
	return rapid.SampledFrom(some).Draw(rt, "run")
}

func (m *seatModel) tryAgain(rt *rapid.T) {
	m.want(rt, m.pick(rt, func(r *acting) bool { return !r.acts && !r.sleep }))
}

func (m *seatModel) end(rt *rapid.T) {
	r := m.pick(rt, func(*acting) bool { return true })
	settle(m.t, m.s, r.run, loop.OutcomeDone)
	m.live = slices.DeleteFunc(m.live, func(o *acting) bool { return o == r })
}

func (m *seatModel) sleep(rt *rapid.T) {
	r := m.pick(rt, func(r *acting) bool { return !r.sleep })
	update(m.t, m.s, func(ctx context.Context, tx *store.Tx) error { return setLease(ctx, tx, r.run, -time.Second) })
	r.sleep = true
}

func (m *seatModel) wake(rt *rapid.T) {
	r := m.pick(rt, func(r *acting) bool { return r.sleep })
	update(m.t, m.s, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Extend(ctx, r.run.ID, r.run.Fence)
		return err
	})
	r.sleep = false
}

// acting are the runs with a seat that lasts, and those of one agent among them.
func (m *seatModel) acting(agent string) (all, ofAgent int64) {
	for _, r := range m.live {
		if r.acts && !r.sleep {
			all++
			if r.wish.Agent == agent {
				ofAgent++
			}
		}
	}
	return all, ofAgent
}

// want takes a seat if the model says that one is free, and none otherwise.
func (m *seatModel) want(rt *rapid.T, r *acting) {
	all, ofAgent := m.acting(r.wish.Agent)
	free := all < m.account && (r.wish.AgentRuns == 0 || ofAgent < r.wish.AgentRuns)
	err := take(m.t.Context(), m.s, r.run, r.wish)
	why := refused(err)
	switch {
	case err != nil && why == nil:
		rt.Fatalf("a seat = %v", err)
	case free != (err == nil):
		rt.Fatalf("a seat = %v, with %d of the account and %d of the agent under %+v", err, all, ofAgent, r.wish)
	case why != nil && (why.Reason == loop.ReasonAccountBusy && int64(len(why.Holders)) != all || why.Reason == loop.ReasonAgentBusy && int64(len(why.Holders)) != ofAgent):
		rt.Fatalf("%s names %d of %d and %d who act", why.Reason, len(why.Holders), all, ofAgent)
	}
	if r.acts = free; free {
		for _, o := range m.live {
			o.acts = o.acts && !o.sleep
		}
	}
}

func (m *seatModel) check(rt *rapid.T) {
	taken := look(m.t, m.s, func(ctx context.Context, r *store.Reader) ([]loop.Seat, error) { return r.Seats(ctx) })
	taken = slices.DeleteFunc(taken, func(s loop.Seat) bool { return s.Account != m.name })
	if all, _ := m.acting(""); int64(len(taken)) != all || all > m.account {
		rt.Fatalf("%d seats are taken, want %d of at most %d", len(taken), all, m.account)
	}
	for _, r := range m.live {
		has := look(m.t, m.s, func(ctx context.Context, rd *store.Reader) (bool, error) { return rd.HasSeat(ctx, r.run) })
		if has != r.acts {
			rt.Fatalf("run %s has its seat: %t, want %t", r.run.ID, has, r.acts)
		}
		if _, ofAgent := m.acting(r.wish.Agent); r.wish.AgentRuns > 0 && ofAgent > r.wish.AgentRuns {
			rt.Fatalf("%d runs of %s act at once, want at most %d", ofAgent, r.wish.Agent, r.wish.AgentRuns)
		}
	}
}
