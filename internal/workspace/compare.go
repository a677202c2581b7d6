package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/policy"
)

// How much content Compare holds in memory. What is over it has a size and no
// text.
const (
	maxText  = 4 << 20  // bytes of one file
	maxTexts = 64 << 20 // bytes of all
)

// Comparison is what differs between two trees, as package policy judges it.
type Comparison struct {
	Changes []policy.Change // sorted by path; a rename is a deletion and an addition
	Tree    []string        // all paths of the first tree
}

// Compare reads from the repository by what the tree or commit to differs from
// the tree or commit from. It is what git would land, with nothing that only a
// directory knows: no bits but the executable one, no attributes, no owners.
func Compare(ctx context.Context, repo *git.Repo, from, to string) (Comparison, error) {
	c, err := compare(ctx, repo, from, to)
	if err != nil {
		return Comparison{}, fmt.Errorf("compare tree %s with %s: %w", to, from, err)
	}
	return c, nil
}

func compare(ctx context.Context, repo *git.Repo, from, to string) (Comparison, error) {
	blobs, err := repo.Blobs(ctx)
	if err != nil {
		return Comparison{}, err
	}
	defer blobs.Close()
	_, before, err := blobs.Tree(from)
	if err != nil {
		return Comparison{}, err
	}
	_, after, err := blobs.Tree(to)
	if err != nil {
		return Comparison{}, err
	}
	var c Comparison
	for _, e := range before {
		c.Tree = append(c.Tree, e.Path)
	}
	var want wanted
	c.Changes = want.pairs(before, after)
	return c, want.read(blobs, c.Changes)
}

// wanted are the contents to be asked for, and where they go.
type wanted struct {
	ids    []string
	places []place
}

type place struct {
	change int
	now    bool
}

// pairs lists what differs in mode or content.
func (w *wanted) pairs(before, after []git.Entry) []policy.Change {
	old := make(map[string]git.Entry, len(before))
	for _, e := range before {
		old[e.Path] = e
	}
	var changes []policy.Change
	ids := map[string][2]string{}
	for _, e := range after {
		was, known := old[e.Path]
		delete(old, e.Path)
		if known && was.ID == e.ID && modeIn(was) == modeIn(e) {
			continue
		}
		change := policy.Change{Path: e.Path, New: policy.File{Mode: modeIn(e)}}
		if known {
			change.Old.Mode = modeIn(was)
		}
		changes, ids[e.Path] = append(changes, change), [2]string{was.ID, e.ID}
	}
	for path, e := range old {
		changes, ids[path] = append(changes, policy.Change{Path: path, Old: policy.File{Mode: modeIn(e)}}), [2]string{e.ID, ""}
	}
	slices.SortFunc(changes, func(a, b policy.Change) int { return cmp.Compare(a.Path, b.Path) })
	for i, c := range changes {
		w.want(place{i, false}, c.Old, ids[c.Path][0])
		w.want(place{i, true}, c.New, ids[c.Path][1])
	}
	return changes
}

// modeIn is the mode of an entry as git gives it today. Policy refuses what
// git has none for.
func modeIn(e git.Entry) uint32 {
	if mode, err := plainMode(e); err == nil {
		return mode
	}
	return e.Mode
}

// want asks for the content of one side. A submodule has none.
func (w *wanted) want(at place, side policy.File, id string) {
	if side.Mode != 0 && side.Mode != git.ModeGitlink {
		w.ids, w.places = append(w.ids, id), append(w.places, at)
	}
}

func (w *wanted) read(blobs *git.Blobs, changes []policy.Change) error {
	left := int64(maxTexts)
	return blobs.Each(w.ids, func(i int, size int64, r io.Reader) error {
		side := &changes[w.places[i].change].Old
		if w.places[i].now {
			side = &changes[w.places[i].change].New
		}
		side.Size = size
		if size > min(maxText, left) {
			return nil
		}
		left -= size
		text := make([]byte, size)
		_, err := io.ReadFull(r, text)
		side.Text = string(text)
		return err
	})
}
