package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// checkHazards looks at what git would execute in the repository, or be led
// elsewhere by. Nothing that pawl does acts on it; but what changed since a
// person registered the workspace was changed by something that could just as
// well have been an agent, and the next git command of a person would run it.
func (c *cycle) checkHazards(ctx context.Context) (*ending, error) {
	now, err := hazard.Scan(ctx, c.target.Repo.Dirs)
	if err != nil {
		return nil, err
	}
	for _, h := range now {
		if h.Refuse {
			return refusedHazards("the repository's git configuration is refused", []hazard.Hazard{h}, "take it out"), nil
		}
	}
	fingerprint := hazard.Fingerprint(now)
	held := [2]string{c.target.Workspace.ID, fingerprint}
	if _, ok := c.seen.Load(held); ok {
		return nil, nil
	}
	var known, list string
	err = c.Store.View(ctx, func(r *store.Reader) (err error) {
		known, list, err = r.GitFingerprint(ctx, c.target.Workspace.ID, c.Self.Node)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case known == fingerprint:
		c.seen.Store(held, true)
		return nil, nil
	case known == "":
		list, err := json.Marshal(now) // What the first run of a workspace finds is accepted.
		if err != nil {
			return nil, err
		}
		c.stage(func(ctx context.Context, rt *store.RunTx) error {
			return rt.SaveGitFingerprint(ctx, c.target.Workspace.ID, c.Self.Node, fingerprint, string(list))
		})
		return nil, nil
	}
	var before []hazard.Hazard
	if err := json.Unmarshal([]byte(list), &before); err != nil {
		return nil, fmt.Errorf("read what was recorded of the git configuration: %w", err)
	}
	changed := hazard.Changed(before, now)
	end := refusedHazards(loop.GitChanged, changed, "if you did this, accept it; if not, undo it")
	end.cause.GitChange = true
	return end, nil
}

func refusedHazards(what string, changed []hazard.Hazard, fix string) *ending {
	var list []string
	for _, h := range changed {
		list = append(list, fmt.Sprintf("%s %s in %s (%s)", h.Kind, h.Key, h.Where, h.Why))
	}
	if len(list) == 0 {
		list = []string{"something that stood there is gone"}
	}
	return &ending{outcome: loop.OutcomeRefused, reason: loop.ReasonGitConfig, detail: fmt.Sprintf("%s: %s; %s", what, quoteList(list), fix)}
}
