package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// recentRuns is how many earlier runs a protocol sees.
const recentRuns = 5

var beforeOpen = fault.New("engine.rehydrate.open.before")

// memory is what the protocol remembers of the loop.
type memory struct {
	*heldRun
	agent    *agentSide
	outbox   *outbox
	session  Session         // nil: not opened yet
	answered map[string]bool // keys of waiting steps → their approval has an answer
	repaired bool            // the memory was repaired
}

// rehydrate finishes what an earlier process left of the memory, opens it, and
// makes repairs durable before anything is sensed.
func (m *memory) rehydrate(ctx context.Context) (*ending, error) {
	m.enterPhase(loop.PhaseRehydrate)
	v, err := m.readLoop(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.applyPending(ctx); err != nil {
		return nil, err
	}
	if err := beforeOpen.Hit(ctx); err != nil {
		return nil, err
	}
	if end := m.open(ctx, v); end != nil {
		return end, nil
	}
	landed, err := m.outbox.landOwed(ctx)
	if err != nil {
		return nil, err
	}
	if again, err := m.outbox.applyOwed(ctx, m.session); err != nil || again || landed {
		if err != nil {
			return nil, err
		}
		m.run.BaseCommit = "" // The branch may have moved.
		if v, err = m.readLoop(ctx); err != nil {
			return nil, err
		}
		if end := m.open(ctx, v); end != nil {
			return end, nil
		}
	}
	return m.applyRepairs(ctx)
}

// open opens the protocol's memory, or says how a run ends that cannot.
func (m *memory) open(ctx context.Context, v View) *ending {
	// A branch that has moved without its checkout would make old files look like new ones.
	if err := m.target.Repo.FinishAdvance(ctx); err != nil {
		return &ending{outcome: loop.OutcomeFailed, reason: loop.ReasonMemory, detail: err.Error()}
	}
	session, err := m.target.Protocol.Open(ctx, v)
	if stop, ok := errors.AsType[*OpenError](err); ok {
		return &ending{outcome: stop.Outcome, reason: stop.Reason, detail: stop.Detail}
	}
	if err != nil {
		return &ending{outcome: loop.OutcomeFailed, reason: loop.ReasonMemory, detail: err.Error()}
	}
	m.session = session
	if s, ok := session.(DiscardedFiles); ok {
		m.outbox.tree.discards = s.Discards()
	}
	return nil
}

// resolveBase resolves what the run works on, the tip of its base branch, when it is
// first needed: a run that finds nothing to do does not ask git anything.
func (h *heldRun) resolveBase(ctx context.Context) error {
	if h.run.BaseCommit != "" {
		return nil
	}
	b, err := h.target.Repo.Base(ctx, h.def.Base)
	if err != nil {
		return err
	}
	if again := h.run.Overrides.Base; again != "" {
		b.Commit = again
		if b.Tree, err = h.target.Repo.TreeOf(ctx, again); err != nil {
			return err
		}
	}
	h.run.BaseCommit, h.run.BaseTree, h.baseBranch = b.Commit, b.Tree, b.Branch
	return nil
}

// findBranchAgain finds the branch of a run that was taken over, of which only the commit
// is recorded, and the effects that it has asked for. Another branch may have been checked
// out since: if it has the commit as well, its files in the checkout are those of the run.
func (h *heldRun) findBranchAgain(ctx context.Context) error {
	var effects []loop.Effect
	err := h.Store.View(ctx, func(r *store.Reader) (err error) {
		effects, err = r.Effects(ctx, h.run.ID)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range effects {
		switch e.Kind {
		case effect.KindMemoryCommit, effect.KindMemoryPush, effect.KindMemoryPull, effect.KindBranchPush:
			h.baseBranch = e.Args[effect.ArgBase]
			return nil
		}
	}
	b, err := h.target.Repo.Base(ctx, h.def.Base)
	if err != nil || b.Branch == "" {
		return err
	}
	has := b.Commit == h.run.BaseCommit
	if !has {
		has, err = h.target.Repo.Contains(ctx, b.Commit, h.run.BaseCommit)
	}
	if err == nil && !has {
		err = fmt.Errorf("%s does not have the commit %s that the run began from; another branch was checked out since", b.Branch, h.run.BaseCommit)
	}
	if err == nil {
		h.baseBranch = b.Branch
	}
	return err
}

// history reads commits; an empty revision is the run's base.
type history struct{ *heldRun }

// Base implements History.
func (h history) Base(ctx context.Context) (b git.Base, checkedOut bool, err error) {
	if err := h.resolveBase(ctx); err != nil {
		return b, false, err
	}
	if h.baseBranch == "" {
		if err := h.findBranchAgain(ctx); err != nil {
			return b, false, err
		}
	}
	b = git.Base{Branch: h.baseBranch, Commit: h.run.BaseCommit, Tree: h.run.BaseTree}
	if h.def.Base == "" && !h.taken && h.run.State == loop.RunRunning {
		return b, true, nil // The branch was that of HEAD a moment ago.
	}
	head, err := h.target.Repo.Base(ctx, "")
	return b, err == nil && head.Branch == b.Branch, err
}

// Commits implements History.
func (h history) Commits(ctx context.Context, path string, most int) ([]git.Commit, error) {
	if err := h.resolveBase(ctx); err != nil {
		return nil, err
	}
	return h.target.Repo.History(ctx, h.run.BaseCommit, "", path, most)
}

// Differs implements History.
func (h history) Differs(ctx context.Context, files map[string]string) (paths []string, err error) {
	if err := h.resolveBase(ctx); err != nil {
		return nil, err
	}
	blobs, err := h.target.Repo.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	names := slices.Sorted(maps.Keys(files))
	asked := make([]string, len(names))
	for i, name := range names {
		asked[i] = h.run.BaseCommit + ":" + name
	}
	found, err := blobs.Resolve(asked...)
	for i, o := range found {
		if o.ID != h.target.Repo.Format.HashBytes([]byte(files[names[i]])) {
			paths = append(paths, names[i])
		}
	}
	return paths, err
}

// Stashes implements History.
func (h history) Stashes(ctx context.Context, most int) ([]string, error) {
	return h.target.Repo.Stashes(ctx, most)
}

// askPatience is how long a remote may take to say where its branch is.
const askPatience = 10 * time.Second

// Behind implements History.
func (h history) Behind(ctx context.Context, remote string) (bool, error) {
	if err := h.resolveBase(ctx); err != nil {
		return false, err
	}
	address, err := h.target.Repo.RemoteURL(remote)
	if errors.Is(err, loop.ErrNotFound) || h.baseBranch == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	at, there, err := h.target.Repo.RemoteRef(ctx, git.Remote{URL: address, Environ: h.Environ, Local: true}, effect.BranchRef(h.baseBranch))
	if err != nil || !there || at == h.run.BaseCommit {
		return false, err
	}
	known, err := h.target.Repo.Contains(ctx, h.run.BaseCommit, at)
	if errors.Is(err, loop.ErrNotFound) {
		return true, nil
	}
	return !known && err == nil, err
}

// Unpushed implements History.
func (h history) Unpushed(ctx context.Context, remote string, most int) ([]git.Commit, error) {
	if err := h.resolveBase(ctx); err != nil || h.baseBranch == "" {
		return nil, err
	}
	seen, there, err := h.target.Repo.Ref(ctx, effect.TrackingRef(remote, h.baseBranch))
	if err != nil || !there || seen == h.run.BaseCommit {
		return nil, err
	}
	return h.target.Repo.History(ctx, h.run.BaseCommit, seen, "", most)
}

// Show implements History.
func (h history) Show(ctx context.Context, rev, path string) ([]byte, error) {
	if rev == "" {
		if err := h.resolveBase(ctx); err != nil {
			return nil, err
		}
		rev = h.run.BaseCommit
	}
	return h.target.Repo.Show(ctx, rev, path)
}

// readLoop reads all that is known of the loop in one view: rows for the protocol,
// answers of humans, and file changes that no process is known to have applied.
func (m *memory) readLoop(ctx context.Context) (View, error) {
	v := View{
		Loop: m.target.Loop, Root: m.target.Workspace.Root, Definition: m.def, Run: m.run, Files: m.loopFiles(m.target), History: history{m.heldRun}, Mail: mail{m.heldRun}, Rows: rows{m.heldRun}, Results: results{m.heldRun}, Now: m.Now(),
		Answers: map[string]string{}, Ending: m.taken || m.run.State == loop.RunSettling,
	}
	err := m.Store.View(ctx, func(r *store.Reader) error {
		s, err := r.LoopState(ctx, m.target.Loop.ID, m.Self.Node, recentRuns+1, m.agent.holdSubjects()...)
		if err != nil {
			return err
		}
		m.pending, v.Steps, v.Recent = s.Pending, s.Steps, s.Runs
		if err := m.agent.applyHolds(ctx, r, s.Holds); err != nil {
			return err
		}
		if err := readQuestions(ctx, r, &v); err != nil {
			return err
		}
		return m.readAnswers(ctx, r, v.Steps)
	})
	for len(v.Recent) > 0 && v.Recent[0].N >= m.run.N {
		v.Recent = v.Recent[1:]
	}
	v.Steps = withoutIdleTime(v.Steps, len(v.Recent) > 0 && v.Recent[0].Outcome == loop.OutcomeQuiet, v.Now)
	for _, s := range v.Steps {
		m.steps[s.Key] = s
	}
	if len(v.Recent) > 0 && m.run.State == loop.RunRunning {
		m.run.Readiness = v.Recent[0].Readiness
	}
	return v, err
}

// withoutIdleTime puts off when steps began by the time since they were last worked on, if
// they wait for a person, or runs have looked since and found nothing to do.
func withoutIdleTime(steps []loop.Step, quiet bool, now time.Time) []loop.Step {
	steps = slices.Clone(steps)
	for i, s := range steps {
		if !s.Begun.IsZero() && (quiet || s.State == loop.StepWaiting) {
			steps[i].Begun = s.Begun.Add(max(0, now.Sub(s.Updated)))
		}
	}
	return steps
}

// sayRemarks notes what the session has found since it was asked last.
func (m *memory) sayRemarks() {
	if s, ok := m.session.(StepRemarks); ok {
		for _, text := range s.Remarks() {
			m.said.Note("%s", text)
		}
	}
}

// rows are those of the workspace of a run.
type rows struct{ *heldRun }

// List implements Rows.
func (h rows) List(ctx context.Context, q loop.RowQuery) (list []loop.Row, err error) {
	err = h.Store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.Rows(ctx, h.target.Loop.WorkspaceID, q)
		return err
	})
	return list, err
}

// readAnswers finds out which waiting steps a human has answered.
func (m *memory) readAnswers(ctx context.Context, r *store.Reader, steps []loop.Step) error {
	for _, s := range steps {
		if s.State != loop.StepWaiting {
			continue
		}
		a, err := r.Approval(ctx, s.WaitsFor)
		if errors.Is(err, loop.ErrNotFound) && m.run.State == loop.RunSettling {
			continue // The last transaction of the run asks it, and was not made.
		}
		if err != nil {
			return fmt.Errorf("step %q waits for an approval: %w", s.Title, err)
		}
		m.answered[s.Key] = !a.Pending(m.Now())
	}
	return nil
}

// applyRepairs makes recovery changes durable and applies them. A memory that a person
// has to look at ends the run.
func (m *memory) applyRepairs(ctx context.Context) (end *ending, err error) {
	var changes []loop.Change
	if s, ok := m.session.(MemoryNotes); ok {
		for _, text := range s.Notes() {
			m.said.Note("%s", text)
		}
	}
	for _, r := range m.session.Recovered() {
		changes = append(changes, r.Changes...)
		m.said.Note("recovered: %s", r.Note)
		if r.Escalate != "" {
			end = &ending{outcome: loop.OutcomeEscalated, reason: loop.ReasonMemory, detail: r.Escalate}
		}
	}
	m.sayRemarks()
	if len(changes) == 0 {
		return end, nil
	}
	if err := loop.CheckChanges(changes); err != nil {
		return nil, fmt.Errorf("repair the loop's memory: %w", err)
	}
	err = m.commit(ctx, loop.PhaseRehydrate, m.recordChanges(changes))
	if m.repaired = !notWritten(err); !m.repaired {
		m.session = nil // It takes for repaired what is not.
	}
	if err != nil {
		return nil, err
	}
	return end, m.applyPending(ctx)
}

// recordChanges is the part of a transaction that makes changes of the memory
// durable: rows at once, files as pending changes. A row of a protocol that somebody else
// has changed stays as it is.
func (h *heldRun) recordChanges(changes []loop.Change) write {
	return h.recordClaims(changes, func(row loop.Row) error {
		h.lost = append(h.lost, row)
		return nil
	})
}

// recordClaims is recordChanges that asks taken about a row that somebody else has changed.
func (h *heldRun) recordClaims(changes []loop.Change, taken func(loop.Row) error) write {
	return func(ctx context.Context, rt *store.RunTx) error {
		var ofFiles []loop.Change
		for _, ch := range changes {
			var err error
			switch ch.Kind {
			case loop.ChangeStep:
				err = rt.SaveStep(ctx, *ch.Step)
				h.steps[ch.Step.Key] = *ch.Step
			case loop.ChangeDeliver:
				err = h.deliver(ctx, rt, *ch.Delivery)
			case loop.ChangeReceive:
				err = rt.Receive(ctx, *ch.Delivery)
			case loop.ChangeRow:
				err = rt.ChangeRow(ctx, h.target.Loop.WorkspaceID, *ch.Row)
				if errors.Is(err, loop.ErrRowChanged) {
					err = taken(*ch.Row)
				}
			case loop.ChangeEdit, loop.ChangeAppend, loop.ChangeAside, loop.ChangeCommit, loop.ChangePush:
				ofFiles = append(ofFiles, ch)
			}
			if err != nil {
				return err
			}
		}
		pending, err := rt.RecordChanges(ctx, ofFiles)
		h.pending = append(h.pending, pending...)
		return err
	}
}
