package control

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// Whoever reads the chain of a loop has to see who changed what, and by which
// surface.
func TestTheAuditChainNamesWhoAskedForEachChange(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.define("fix", findsNone)
		ctx := t.Context()
		plan, err := r.Prepare(ctx, RunRequest{Loop: "fix", By: ann})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Start(ctx, plan); err != nil {
			t.Fatal(err)
		}
		for _, change := range []func() error{
			func() error { _, err := r.Pause(ctx, ann, "fix"); return err },
			func() error { _, err := r.Resume(ctx, ann, "fix"); return err },
			func() error { _, err := r.Kill(ctx, ann, "fix"); return err },
			func() error { _, err := r.RewriteLog(ctx, ann, "fix"); return err },
			func() error { _, err := r.Prune(ctx, ann, time.Hour, false); return err },
			func() error {
				_, err := r.SetBudget(ctx, BudgetChange{Target: BudgetTarget{Loop: "fix"}, Window: "day", Caps: map[string]string{"usd": "2"}, By: ann})
				return err
			},
			func() error { _, err := r.Forget(ctx, ann, "fix"); return err },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
		var links []loop.Link
		err = r.view(ctx, func(rd *store.Reader) error {
			l, err := rd.LoopNamed(ctx, r.ws.ID, loop.ProtocolSpine, "fix")
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
			if body.Actor != ann {
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
