//go:build unix

package git

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// elsewhere is a repository with two commits, a tag of the first one, and a branch.
func elsewhere(t *testing.T) (from Remote, first, second string) {
	t.Helper()
	dir := gittest.Repo(t, map[string]string{"f": "1\n"})
	first = gittest.Run(t, dir, "rev-parse", "HEAD")
	gittest.Run(t, dir, "tag", "-a", "-m", "m", "v1")
	gittest.Write(t, dir, map[string]string{"f": "2\n"})
	gittest.Run(t, dir, "commit", "-qam", "second")
	return Remote{URL: dir, Environ: user(t), Local: true}, first, gittest.Run(t, dir, "rev-parse", "HEAD")
}

func TestRefsOfARemoteAreToldWithWhatTheirTagsAreOf(t *testing.T) {
	from, first, second := elsewhere(t)
	gittest.Run(t, from.URL, "branch", "x/refs/heads/main") // It ends like the name that is asked for.
	got, err := RemoteRefs(t.Context(), proc.Plain{}, from, "refs/heads/main", "refs/heads/none", "refs/tags/v1", "refs/tags/v1^{}")
	if err != nil {
		t.Fatal(err)
	}
	if got["refs/heads/main"] != second || got["refs/tags/v1^{}"] != first || got["refs/tags/v1"] == "" || got["refs/heads/none"] != "" {
		t.Errorf("refs %v", got)
	}
	for _, bad := range []string{"", "main", "-x", "refs/heads/*", "refs/heads/a..b", "refs/heads/a b"} {
		if refs, err := RemoteRefs(t.Context(), proc.Plain{}, from, bad); err == nil {
			t.Errorf("%q was asked for: %v", bad, refs)
		}
	}
}

func TestAFetchBringsWhatItNamesAndNoMore(t *testing.T) {
	from, first, second := elsewhere(t)
	for name, c := range map[string]struct {
		names []string
		depth int
		have  []string // refs
		lacks string   // commit; empty: none
	}{
		"a branch":          {[]string{"refs/heads/main"}, 0, []string{"refs/pawl/fetched/0"}, ""},
		"its tip":           {[]string{"refs/heads/main"}, 1, []string{"refs/pawl/fetched/0"}, first},
		"a tag":             {[]string{"refs/tags/v1"}, 0, []string{"refs/pawl/fetched/0"}, second},
		"a commit":          {[]string{first}, 1, []string{"refs/pawl/fetched/0"}, second},
		"all that there is": {[]string{"refs/heads/*", "refs/tags/*"}, 0, []string{"refs/pawl/fetched/0/main", "refs/pawl/fetched/1/v1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			from := from
			from.URL = "file://" + from.URL // A path would ignore the depth.
			f, err := Fetch{From: from, Format: object.SHA1, Names: c.names, Depth: c.depth, Folder: folder, MaxBytes: 1 << 20}.Run(t.Context(), proc.Plain{})
			if err != nil {
				t.Fatal(err)
			}
			refs := strings.Fields(gittest.Run(t, f.dir, "for-each-ref", "--format=%(refname)"))
			if diff := cmp.Diff(c.have, refs); diff != "" {
				t.Error(diff)
			}
			blobs, err := f.Blobs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{first, second} {
				object, err := blobs.Resolve(id)
				if err != nil || (object[0].Kind == "commit") == (id == c.lacks) {
					t.Errorf("commit %s is %+v, %v", id, object, err)
				}
			}
			must(t, blobs.Close())
			must(t, f.Close())
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestAFetchThatFailsLeavesNothing(t *testing.T) {
	from, first, _ := elsewhere(t)
	away := Remote{URL: "/nowhere", Environ: from.Environ, Local: true}
	for name, f := range map[string]Fetch{
		"more than is allowed": {From: from, Names: []string{"refs/heads/main"}, MaxBytes: 1000},
		"no such branch":       {From: from, Names: []string{"refs/heads/none"}, MaxBytes: 1 << 20},
		"no such repository":   {From: away, Names: []string{"refs/heads/main"}, MaxBytes: 1 << 20},
		"a bad name":           {From: from, Names: []string{"refs/heads/-x:refs/heads/y"}, MaxBytes: 1 << 20},
		"an option":            {From: from, Names: []string{"--upload-pack=x"}, MaxBytes: 1 << 20},
		"a short commit":       {From: from, Names: []string{first[:7]}, MaxBytes: 1 << 20},
		"an address that acts": {From: Remote{URL: "ext::true"}, Names: []string{"refs/heads/main"}, MaxBytes: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			f.Format, f.Folder = object.SHA1, t.TempDir()
			_, err := f.Run(t.Context(), proc.Plain{})
			if tooMuch := f.MaxBytes == 1000; err == nil || errors.Is(err, ErrFetchSize) != tooMuch {
				t.Errorf("Fetch = %v", err)
			}
			if left, err := os.ReadDir(f.Folder); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// A host that sends much, or nothing, does not have to come to an end.
func TestAFetchEndsWhileTheOtherSideGoesOn(t *testing.T) {
	folder := t.TempDir()
	ssh := filepath.Join(folder, "ssh")
	if err := os.WriteFile(ssh, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	from := Remote{URL: "ssh://git.example.com/x", Environ: user(t, "GIT_SSH="+ssh, "GIT_SSH_VARIANT=simple")}
	_, err := Fetch{From: from, Format: object.SHA1, Names: []string{"refs/heads/main"}, Folder: folder, MaxBytes: 10}.Run(ctx, proc.Plain{})
	if !errors.Is(err, ErrFetchSize) || ctx.Err() != nil {
		t.Errorf("Fetch = %v, want that it is too much", err)
	}
}

func TestWhatAKilledFetchLeftIsRemovedAndNothingElse(t *testing.T) {
	folder := t.TempDir()
	gittest.Write(t, folder, map[string]string{scratchPrefix + "1/objects/pack/tmp_pack_x": "x", "lock": "", "contracts/x": "y"})
	must(t, RemoveFetched(folder))
	entries, err := os.ReadDir(folder)
	must(t, err)
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, []string{"contracts", "lock"}) {
		t.Errorf("left: %q", got)
	}
}
