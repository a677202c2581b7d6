package audit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// Whoever reads the chain of a loop has to see who changed what, and by which
// surface.
func TestTheAuditChainNamesWhoAskedForEachChange(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		r.DefineLoop("fix", verbtest.FindsNone)
		ctx := t.Context()
		plan, err := r.Runs.Prepare(ctx, runs.StartRequest{Loop: "fix", By: verbtest.Ann})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Runs.Start(ctx, plan); err != nil {
			t.Fatal(err)
		}
		for _, change := range []func() error{
			func() error { _, err := r.Loops.Pause(ctx, verbtest.Ann, "fix", ""); return err },
			func() error { _, err := r.Loops.Resume(ctx, verbtest.Ann, "fix"); return err },
			func() error { _, err := r.Loops.Kill(ctx, verbtest.Ann, "fix", ""); return err },
			func() error { _, err := r.Audit.RewriteLog(ctx, verbtest.Ann, "fix"); return err },
			func() error { _, err := r.Snapshots.Prune(ctx, verbtest.Ann, time.Hour, false); return err },
			func() error {
				_, err := r.Budgets.Set(ctx, budgets.Change{Target: budgets.Target{Loop: "fix"}, Window: "day", Caps: map[string]string{"usd": "2"}, By: verbtest.Ann})
				return err
			},
			func() error { _, err := r.Loops.Forget(ctx, verbtest.Ann, "fix"); return err },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
		var links []loop.Link
		err = r.Workspace.View(ctx, func(rd *store.Reader) error {
			l, err := rd.LoopNamed(ctx, r.Workspace.ID, loop.ProtocolSpine, "fix")
			if err != nil {
				return err
			}
			links, err = rd.Chain(ctx, l.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]int{}
		for _, l := range links {
			var body struct {
				Verb  string     `json:"verb"`
				Actor loop.Actor `json:"actor"`
			}
			if err := json.Unmarshal([]byte(l.Body), &body); err != nil {
				t.Fatal(err)
			}
			if l.Kind == loop.LinkDefinition {
				continue // What a run found: nobody asked for it.
			}
			if body.Actor != verbtest.Ann {
				t.Errorf("the %s entry names %+v: %s", l.Kind, body.Actor, l.Body)
			}
			asked[l.Kind+" "+body.Verb]++
		}
		for _, want := range []string{"run ", "kill pause", "kill resume", "budget ", "forget forget"} {
			if asked[want] == 0 {
				t.Errorf("the chain has no entry %q: %v", want, asked)
			}
		}
	})
}

func TestTheAuditChainHoldsAfterEveryVerb(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.WritesTwo)
	check := func(after string) {
		t.Helper()
		if err := r.Audit.VerifyChain(t.Context(), "tidy"); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	switches := func(_ loops.Switched, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check("nothing")
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	check("run")
	switches(r.Loops.Pause(t.Context(), verbtest.Ann, "tidy", ""))
	check("pause")
	switches(r.Loops.Pause(t.Context(), verbtest.Ann, loops.All, ""))
	check("pause of all")
	switches(r.Loops.Resume(t.Context(), verbtest.Ann, loops.All))
	check("resume")
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	check("another run")
	err := r.Store.View(t.Context(), func(rd *store.Reader) error {
		links, err := rd.Chain(t.Context(), catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, "tidy"))
		kinds := map[string]int{}
		for _, l := range links {
			kinds[l.Kind]++
		}
		if kinds["run"] < 2 || kinds["definition"] != 1 || kinds["kill"] != 3 || kinds["effect"] == 0 {
			t.Errorf("links = %v", kinds)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	verbtest.WantFault(t, r.Audit.VerifyChain(t.Context(), "nobody"), loop.ExitNotFound, "nobody", "", "there are: tidy")
}
