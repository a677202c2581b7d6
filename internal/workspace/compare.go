package workspace

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
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
	Beside  []string        // what both trees hold in the folders of changed paths, for policy.Scope.Check
	Files   int             // in the first tree; policy.ManyFiles or more mean that there are no fewer

	// Before is what the first tree holds at the changed paths, with the modes
	// that Changes have.
	Before map[string]object.Entry
}

// Compare reads from the repository by what the tree or commit to differs from
// the tree or commit from. It is what git would land, with nothing that only a
// directory knows: no bits but the executable one, no attributes, no owners.
// Folders that are the same in both are not read.
func Compare(ctx context.Context, repo *git.Repo, from, to string) (Comparison, error) {
	c, err := compareTrees(ctx, repo, from, to)
	if err != nil {
		return Comparison{}, fmt.Errorf("compare tree %s with %s: %w", to, from, err)
	}
	return c, nil
}

func compareTrees(ctx context.Context, repo *git.Repo, from, to string) (Comparison, error) {
	blobs, err := repo.Blobs(ctx)
	if err != nil {
		return Comparison{}, err
	}
	defer blobs.Close()
	d, err := blobs.Differ(from, to, math.MaxInt, policy.ManyFiles)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Beside: d.Beside, Files: d.Files, Before: map[string]object.Entry{}}
	var want wanted
	for _, p := range d.Paths {
		p.Old.Mode, p.New.Mode = modeIn(p.Old), modeIn(p.New)
		if p.Old == p.New {
			continue // Old versions of git wrote modes that mean the same.
		}
		if p.Old.Mode != 0 {
			c.Before[p.Path] = p.Old
		}
		want.addPair(len(c.Changes), p)
		c.Changes = append(c.Changes, policy.Change{Path: p.Path, Old: policy.File{Mode: p.Old.Mode}, New: policy.File{Mode: p.New.Mode}})
	}
	return c, want.readContents(blobs, c.Changes)
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

func (w *wanted) addPair(change int, d object.Difference) {
	w.addSide(place{change, false}, d.Old)
	w.addSide(place{change, true}, d.New)
}

// modeIn is the mode of an entry as git gives it today. Policy refuses what
// git has none for.
func modeIn(e object.Entry) uint32 {
	if mode, err := plainMode(e); err == nil {
		return mode
	}
	return e.Mode
}

// addSide asks for the content of one side. A submodule has none.
func (w *wanted) addSide(at place, side object.Entry) {
	if side.Mode != 0 && side.Mode != object.ModeGitlink {
		w.ids, w.places = append(w.ids, side.ID), append(w.places, at)
	}
}

func (w *wanted) readContents(blobs *object.Blobs, changes []policy.Change) error {
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
