package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// accountOfState is the value of loop.ArgAccount for the commit of what a run has written
// into its memory, by the key commit_state.
const accountOfState = "state"

// isStateCommit reports whether an effect is the commit of what the run has written into its
// memory. It comes after all others, when its row says that the account of the run is
// recorded.
func isStateCommit(e loop.Effect) bool {
	return e.Kind == effect.KindMemoryCommit && e.Args[loop.ArgAccount] == accountOfState
}

// commitsState reports whether what the run writes into its memory becomes a commit. One
// that found nothing to do leaves that to the next one.
func (c *cycle) commitsState() bool {
	quiet := c.run.Outcome == loop.OutcomeQuiet && !c.memory.repaired
	return c.def.CommitState && c.run.Outcome != loop.OutcomePaused && !quiet
}

// commitState writes the account of the run into its memory and commits the files, if the
// definition says so. The account is recorded together with the request, and never a second
// time. Where the commit is not made the files stay as they are, and the next run takes them
// along.
func (c *cycle) commitState(ctx context.Context, effects []loop.Effect) ([]loop.Effect, error) {
	if !slices.ContainsFunc(effects, isStateCommit) {
		if !c.commitsState() {
			return effects, nil
		}
		b, why, err := c.stateBranch(ctx, effects)
		if err != nil {
			return effects, err
		}
		if why != "" {
			c.said.Note("what the run writes into its memory is not committed: %s", why)
			return effects, nil
		}
		if effects, err = c.recordAccount(ctx, b, effects); err != nil {
			return effects, err
		}
	}
	i := slices.IndexFunc(effects, isStateCommit)
	if i < 0 {
		return effects, nil // There is nothing to write.
	}
	e := &effects[i]
	if e.State == loop.EffectRequested || e.State == loop.EffectApplying {
		if err := errors.Join(c.outbox.acquire(), c.readState(e)); err != nil {
			return effects, err
		}
		kinds := c.Effects(c.target.Repo.MovedBy(fmt.Sprintf("%s fence %d", c.run.ID, c.run.Fence)))
		if err := c.outbox.applyEffect(ctx, kinds, e); err != nil {
			return effects, err
		}
	}
	switch commit := e.Result[effect.ResultCommit]; {
	case e.State != loop.EffectDone:
		c.outbox.noteUndone("the memory is not committed", e.Error)
	case commit != "":
		c.said.Note("the memory is committed to %s as %s", e.Args[effect.ArgBase], shortHash(commit))
	}
	return effects, nil
}

// stateBranch is the branch that is checked out, or says why it is not moved now.
func (c *cycle) stateBranch(ctx context.Context, effects []loop.Effect) (b git.Base, why string, err error) {
	if b, err = c.target.Repo.Base(ctx, ""); err != nil { // As in a repository without a commit: no failure of the run.
		return b, firstLine(err.Error()), nil
	}
	if b.Branch == "" {
		return b, "no branch is checked out", nil
	}
	var asked []loop.Approval
	var live []string
	err = c.Store.View(ctx, func(r *store.Reader) (err error) {
		if asked, err = r.Approvals(ctx, c.target.Workspace.ID, loop.PendingStates()...); err != nil {
			return err
		}
		live, err = c.runsOn(ctx, r, b.Commit)
		return err
	})
	if err != nil {
		return b, "", err
	}
	if a := c.approvalFor(effects); a != nil {
		asked = append(asked, *a)
	}
	for _, a := range asked {
		lands := a.Action.Kind == loop.ActionLand || a.Action.Kind == loop.ActionPullRequest
		if lands && a.Action.Base == b.Branch && a.Action.Onto == b.Commit && c.Now().Before(a.Expires) {
			return b, fmt.Sprintf("%s would move away from what %s was judged on; a run after the answer does it", b.Branch, a.Action.Branch), nil
		}
	}
	if len(live) > 0 {
		return b, fmt.Sprintf("%s works on what %s has; a later run does it", live[0], b.Branch), nil
	}
	return b, "", nil
}

// mostLive bounds the runs of a workspace among which those under way are looked for.
const mostLive = 100

// runsOn lists the runs of other loops that are under way on a commit and may propose
// something.
func (c *cycle) runsOn(ctx context.Context, r *store.Reader, commit string) (names []string, err error) {
	runs, err := r.WorkspaceRuns(ctx, c.target.Workspace.ID, 0, mostLive)
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run.LoopID == c.run.LoopID || run.BaseCommit != commit || run.State != loop.RunRunning && run.State != loop.RunSettling {
			continue
		}
		def, err := r.Definition(ctx, run.Definition)
		if err != nil {
			return nil, err
		}
		if def.Tier != loop.TierReport {
			names = append(names, fmt.Sprintf("%s#%d", def.Name, run.N))
		}
	}
	return names, nil
}

// recordAccount records what the run writes into its memory with the request to commit it,
// and writes it.
func (c *cycle) recordAccount(ctx context.Context, b git.Base, effects []loop.Effect) ([]loop.Effect, error) {
	changes := c.memory.closingChanges(ctx, effects, c.Now())
	paths := []string{}
	for _, ch := range changes {
		if (ch.Kind == loop.ChangeEdit || ch.Kind == loop.ChangeAppend) && !slices.Contains(paths, ch.Path) {
			paths = append(paths, ch.Path)
		}
	}
	if len(paths) == 0 {
		return effects, nil
	}
	encoded, err := json.Marshal(paths)
	if err != nil {
		return effects, err
	}
	c.outbox.request(loop.EffectRequest{Kind: effect.KindMemoryCommit, Key: c.run.ID + "/state", Args: map[string]string{
		effect.ArgBase: b.Branch, effect.ArgOnto: b.Commit, effect.ArgPaths: string(encoded), loop.ArgAccount: accountOfState,
		effect.ArgMessage: fmt.Sprintf("pawl: state of %s after run #%d (%s)", c.target.Loop.Name, c.run.N, c.run.Outcome),
		effect.ArgWhen:    c.Now().UTC().Format(time.RFC3339),
	}})
	if err := c.commit(ctx, loop.PhaseEffect, c.recordChanges(changes)); err != nil {
		return effects, err
	}
	if err := c.applyPending(ctx); err != nil {
		return effects, err
	}
	err = c.Store.View(ctx, func(r *store.Reader) (err error) {
		effects, err = r.Effects(ctx, c.run.ID)
		return err
	})
	return effects, err
}

// readState gives the commit of the memory what the files hold now: whatever a person has
// changed in them meanwhile is based on the same branch.
func (c *cycle) readState(e *loop.Effect) error {
	var paths []string
	if err := json.Unmarshal([]byte(e.Args[effect.ArgPaths]), &paths); err != nil {
		return fmt.Errorf("read the paths of effect %s: %w", e.Key, err)
	}
	files := map[string]string{}
	for _, path := range paths {
		file, err := c.loopFiles(c.target).Read(path)
		switch {
		case err != nil:
			c.said.Note("%s is not committed: %s", path, err)
		case file.Exists && !file.TooBig:
			files[path] = file.Content
		}
	}
	e.Args[effect.ArgFiles] = effect.EncodeFiles(files)
	return nil
}
