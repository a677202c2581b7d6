package workspace

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Limits of the content that Compare keeps in memory. Content over them has a size and
// no text.
const (
	maxText  = 4 << 20  // bytes of one file
	maxTexts = 64 << 20 // bytes of all
)

// Comparison is the difference of two trees, in the form that package policy judges.
type Comparison struct {
	Changes []policy.Change // sorted by path; a rename is a deletion and an addition
	Beside  []string        // entries of both trees in the folders of changed paths, for policy.Scope.Check
	Files   int             // in the first tree; policy.ManyFiles or more means at least that many

	// Before has the entries of the first tree at the changed paths, with the modes of
	// Changes.
	Before map[string]object.Entry
}

// Compare returns the difference from the tree or commit from to the tree or commit to.
// It is what git would land, without anything that only a directory has: no mode bits but
// the executable one, no attributes, no owners. Folders that are equal in both are not
// read.
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
			continue // Old versions of git wrote other modes with the same meaning.
		}
		if p.Old.Mode != 0 {
			c.Before[p.Path] = p.Old
		}
		want.addPair(len(c.Changes), p)
		c.Changes = append(c.Changes, policy.Change{Path: p.Path, Old: policy.File{Mode: p.Old.Mode}, New: policy.File{Mode: p.New.Mode}})
	}
	return c, want.readContents(blobs, c.Changes)
}

// wanted are the contents to read, and where they belong.
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

// modeIn returns the mode of an entry as git writes it today. Policy refuses a mode that
// git does not have.
func modeIn(e object.Entry) uint32 {
	if mode, err := plainMode(e); err == nil {
		return mode
	}
	return e.Mode
}

// addSide adds the content of one side. A submodule has none.
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
