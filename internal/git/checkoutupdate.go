package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// checkoutUpdate is a checkout on its way from one commit to another.
type checkoutUpdate struct {
	repo    *Repo
	a       Advance
	root    *os.Root
	changed []changedPath
	gone    map[string]bool // paths that are deleted
	index   map[string]index.Record
}

// openCheckout reads both commits, the index and the checkout, and changes nothing.
// Close the result.
func (r *Repo) openCheckout(ctx context.Context, a Advance) (*checkoutUpdate, error) {
	t := &checkoutUpdate{repo: r, a: a, gone: map[string]bool{}, index: map[string]index.Record{}}
	var err error
	if t.changed, err = r.changedPaths(ctx, a.Onto, a.Commit); err != nil {
		return nil, fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	for _, one := range t.changed {
		t.gone[one.path] = one.now.ID == ""
	}
	entries, err := readIndex(r.Dirs, r.Format)
	if errors.Is(err, index.ErrForm) {
		return nil, t.refusal("the index of "+r.Root+" cannot be updated", err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("advance %s: read index: %w", a.Branch, err)
	}
	for _, e := range entries {
		if old, ok := t.index[e.Path]; !ok || e.Stage > old.Stage {
			t.index[e.Path] = e
		}
	}
	if t.root, err = os.OpenRoot(r.Root); err != nil {
		return nil, fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	return t, nil
}

func (t *checkoutUpdate) close() { t.root.Close() }

// refusal is what a person is told when the checkout cannot follow.
func (t *checkoutUpdate) refusal(what, why string) error {
	from := t.a.From
	if from == "" {
		from = t.a.Commit
	}
	return &loop.Fault{
		Exit: loop.ExitRefused, What: what, Why: why,
		Fix:     "commit or stash what is there and land again, or land it by hand with {1}",
		Actions: []loop.Command{loop.HostCommand("git", "merge", "--ff-only", from)},
	}
}

// checkClean refuses a checkout in which any changed path differs from Onto.
func (t *checkoutUpdate) checkClean(ctx context.Context) error {
	if err := t.checkUnlocked(); err != nil {
		return err
	}
	var dirty []string
	for i, one := range t.changed {
		if i%256 == 0 && ctx.Err() != nil {
			return fmt.Errorf("advance %s: %w", t.a.Branch, context.Cause(ctx))
		}
		if one.old.Mode == object.ModeGitlink || one.now.Mode == object.ModeGitlink {
			return t.refusal(fmt.Sprintf("%q is a submodule", one.path), "pawl does not move submodules")
		}
		if recorded, own := t.a.Memory[one.path]; own && (recorded == one.now.ID || t.isRecorded(one)) {
			continue
		}
		if !t.isStaged(one) || !t.isVacant(one) {
			dirty = append(dirty, one.path)
		}
	}
	if len(dirty) == 0 {
		return nil
	}
	return t.refusal(
		fmt.Sprintf("%s is checked out in %s, and landing would overwrite what is there", t.a.Branch, t.repo.Root),
		"it differs from "+t.a.Onto[:12]+": "+quoteSome(dirty))
}

// checkUnlocked refuses while another git command changes the index.
func (t *checkoutUpdate) checkUnlocked() error {
	lock := filepath.Join(t.repo.GitDir, "index.lock")
	if _, err := os.Lstat(lock); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitHeld, What: "the index of " + t.repo.Root + " is locked",
		Why: "another git command works there, or ended without cleaning up",
		Fix: "wait until it is done and land again; if no git runs, remove " + lock,
	}
}

// quoteSome quotes the first few of many paths.
func quoteSome(paths []string) string {
	const most = 10
	var b strings.Builder
	for i, p := range paths[:min(most, len(paths))] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.200q", p)
	}
	if more := len(paths) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// isStaged reports whether the index has the same entry for a path as Onto, and no
// entry that the new path would replace.
func (t *checkoutUpdate) isStaged(one changedPath) bool {
	if !t.isIndexed(one.path, one.old) {
		return false
	}
	if one.old.ID != "" || one.now.ID == "" {
		return true
	}
	for dir := path.Dir(one.path); dir != "."; dir = path.Dir(dir) {
		if _, ok := t.index[dir]; ok && !t.gone[dir] {
			return false
		}
	}
	for p := range t.index {
		if strings.HasPrefix(p, one.path+"/") && !t.gone[p] {
			return false
		}
	}
	return true
}

// isIndexed reports whether the index holds exactly this entry; one without an
// id must not be there.
func (t *checkoutUpdate) isIndexed(path string, want object.Entry) bool {
	e, ok := t.index[path]
	if want.ID == "" {
		return !ok
	}
	return ok && e.Stage == 0 && !e.Skip && !e.Intent && e.ID == want.ID && object.PlainMode(e.Mode) == want.Mode
}

// isVacant reports whether the file of a path is the one of Onto. If Onto has none,
// there may be what this Advance deletes.
func (t *checkoutUpdate) isVacant(one changedPath) bool {
	if one.old.ID != "" {
		return t.isOnDisk(one.path, one.old)
	}
	info, blocker, err := t.lstat(one.path)
	switch {
	case blocker != "":
		return t.gone[blocker]
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil || !info.IsDir():
		return false
	}
	return t.willBeEmpty(one.path)
}

// lstat is os.Lstat that follows no link in the path. blocker is the part of the
// path that exists and is not a directory.
func (t *checkoutUpdate) lstat(name string) (info fs.FileInfo, blocker string, err error) {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if info, err = t.root.Lstat(name[:i]); err != nil {
			return nil, "", err
		}
		if !info.IsDir() {
			return nil, name[:i], nil
		}
	}
	info, err = t.root.Lstat(name)
	return info, "", err
}

// isOnDisk reports whether the file of a path is byte for byte this entry, with
// its mode. An entry without an id must not be there, and no file or link may
// stand where its directory would be.
func (t *checkoutUpdate) isOnDisk(name string, want object.Entry) bool {
	info, blocker, err := t.lstat(name)
	if want.ID == "" {
		return blocker == "" && errors.Is(err, fs.ErrNotExist)
	}
	if err != nil || blocker != "" {
		return false
	}
	switch mode := info.Mode(); {
	case want.Mode == object.ModeSymlink:
		if mode.Type() != fs.ModeSymlink {
			return false
		}
	case !mode.IsRegular():
		return false
	case runtime.GOOS != "windows" && (mode&0o100 != 0) != (want.Mode == object.ModeExec):
		return false
	}
	id, _, err := t.repo.Format.HashFile(filepath.Join(t.repo.Root, filepath.FromSlash(name)), want.Mode, info.Size())
	return err == nil && id == want.ID
}

// isRecorded reports whether a path is one of pawl's own and its file holds what pawl wrote
// there.
func (t *checkoutUpdate) isRecorded(one changedPath) bool {
	recorded, own := t.a.Memory[one.path]
	return own && t.isOnDisk(one.path, object.Entry{Mode: object.ModeFile, ID: recorded})
}

// isReplaceable reports whether the file of a path is what this Advance may replace, and
// not what it is to be already.
func (t *checkoutUpdate) isReplaceable(one changedPath) bool {
	return t.isOnDisk(one.path, one.old) || t.a.Memory[one.path] != one.now.ID && t.isRecorded(one)
}

// willBeEmpty reports whether a directory will be gone when everything that this
// Advance deletes is.
func (t *checkoutUpdate) willBeEmpty(dir string) bool {
	below := func(p string) bool {
		for gone, is := range t.gone {
			if is && strings.HasPrefix(gone, p+"/") {
				return true
			}
		}
		return false
	}
	err := fs.WalkDir(t.root.FS(), dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !t.gone[p] || d.IsDir() && !below(p) {
			return errors.Join(err, fs.ErrExist)
		}
		return nil
	})
	return err == nil
}
