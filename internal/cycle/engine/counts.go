package engine

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// compareWithBase holds a gate that passed against the same gate on the base: if fewer
// tests reported than there, or other ones, it has not passed. What reports on
// the base is asked once per base tree. A gate that counts nothing, and does
// not look as if it should, costs no second run; if it has ever been counted on
// the base, silence is not a pass. The flag is what a human should know of a gate
// that passed all the same.
func (j *judge) compareWithBase(ctx context.Context, w work, g runenv.Gate, res loop.GateResult) (_ loop.GateResult, flag string, err error) {
	if !res.Pass || j.run.BaseTree == "" || g.Check().Kind != loop.GateCommand {
		return res, "", nil
	}
	base, recorded, err := j.recordedTests(ctx, g)
	if err == nil && !recorded && (res.Tests != nil || res.Note != "") {
		base, err = j.baseTests(ctx, g)
	}
	if err != nil {
		return res, "", err
	}
	counts := countsOf(base.TestCounts)
	res = gate.Judge(res, counts)
	res.Base = counts
	if !res.Pass || base.Names == nil || w.candidate.Tree == j.run.BaseTree {
		return res, "", nil
	}
	found, err := j.unreported(ctx, w, g, *base.Names, res.Names)
	if err != nil {
		return res, "", err
	}
	if why := found.Objection(); why != "" {
		res.Pass, res.Note = false, why
	}
	return res, found.Flag(), nil
}

// unreported compares the tests that a gate named on the candidate with those
// of the base.
func (j *judge) unreported(ctx context.Context, w work, g runenv.Gate, base, now loop.TestNames) (found gate.Unreported, err error) {
	files := &treeFiles{ctx: ctx, repo: j.target.Repo}
	defer func() { err = errors.Join(err, files.close()) }()
	return gate.Comparison{
		Line: g.Check().Line, Base: base, Now: now, Tests: slices.ContainsFunc(w.compared.Changes, policy.Testing),
		BaseTree: func() (gate.Tree, error) { return files.readTree(j.run.BaseTree) },
		NowTree:  func() (gate.Tree, error) { return files.readTree(w.candidate.Tree) },
	}.Unreported()
}

// treeFiles reads files of trees as the object store has them.
type treeFiles struct {
	ctx   context.Context //nolint:containedctx // It lives for one comparison.
	repo  *git.Repo
	blobs *object.Blobs // nil until somebody asks
}

// maxSource bounds a file that is read for its tests. A larger one holds none.
const maxSource = 4 << 20

func (f *treeFiles) readTree(tree string) (gate.Tree, error) {
	if f.blobs == nil {
		blobs, err := f.repo.Blobs(f.ctx)
		if err != nil {
			return gate.Tree{}, err
		}
		f.blobs = blobs
	}
	entries, err := f.repo.List(f.ctx, tree)
	if err != nil {
		return gate.Tree{}, err
	}
	ids := make(map[string]string, len(entries))
	t := gate.Tree{Read: func(path string) ([]byte, error) { return f.blobs.Read(ids[path]) }}
	for _, e := range entries {
		if (e.Mode == object.ModeFile || e.Mode == object.ModeExec) && e.Size <= maxSource {
			t.Paths, ids[e.Path] = append(t.Paths, e.Path), e.ID
		}
	}
	return t, nil
}

func (f *treeFiles) close() error {
	if f.blobs == nil {
		return nil
	}
	return f.blobs.Close()
}

// recordedTests is what a gate was found to report on the base before, and
// whether that is known at all. Counts without names are records of an older
// version, and are made anew.
func (j *judge) recordedTests(ctx context.Context, g runenv.Gate) (r loop.TestRecord, recorded bool, err error) {
	r, recorded, err = j.recordOf(ctx, j.run.BaseTree, g)
	return r, recorded && (r.Names != nil || r.Format == ""), err
}

