package engine

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/site"
	"github.com/pawl-run/pawl/internal/store"
)

// ratchet holds a gate that passed against the same gate on the base: if fewer
// tests reported than there, or other ones, it has not passed. What reports on
// the base is asked once per base tree. A gate that counts nothing, and does
// not look as if it should, costs no second run; if it has ever been counted on
// the base, silence is no pass. The flag is what a human should know of a gate
// that passed all the same.
func (c *cycle) ratchet(ctx context.Context, w work, g gate.Check, res loop.GateResult) (_ loop.GateResult, flag string, err error) {
	if !res.Pass || c.run.BaseTree == "" {
		return res, "", nil
	}
	base, recorded, err := c.recordedTests(ctx, g)
	if err == nil && !recorded && (res.Tests != nil || res.Note != "") {
		base, err = c.baseTests(ctx, g)
	}
	if err != nil {
		return res, "", err
	}
	counts := known(base.TestCounts)
	res = gate.Judge(res, counts)
	res.Base = counts
	if !res.Pass || base.Names == nil || w.candidate.Tree == c.run.BaseTree {
		return res, "", nil
	}
	found, err := c.unreported(ctx, w, g, *base.Names, res.Names)
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
func (c *cycle) unreported(ctx context.Context, w work, g gate.Check, base, now loop.TestNames) (found gate.Unreported, err error) {
	files := &treeFiles{ctx: ctx, repo: c.t.Repo}
	defer func() { err = errors.Join(err, files.close()) }()
	return gate.Comparison{
		Line: g.Line, Base: base, Now: now, Tests: slices.ContainsFunc(w.compared.Changes, policy.Testing),
		BaseTree: func() (gate.Tree, error) { return files.of(c.run.BaseTree) },
		NowTree:  func() (gate.Tree, error) { return files.of(w.candidate.Tree) },
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

func (f *treeFiles) of(tree string) (gate.Tree, error) {
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
func (c *cycle) recordedTests(ctx context.Context, g gate.Check) (r loop.TestRecord, recorded bool, err error) {
	err = c.Store.View(ctx, func(v *store.Reader) (err error) {
		r, err = v.TestRecord(ctx, c.run.BaseTree, g.ID())
		return err
	})
	if errors.Is(err, loop.ErrNotFound) {
		return r, false, nil
	}
	return r, err == nil && (r.Names != nil || r.Format == ""), err
}

// baseTests is what a gate reports on the base.
func (c *cycle) baseTests(ctx context.Context, g gate.Check) (loop.TestRecord, error) {
	res, err := c.onBase(ctx, g)
	if err != nil {
		return loop.TestRecord{}, err
	}
	r := gate.Record(res)
	c.saveTests(c.run.BaseTree, g, r)
	return r, nil
}

// known is nil for a gate that is known to count nothing.
func known(counts loop.TestCounts) *loop.TestCounts {
	if counts.Format == "" {
		return nil
	}
	return &counts
}

// onBase runs one gate on a copy of the base.
func (c *cycle) onBase(ctx context.Context, g gate.Check) (res loop.GateResult, err error) {
	c.said.Note("%s is counted on the base, which happens once per base", g.Name)
	copied, err := c.copyOf(ctx, site.ForBase, c.run.BaseCommit)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, copied.Remove(context.WithoutCancel(ctx))) }()
	at, err := c.site().GatePlace(ctx, copied, true)
	if err != nil {
		return res, err
	}
	defer at.Done()
	res, err = c.site().RunGate(ctx, g, at, nil, io.Discard)
	c.run.Spent.Gates += res.Took
	return res, err
}

// saveTests records what a gate reported on a tree with the next commit. A tree
// that lands is the next base, and is counted already.
func (c *cycle) saveTests(tree string, g gate.Check, r loop.TestRecord) {
	c.stage(func(ctx context.Context, rt *store.RunTx) error {
		return rt.SaveTestRecord(ctx, tree, g.ID(), r)
	})
}

// freshCopy is a place for one more try of a gate, in which no earlier try left
// anything.
func (c *cycle) freshCopy(ctx context.Context) (site.Place, error) {
	if err := c.dropFresh(ctx); err != nil {
		return site.Place{}, err
	}
	fresh, err := c.copyOf(ctx, site.ForRetry, c.current().Candidate)
	if err != nil {
		return site.Place{}, err
	}
	c.fresh = fresh
	return c.site().GatePlace(ctx, fresh, false)
}

func (c *cycle) dropFresh(ctx context.Context) error {
	if c.fresh == nil {
		return nil
	}
	err := c.fresh.Remove(context.WithoutCancel(ctx))
	c.fresh = nil
	return err
}
