package loops_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestARunRegistersItsLoopInTheTransactionThatFiresIt(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		gittest.Run(t, r.Root, "branch", "pawl/a/7-of-an-earlier-store")
		r.DefineLoop("a", verbtest.FindsNone)
		r.DefineLoop("b", verbtest.FindsNone)
		if s, err := r.Loops.Register(t.Context()); err != nil || s != (catalog.Synced{Loops: 2, Changed: 2}) {
			t.Fatalf("registered %+v, %v", s, err)
		}
		if row := r.ShowRow("a"); row.State != "never_run" || row.Next == nil || row.LastN != 0 || row.LastRun != nil {
			t.Errorf("a loop that was only registered = %+v", row)
		}
		first := r.RunLoop(runs.StartRequest{Loop: "a"})
		if first.N != 8 {
			t.Errorf("its first run has number %d, want 8", first.N)
		}
		planned, other := r.LoopRow(loop.ProtocolSpine, "a").Registered, r.LoopRow(loop.ProtocolSpine, "b").Registered
		r.RunLoop(runs.StartRequest{Loop: "a", Overrides: loop.Overrides{MaxIterations: 2}})
		if got := r.LoopRow(loop.ProtocolSpine, "a").Registered; got != planned {
			t.Errorf("after a run of the same file = %+v, want %+v", got, planned)
		}
		r.DefineLoop("a", verbtest.FindsNone, "cadence", "2h")
		r.DefineLoop("b", verbtest.FindsNone, "cadence", "2h")
		cut := errors.New("cut")
		// cutAt starts a run that is cut, and returns its commits and what the row says then.
		cutAt := func(point string) (int64, loop.Registration) {
			before := r.Store.Commits()
			p, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "a"})
			if err != nil {
				t.Fatal(err)
			}
			ctx := fault.With(t.Context(), new(fault.Plan).Do(point, 1, func(context.Context) error { return cut }))
			if _, err := r.Runs.Start(ctx, p); !errors.Is(err, cut) {
				t.Fatalf("cut at %s = %v", point, err)
			}
			return r.Store.Commits() - before, r.LoopRow(loop.ProtocolSpine, "a").Registered
		}
		if n, got := cutAt("engine.claim.commit.before"); n != 0 || got != planned {
			t.Errorf("before it fires: %d commits and %+v, want none and %+v", n, got, planned)
		}
		n, got := cutAt("engine.claim.commit.after")
		if n != 1 || got.Good != r.Definition("a").WithDefaults().Digest() || got.Good == planned.Good || got.Due.Equal(planned.Due) {
			t.Errorf("once it has fired: %d commits and %+v, before %+v", n, got, planned)
		}
		if now := r.LoopRow(loop.ProtocolSpine, "b").Registered; now != other {
			t.Errorf("another loop = %+v, want %+v", now, other)
		}
	})
}

func TestALoopWhoseDefinitionBrokeSaysSo(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		r.DefineLoop("a", verbtest.FindsNone)
		r.DefineLoop("new", verbtest.FindsNone, "max_itms", "2")
		r.RunLoop(runs.StartRequest{Loop: "a"})
		good := r.LoopRow(loop.ProtocolSpine, "a").Registered
		r.DefineLoop("a", verbtest.FindsNone, "max_items", "many")
		if row := r.ShowRow("a"); row.State != "broken" || row.Next != nil || row.LastGood != good.Good {
			t.Errorf("before anybody registered it = %+v", row)
		}
		for _, name := range []string{"a", "new"} {
			if _, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: name}); err == nil {
				t.Errorf("a run of %s is prepared", name)
			}
			if err := r.Loops.RegisterOne(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		reg := r.LoopRow(loop.ProtocolSpine, "a").Registered
		if reg.Good != good.Good || !reg.Due.Equal(good.Due) || reg.Broken == "" {
			t.Errorf("registered %+v, before %+v", reg, good)
		}
		for ref, want := range map[string]string{"a": reg.Broken, "a#1": ""} {
			if why, err := r.Runs.Why(t.Context(), ref); err != nil || why.Broken != want || (why.LastGood == good.Good) != (want != "") {
				t.Errorf("why %s = %q %q, %v; want %q", ref, why.Broken, why.LastGood, err, want)
			}
		}
		_, err := r.Runs.Why(t.Context(), "new")
		verbtest.WantFault(t, err, loop.ExitNotFound, "loop new has no runs yet", "it does not fire: new is not ready to run", "pawl check new")
		if why, err := r.Runs.Why(t.Context(), "a"); err != nil || !strings.Contains(why.Broken, "max_items") {
			t.Errorf("why a = %q, %v", why.Broken, err)
		}
		r.DefineLoop("a", verbtest.FindsNone, "budget_usd_dy", "1")
		if err := r.Loops.RegisterOne(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if reg := r.LoopRow(loop.ProtocolSpine, "a").Registered; reg.Good != good.Good || !strings.Contains(reg.Broken, "did you mean budget_usd_day?") {
			t.Errorf("with a misspelt key = %+v, want the last good definition", reg)
		}
		// Mended, and nobody has looked at it since: it does not fire yet.
		r.DefineLoop("a", verbtest.FindsNone)
		if row := r.ShowRow("a"); row.State != "idle" || row.Next != nil || row.LastGood != "" {
			t.Errorf("mended = %+v", row)
		}
		if err := r.Loops.RegisterOne(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if row := r.ShowRow("a"); row.Next == nil || !row.Next.Equal(good.Due) {
			t.Errorf("registered again = %+v, want that it is due at %s", row, good.Due)
		}
	})
}
