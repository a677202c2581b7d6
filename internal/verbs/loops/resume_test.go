package loops_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/loops"
)

// caller is a driver whose program is metered. It never acts here.
type caller struct{}

func (caller) Profile() agent.Profile {
	return agent.Profile{Name: "caller", Program: "sh", Providers: []string{"openai"}}
}

func (caller) Turn(context.Context, agent.Request) (agent.Result, error) {
	return agent.Result{}, errors.New("nobody asked for a turn")
}

// rests keeps subjects from acting.
func rests(r *verbtest.Rig, list ...loop.Hold) {
	r.T.Helper()
	err := r.Store.Update(r.T.Context(), func(tx *store.Tx) error {
		for _, h := range list {
			if err := tx.SetHold(r.T.Context(), h); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.T.Fatal(err)
	}
}

// resting lists what is kept from acting, or has failed lately.
func resting(r *verbtest.Rig) string {
	r.T.Helper()
	var subjects []string
	err := r.Store.View(r.T.Context(), func(rd *store.Reader) error {
		holds, err := rd.Holds(r.T.Context())
		for _, h := range holds {
			subjects = append(subjects, h.Subject)
		}
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return strings.Join(subjects, " ")
}

func TestResumeEndsTheRestOfALoopAndOfItsAccountAndOfNothingElse(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		// A model on this machine wants no key: its account is the same everywhere.
		r.DefineLoop("tidy", verbtest.FindsNone, "provider", "openai", "base_url", "http://127.0.0.1:9/v1", "agent", "caller")
		r.Workspace.Drivers["caller"] = caller{} // The engine has the same list.
		r.DefineLoop("other", verbtest.FindsNone)
		tidy, other := engine.LoopHold(catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, "tidy")), engine.LoopHold(catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, "other"))
		soon := r.Workspace.Now().Add(time.Hour)
		rests(r,
			loop.Hold{Subject: tidy, Errors: 3, Until: soon, Reason: loop.ReasonCoolOff, Detail: "3 turns in a row"},
			loop.Hold{Subject: engine.AccountHold("openai:keyless"), Reason: loop.FailureQuota, Detail: "used up"},
			loop.Hold{Subject: engine.AccountHold("anthropic:another"), Reason: loop.FailureQuota, Detail: "used up"},
			loop.Hold{Subject: other, Errors: 2},
		)
		waits := func(name string) (list []string) {
			err := r.Store.View(t.Context(), func(rd *store.Reader) error {
				events, err := rd.WaitingOf(t.Context(), catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, name))
				for _, e := range events {
					if e.NotBefore.After(r.Workspace.Now()) {
						list = append(list, e.Source)
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		for _, name := range []string{"tidy", "other"} {
			err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
				id := catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, name)
				target := r.Workspace.Target(loop.Definition{Name: name})
				all := tx.AddLoop(t.Context(), target.Workspace, target.Loop)
				for _, e := range []loop.FiringEvent{
					engine.WakingEvent(id, loop.OnRest, soon), engine.WakingEvent(id, loop.OnBudget, soon), {LoopID: id, ID: "ev", Source: "file:a", NotBefore: soon},
				} {
					_, err := tx.AddEvent(t.Context(), e, nil)
					all = errors.Join(all, err)
				}
				return all
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		sw := resume(t, r, "tidy")
		if got := strings.Join(waits("tidy"), " "); got != loop.OnBudget {
			t.Errorf("after a resume these events wait for a time: %q, want only that of a budget", got)
		}
		if got := waits("other"); len(got) != 3 {
			t.Errorf("of another loop these events wait for a time: %q, want all", got)
		}
		if text := strings.Join(sw.Holds, "; "); len(sw.Holds) != 2 || !strings.Contains(text, "cool_off until "+soon.UTC().Format(time.RFC3339)) || !strings.Contains(text, "quota until somebody resumes") {
			t.Errorf("resume says %q", sw.Holds)
		}
		if got, want := resting(r), engine.AccountHold("anthropic:another")+" "+other; got != want {
			t.Errorf("resting = %s, want %s", got, want)
		}
		if sw := resume(t, r, "tidy"); len(sw.Holds) != 0 {
			t.Errorf("a second resume says %q", sw.Holds)
		}
		// Two errors are no rest, and yet they are forgotten.
		if sw := resume(t, r, loops.All); len(sw.Holds) != 0 || resting(r) != engine.AccountHold("anthropic:another") {
			t.Errorf("resume of all says %q and leaves %s", sw.Holds, resting(r))
		}
	})
}
