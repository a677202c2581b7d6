package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// ErrFetchSize means that a remote sends more than is taken from it.
var ErrFetchSize = errors.New("it is too much")

// RemoteRefs asks a remote which objects the refs name, by their full names. What
// refs/tags/x^{} names is what an annotated tag is of. A ref that is not there is left
// out. It needs no repository.
func RemoteRefs(ctx context.Context, run proc.Runner, from Remote, refs ...string) (map[string]string, error) {
	for _, ref := range refs {
		if rule := refRule(strings.TrimSuffix(ref, "^{}")); rule != "" || !strings.HasPrefix(ref, "refs/") {
			return nil, fmt.Errorf("ask remote: the ref name %.200q is not one", ref)
		}
	}
	if _, err := from.transports(); err != nil {
		return nil, err
	}
	dir, err := makeScratch("", "", object.SHA1, from.URL)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", SafeURL(from.URL), err)
	}
	defer os.RemoveAll(dir)
	out, err := from.runIn(ctx, run, dir, append([]string{"ls-remote", "--quiet", "--upload-pack=git-upload-pack", remoteName}, refs...)...)
	if err != nil {
		return nil, err
	}
	return refLines(out), nil
}

// Fetch is what is fetched from a remote, and where to.
type Fetch struct {
	From     Remote
	Format   object.Format // of the remote's names
	Names    []string      // full names of refs, which may end with /*, or names of commits
	Depth    int           // how many commits of each; 0: all
	Folder   string        // where the directory is made
	MaxBytes int64         // on the disk; more is ErrFetchSize
}

// Fetched is what a Fetch has brought: the objects of a bare repository that is
// nobody else's, and that no checkout belongs to.
type Fetched struct {
	object.Store
	dir string
}

// Close removes what was fetched.
func (f *Fetched) Close() error { return os.RemoveAll(f.dir) }

// Ref is the name that the ref or commit at index i of Names has here. Those below a
// name that ends with /* have the rest of their own names behind it.
func (f *Fetched) Ref(i int) string { return ownPrefix + "fetched/" + strconv.Itoa(i) }

// Run fetches. No hook, filter or submodule of what comes is used, and no tag but the
// named ones comes. Whoever calls it closes the result; what a process that was killed
// has left in the folder is removed by RemoveFetched.
func (f Fetch) Run(ctx context.Context, run proc.Runner) (_ *Fetched, err error) {
	args := []string{
		"-c", "fetch.writeCommitGraph=false", "-c", "fetch.fsckObjects=false", "-c", "fetch.unpackLimit=1", "-c", "transfer.bundleURI=false",
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--upload-pack=git-upload-pack",
	}
	if f.Depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(f.Depth))
	}
	args = append(args, remoteName)
	into := &Fetched{}
	for i, name := range f.Names {
		rest := ""
		if f.Format.Check(name) != nil {
			below, all := strings.CutSuffix(name, "/*")
			if rule := refRule(below); rule != "" || !strings.HasPrefix(name, "refs/") {
				return nil, fmt.Errorf("fetch: the ref name %.200q is not one", name)
			}
			if all {
				rest = "/*"
			}
		}
		args = append(args, "+"+name+":"+into.Ref(i)+rest)
	}
	if _, err := f.From.transports(); err != nil {
		return nil, err
	}
	if into.dir, err = makeScratch(f.Folder, "", f.Format, f.From.URL); err != nil {
		return nil, fmt.Errorf("fetch from %s: %w", SafeURL(f.From.URL), err)
	}
	bounded, stop := f.bound(ctx, into.dir)
	_, err = f.From.runIn(bounded, run, into.dir, args...)
	stop()
	if err == nil && folderSize(into.dir) > f.MaxBytes {
		err = f.tooMuch()
	}
	if err != nil {
		return nil, errors.Join(err, into.Close())
	}
	dirs := func() ([]string, error) { return []string{filepath.Join(into.dir, "objects")}, nil }
	into.Store = object.At(program.New(run, into.dir, into.dir, into.dir), f.Format, dirs)
	return into, nil
}

// bound returns a context that ends when too much is in dir. Stop waits for whoever
// looks.
func (f Fetch) bound(ctx context.Context, dir string) (_ context.Context, stop func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = clock.System{}.Every(bounded, 100*time.Millisecond, func() {
			if folderSize(dir) > f.MaxBytes {
				cancel(f.tooMuch())
			}
		})
	}()
	return bounded, func() { cancel(nil); <-done }
}

func (f Fetch) tooMuch() error {
	return fmt.Errorf("%s sends more than %d bytes: %w", SafeURL(f.From.URL), f.MaxBytes, ErrFetchSize)
}

func folderSize(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // It was renamed meanwhile.
		}
		if info, err := e.Info(); err == nil && !e.IsDir() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// RemoveFetched removes from a folder what fetches have left that did not end. Whoever
// calls it knows that no other is going on.
func RemoveFetched(folder string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), scratchPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
		}
	}
	return err
}
