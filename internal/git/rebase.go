package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
)

// Replay is one change that is to be made again on top of another commit.
type Replay struct {
	Base    string // what the change was made to; empty means the first parent of Commit
	Commit  string // what it led to
	Onto    string // what it is to be made to
	Message string // of the new commit; empty means that of Commit
	When    time.Time
	Parents []string                                       // of the new commit; nil means Onto alone
	Settled []object.FileChange                            // paths whose outcome is decided already, whatever the two sides have
	Hold    func(ctx context.Context, commit string) error // puts a ref on the candidate, as in object.Draft
}

// Rebase makes the change from Base to Commit again on Onto, by a three-way
// merge of trees and lines that uses no checkout, index, ref, attribute or
// merge driver. Renames are not followed: a file that one side changed and the
// other renamed is in conflict. Every path in conflict is listed, sorted, and
// then there is no candidate; nothing is written to refs either way. A change
// that Onto holds already gives a candidate with the tree of Onto.
func (r *Repo) Rebase(ctx context.Context, p Replay) (c object.Candidate, conflicts []string, err error) {
	defer func() {
		if err != nil {
			c, conflicts, err = object.Candidate{}, nil, fmt.Errorf("rebase %s onto %s: %w", p.Commit, p.Onto, err)
		}
	}()
	if err := r.fillDefaults(ctx, &p); err != nil {
		return object.Candidate{}, nil, err
	}
	changed, err := r.changedPaths(ctx, p.Base, p.Commit)
	if err != nil {
		return object.Candidate{}, nil, err
	}
	onto, err := r.List(ctx, p.Onto)
	if err != nil {
		return object.Candidate{}, nil, err
	}
	m := newMerge(r, onto)
	m.changes = slices.Clone(p.Settled)
	for _, t := range changed {
		if !slices.ContainsFunc(p.Settled, func(c object.FileChange) bool { return c.Path == t.path }) {
			m.planPath(t)
		}
	}
	m.findCollisions()
	defer func() { _ = os.RemoveAll(m.scratch) }()
	if err := m.mergeContents(ctx); err != nil {
		return object.Candidate{}, nil, err
	}
	if len(m.conflicts) > 0 {
		return object.Candidate{}, slices.Sorted(maps.Keys(m.conflicts)), nil
	}
	c, err = r.Candidate(ctx, object.Draft{Base: p.Onto, Parents: p.Parents, Changes: m.changes, Message: p.Message, When: p.When, Hold: p.Hold})
	return c, nil, err
}

// fillDefaults sets the fields that are empty.
func (r *Repo) fillDefaults(ctx context.Context, p *Replay) error {
	for _, id := range []string{p.Commit, p.Onto} {
		if err := r.Format.Check(id); err != nil {
			return err
		}
	}
	if p.Base == "" {
		parent, err := r.Parent(ctx, p.Commit)
		if err != nil {
			return err
		}
		p.Base = parent.Commit
	}
	if p.Message != "" {
		return nil
	}
	body, err := r.git.Output(ctx, nil, "cat-file", "commit", p.Commit)
	_, message, _ := bytes.Cut(body, []byte("\n\n"))
	p.Message = string(message)
	return err
}

// merge is the change that is being made again.
type merge struct {
	repo      *Repo
	onto      map[string]object.Entry
	changes   []object.FileChange
	both      []threeWay
	conflicts map[string]struct{} // paths
	scratch   string              // holds merged contents until the candidate is written
}

// threeWay is a file whose content changed on both sides.
type threeWay struct {
	path            string
	base, ours, now object.Entry
}

func newMerge(r *Repo, onto []object.Entry) *merge {
	m := &merge{repo: r, onto: make(map[string]object.Entry, len(onto)), conflicts: map[string]struct{}{}}
	for _, e := range onto {
		e.Mode, e.Size = object.PlainMode(e.Mode), 0
		m.onto[e.Path] = e
	}
	return m
}

// planPath decides one path by the trees, or leaves it to mergeContents.
func (m *merge) planPath(t changedPath) {
	ours := m.onto[t.path]
	switch {
	case ours == t.now:
	case ours == t.old && t.now.ID == "":
		m.changes = append(m.changes, object.FileChange{Path: t.path, Delete: true})
	case ours == t.old:
		m.changes = append(m.changes, object.FileChange{Path: t.path, Mode: t.now.Mode, ID: t.now.ID})
	case isRegular(t.old) && isRegular(ours) && isRegular(t.now):
		m.both = append(m.both, threeWay{path: t.path, base: t.old, ours: ours, now: t.now})
	default:
		m.conflicts[t.path] = struct{}{}
	}
}