// recordOf is what a gate said about a tree, in this run or before.
func (j *judge) recordOf(ctx context.Context, tree string, g runenv.Gate) (r loop.TestRecord, recorded bool, err error) {
	id, err := j.gateID(ctx, g)
	if err != nil {
		return r, false, err
	}
	r, inThisRun := j.records[[2]string{tree, id}]
	if !inThisRun {
		err = j.Store.View(ctx, func(v *store.Reader) (err error) {
			r, err = v.TestRecord(ctx, tree, id)
			return err
		})
	}
	if errors.Is(err, loop.ErrNotFound) {
		return r, false, nil
	}
	if r.Result != nil { // Two gates may be one command.
		res := *r.Result
		res.Name, res.Known = g.Check().Name, res.Known || !inThisRun
		r.Result = &res
	}
	return r, err == nil, err
}

// gateID is the same for the same gate as long as nothing but the tree decides what
// it says.
func (j *judge) gateID(ctx context.Context, g runenv.Gate) (string, error) {
	tools, err := j.runEnv().Toolset(ctx)
	if err != nil {
		return "", err
	}
	d := j.def
	return g.Check().ID(j.target.Workspace.ID, d.Sandbox, d.Setup, d.History, d.Flaky, strings.Join(d.Env, "\x00"), strings.Join(d.Network, "\x00"), tools.Digest(j.Environ)), nil
}

// baseTests is what a gate reports on the base.
func (j *judge) baseTests(ctx context.Context, g runenv.Gate) (loop.TestRecord, error) {
	res, err := j.onBase(ctx, g)
	if err != nil {
		return loop.TestRecord{}, err
	}
	return j.saveTests(ctx, j.run.BaseTree, g, res)
}

// countsOf is nil for a gate that is known to count nothing.
func countsOf(counts loop.TestCounts) *loop.TestCounts {
	if counts.Format == "" {
		return nil
	}
	return &counts
}

// onBase runs one gate on a copy of the base.
func (j *judge) onBase(ctx context.Context, g runenv.Gate) (res loop.GateResult, err error) {
	if j.firing.Tried.Commit == j.run.BaseCommit {
		for _, res := range j.firing.Tried.Gates {
			if res.Name == g.Check().Name {
				res.Evidence, res.Note = j.said.Hide(res.Evidence), j.said.Hide(res.Note)
				return res, nil
			}
		}
	}
	j.said.Note("running %s on the base, which happens once per tree", g.Check().Name)
	copied, err := j.tree.copyOf(ctx, runenv.ForBase, j.run.BaseCommit)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, copied.Remove(context.WithoutCancel(ctx))) }()
	s := j.runEnv()
	if s.Iteration == 0 {
		s.Iteration, s.Step = 1, "the gates on the base" // The environment is that of an iteration.
	}
	at, err := s.GatePlace(ctx, copied, true)
	if err != nil {
		return res, err
	}
	defer at.Done()
	res, err = s.RunGate(ctx, g, at, nil, io.Discard)
	j.run.Spent.Gates += res.Took
	res.Evidence, res.Note = j.said.Hide(res.Evidence), j.said.Hide(res.Note)
	return res, err
}

// saveTests records what a gate said about a tree with the next commit. A tree
// that lands is the next base, and is known already. What could not start says
// nothing about the tree, nor does what was stopped.
func (j *judge) saveTests(ctx context.Context, tree string, g runenv.Gate, res loop.GateResult) (loop.TestRecord, error) {
	r := gate.Record(res)
	id, err := j.gateID(ctx, g)
	if why, _ := gate.Obstacle(res, j.def); err != nil || why != "" || ctx.Err() != nil || gate.Stopped(res) {
		return r, err
	}
	j.records[[2]string{tree, id}] = r
	j.stage(func(ctx context.Context, rt *store.RunTx) error {
		return rt.SaveTestRecord(ctx, tree, id, r)
	})
	return r, nil
}

// freshCopy is a place for one more try of a gate, in which no earlier try left
// anything.
func (j *judge) freshCopy(ctx context.Context) (runenv.Place, error) {
	if err := j.dropFresh(ctx); err != nil {
		return runenv.Place{}, err
	}
	fresh, err := j.tree.copyOf(ctx, runenv.ForRetry, j.current().Candidate)
	if err != nil {
		return runenv.Place{}, err
	}
	j.fresh = fresh
	return j.runEnv().GatePlace(ctx, fresh, false)
}

func (j *judge) dropFresh(ctx context.Context) error {
	if j.fresh == nil {
		return nil
	}
	err := j.fresh.Remove(context.WithoutCancel(ctx))
	j.fresh = nil
	return err
}
