package loops

import (
	"context"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// Everywhere is the kill switch of the whole store: of every loop of every workspace,
// on all nodes. Unlike the other switches it has no file.
type Everywhere struct {
	Store *store.Store
	// WaitHalted blocks until the holders of all runs have answered the switch.
	WaitHalted func(context.Context) (runs.Halted, error)
}

func (e Everywhere) switched(paused bool) Switched {
	return Switched{Schema: "pawl.switch/v1", Scope: loop.SwitchStore, Paused: paused, Switch: loop.SwitchStore.Command()}
}

// Pause sets the switch, and waits as Service.Kill does.
func (e Everywhere) Pause(ctx context.Context, by loop.Actor, why string) (Switched, error) {
	sw := e.switched(true)
	sw.Why = why
	body := map[string]any{"verb": "pause", "everywhere": true}
	if why != "" {
		body["why"] = why
	}
	err := e.Store.Update(ctx, func(tx *store.Tx) error {
		set, err := tx.SetSwitch(ctx, by, "", why)
		if sw.Was = !set; err != nil || !set {
			return err
		}
		return linkAll(ctx, tx, by, body)
	})
	if err != nil {
		return sw, err
	}
	halted, err := e.WaitHalted(ctx)
	if err != nil {
		return sw, err
	}
	return sw, sw.add(halted)
}

// Resume clears the switch. Those of single workspaces and loops stay.
func (e Everywhere) Resume(ctx context.Context, by loop.Actor) (Switched, error) {
	sw := e.switched(false)
	err := e.Store.Update(ctx, func(tx *store.Tx) error {
		cleared, err := tx.ClearSwitch(ctx, "")
		if sw.Was = !cleared; err != nil || !cleared {
			return err
		}
		return linkAll(ctx, tx, by, map[string]any{"verb": "resume", "everywhere": true})
	})
	return sw, err
}

// linkAll adds a link to the audit chain of each workspace.
func linkAll(ctx context.Context, tx *store.Tx, by loop.Actor, body map[string]any) error {
	ids, err := tx.WorkspaceIDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := tx.LinkBy(ctx, by, id, loop.LinkKill, "", body); err != nil {
			return err
		}
	}
	return nil
}