func isRegular(e object.Entry) bool { return e.Mode == object.ModeFile || e.Mode == object.ModeExec }

// findCollisions finds files that would be where Onto has a directory, or below one
// of its files.
func (m *merge) findCollisions() {
	dirs := map[string]bool{}
	after := maps.Clone(m.onto)
	for _, c := range m.changes {
		if c.Delete {
			delete(after, c.Path)
			continue
		}
		after[c.Path] = object.Entry{}
	}
	for p := range after {
		for i := range len(p) {
			if p[i] == '/' {
				dirs[p[:i]] = true
			}
		}
	}
	for _, c := range m.changes {
		if c.Delete {
			continue
		}
		if dirs[c.Path] {
			m.conflicts[c.Path] = struct{}{}
		}
		for i := range len(c.Path) {
			if _, file := after[c.Path[:i]]; c.Path[i] == '/' && file {
				m.conflicts[c.Path] = struct{}{}
			}
		}
	}
}

// mergeContents merges the files that changed on both sides, line by line.
func (m *merge) mergeContents(ctx context.Context) (err error) {
	if len(m.both) == 0 {
		return nil
	}
	if m.scratch, err = os.MkdirTemp("", "pawl-merge-"); err != nil {
		return err
	}
	blobs, err := m.repo.Blobs(ctx)
	if err != nil {
		return err
	}
	for i, f := range m.both {
		if err = m.mergeContent(ctx, blobs, i, f); err != nil {
			break
		}
	}
	return errors.Join(err, blobs.Close())
}

func (m *merge) mergeContent(ctx context.Context, blobs *object.Blobs, i int, f threeWay) error {
	change := object.FileChange{Path: f.path, Mode: mergeValue(f.base.Mode, f.ours.Mode, f.now.Mode)}
	if id := mergeValue(f.base.ID, f.ours.ID, f.now.ID); id != "" {
		change.ID = id
		m.changes = append(m.changes, change)
		return nil
	}
	dir := filepath.Join(m.scratch, fmt.Sprint(i))
	text, err := m.writeSides(blobs, dir, f)
	if err != nil {
		return err
	}
	if !text {
		m.conflicts[f.path] = struct{}{}
		return nil
	}
	change.From = filepath.Join(dir, "ours")
	clean, err := m.mergeFile(ctx, dir)
	if err != nil {
		return err
	}
	if !clean {
		m.conflicts[f.path] = struct{}{}
		return nil
	}
	m.changes = append(m.changes, change)
	return nil
}

// mergeValue returns the side that changed, or the zero value if both changed
// differently.
func mergeValue[T comparable](base, ours, now T) T {
	switch {
	case ours == base || ours == now:
		return now
	case now == base:
		return ours
	}
	var none T
	return none
}

// writeSides writes the three contents into dir. It reports false if one of them
// is binary or too large to be merged by lines.
func (m *merge) writeSides(blobs *object.Blobs, dir string, f threeWay) (text bool, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return false, err
	}
	names, text := []string{"base", "ours", "now"}, true
	err = blobs.Each([]string{f.base.ID, f.ours.ID, f.now.ID}, func(i int, size int64, content io.Reader) error {
		if size > object.MaxBlob {
			text = false
			return nil
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(content, data); err != nil {
			return err
		}
		if bytes.IndexByte(data, 0) >= 0 {
			text = false
		}
		return os.WriteFile(filepath.Join(dir, names[i]), data, 0o600)
	})
	return text, err
}

// mergeFile merges into the file ours. Git is told of no repository, so that
// there is no configuration.
func (m *merge) mergeFile(ctx context.Context, dir string) (clean bool, err error) {
	outside := m.repo.git.Without("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE").With("GIT_CEILING_DIRECTORIES=" + m.scratch)
	outside.Dir = dir
	_, err = outside.Output(ctx, nil, "merge-file", "--quiet", "ours", "base", "now")
	// The status is the number of conflicts, or 255 if git could not merge.
	if n := program.Status(err); n > 0 && n < 255 {
		return false, nil
	}
	return err == nil, err
}
