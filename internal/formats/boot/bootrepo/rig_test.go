//go:build unix

package bootrepo

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

var when = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is a workspace, a cache, and the processes that are started for them.
type rig struct {
	*testing.T
	cache Cache
	root  string
	git   *gittest.Counting
}

func newRig(t *testing.T) *rig {
	t.Helper()
	git := &gittest.Counting{}
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	return &rig{t, Cache{
		Dir: filepath.Join(t.TempDir(), "boot"), Environ: environ, Exec: git, Now: func() time.Time { return when },
	}, t.TempDir(), git}
}

// standard are the files of a boot repository, with some of them changed, and without
// those that are changed to nothing.
func standard(changed map[string]string) map[string]string {
	files := map[string]string{}
	for name, text := range Scaffold(when) {
		files[name] = string(text)
	}
	maps.Copy(files, changed)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
	return files
}

func linkTo(repository, reference string) bootlink.Link {
	return bootlink.Link{Repository: repository, Reference: reference, Version: bootlink.Version{Major: 1}}
}

func (r *rig) load(link bootlink.Link) Contract {
	r.Helper()
	c, err := r.cache.Load(r.Context(), link, r.root)
	if err != nil {
		r.Fatalf("Load(%s at %s) = %v", link.Repository, link.Reference, err)
	}
	return c
}

// processes returns the git commands of what is done.
func (r *rig) processes(do func()) []string {
	r.git.Verbs = nil
	do()
	return r.git.Verbs
}

// commit writes a file of a repository and commits it.
func commit(t *testing.T, dir, name, text string) string {
	t.Helper()
	gittest.Write(t, dir, map[string]string{name: text})
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-q", "-m", "next")
	return head(t, dir)
}

func head(t *testing.T, dir string) string {
	t.Helper()
	return gittest.Run(t, dir, "rev-parse", "HEAD")
}

// wantError fails unless err is a refusal with this reason and status, which says the
// words and has a fix.
func wantError(t *testing.T, err error, reason loop.Reason, exit int, words string) {
	t.Helper()
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error = %#v (%v), want an Error", err, err)
	}
	fault, ok := errors.AsType[*loop.Fault](err)
	if !ok || refused.Reason != reason || fault.Exit != exit {
		t.Errorf("error = %s, exit %d: %v\nwant    %s, exit %d", refused.Reason, fault.Exit, err, reason, exit)
	}
	if !strings.Contains(err.Error(), words) || fault.Fix == "" || reason.Sentence() == "" {
		t.Errorf("error = %q, fix %q, want that it says %q", err, fault.Fix, words)
	}
}
