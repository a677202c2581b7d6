//go:build unix

package bootrepo

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestARepositoryOnThisMachineIsReadAtEachReference(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := newRig(t)
			dir := gittest.Repo(t, standard(nil), "--object-format="+format)
			first := head(t, dir)
			gittest.Run(t, dir, "tag", "light")
			gittest.Run(t, dir, "tag", "-a", "-m", "m", "heavy")
			gittest.Run(t, dir, "tag", "both")
			gittest.Run(t, dir, "branch", "side/way")
			gittest.Run(t, dir, "tag", "tree", "HEAD^{tree}")
			second := commit(t, dir, "contract/AGENT_RULES.md", "# New\n")
			gittest.Run(t, dir, "branch", "both")
			gittest.Run(t, dir, "branch", "other", first)
			gittest.Run(t, dir, "pack-refs", "--all")
			for reference, want := range map[string]string{
				"main": second, "light": first, "heavy": first, "side/way": first, "other": first, first: first, second: second,
				"both": first, "refs/heads/both": second, "refs/tags/both": first,
			} {
				if got := r.load(linkTo(dir, reference)).Commit; got != want {
					t.Errorf("%s is %s, want %s", reference, got, want)
				}
			}
			_, err := r.cache.Load(t.Context(), linkTo(dir, "tree"), r.root)
			wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, "no such branch or tag of a commit")
		})
	}
}

func TestEachWayToWriteARepositoryOnThisMachineIsRead(t *testing.T) {
	r := newRig(t)
	top := t.TempDir()
	source := gittest.Repo(t, standard(nil))
	bare := filepath.Join(top, "owner", "boot.git")
	gittest.Run(t, top, "clone", "-q", "--bare", source, bare)
	linked := filepath.Join(top, "linked")
	gittest.Run(t, source, "worktree", "add", "-q", "-b", "side", linked)
	inside := filepath.Join(r.root, "vendor", "boot")
	gittest.Run(t, top, "clone", "-q", source, inside)
	beside := filepath.Join(filepath.Dir(r.root), "beside")
	gittest.Run(t, top, "clone", "-q", source, beside)
	r.cache.Mirror = top
	for name, repository := range map[string]string{
		"a path": source, "a bare one": bare, "without .git at its end": strings.TrimSuffix(bare, ".git"), "a linked checkout": linked,
		"file://": "file://" + source, "file:// of this host": "file://localhost" + bare, "below the workspace": "./vendor/boot", "beside the workspace": "../beside",
		"a mirror": "owner/boot",
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.load(linkTo(repository, "main")).Commit; got != head(t, source) {
				t.Errorf("the commit is %s", got)
			}
		})
	}
}

func TestWhatIsNotARepositoryIsAMalformedLink(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	marker := filepath.Join(t.TempDir(), "marker")
	for _, repository := range []string{
		"", "-x", "--upload-pack=touch " + marker, "ext::sh -c touch% " + marker, "fd::7", "http://example.com/a/b", "git://example.com/a/b",
		"ftp://example.com/a", "file://other.example" + dir, "file://" + dir + "?x", "file:relative", "ssh://-oProxyCommand=x/a", "https://", "a\nb", "https://user:secret@/x",
	} {
		_, err := r.cache.Load(t.Context(), linkTo(repository, "main"), r.root)
		wantError(t, err, loop.ReasonLinkMalformed, loop.ExitUnreadable, "")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("error = %v, with a password", err)
		}
	}
	for _, reference := range []string{"", "-x", "--exec=x", "a..b", "a b", "main^", "main:x", "@{-1}", "refs/heads/-x", "refs/heads/", "x.lock", "a*", "HEAD", "/x"} {
		_, err := r.cache.Load(t.Context(), linkTo(dir, reference), r.root)
		wantError(t, err, loop.ReasonLinkMalformed, loop.ExitUnreadable, "is not a branch, a tag or a commit")
	}
	if len(r.git.Verbs) > 0 {
		t.Errorf("git was started: %q", r.git.Verbs)
	}
	// A path that is not a repository is not looked for above.
	gittest.Run(t, r.root, "init", "-q")
	if err := os.Mkdir(filepath.Join(r.root, "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := r.cache.Load(t.Context(), linkTo("./boot", "main"), r.root)
	wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, "no git repository is there")
}

func TestOwnerAndRepoAreBelowTheMirrorOrTheForge(t *testing.T) {
	for mirror, want := range map[string]string{
		"": "https://github.com/own/er.x", "https://git.example.com/mirrors": "https://git.example.com/mirrors/own/er.x", "ssh://git@git.example.com/": "ssh://git@git.example.com/own/er.x",
		"git@git.example.com:": "git@git.example.com:own/er.x", "/srv/git": "/srv/git/own/er.x", "file:///srv/git": "/srv/git/own/er.x",
	} {
		s, err := Cache{Mirror: mirror}.resolveSource("own/er.x", "/home/you/repo")
		if err != nil || s.String() != want {
			t.Errorf("below %q it is %q, %v, want %q", mirror, s, err, want)
		}
	}
	for text, want := range map[string]string{
		"a": "/home/you/repo/a", "a/b/c": "/home/you/repo/a/b/c", "./a/b": "/home/you/repo/a/b", "../a": "/home/you/a", "a/..": "/home/you/repo", "/a/b": "/a/b",
	} {
		s, err := Cache{}.resolveSource(text, "/home/you/repo")
		if err != nil || s.path != want {
			t.Errorf("%q is the path %q, %v, want %q", text, s.path, err, want)
		}
	}
}

// serve offers the repositories below a folder by https, as git's own program for web
// servers does, and returns the address. Whoever asks needs the certificate of the rig.
func (r *rig) serve(top string, handler func(http.Handler) http.Handler) string {
	r.Helper()
	backend := &cgi.Handler{
		Path:   filepath.Join(gittest.Run(r.T, top, "--exec-path"), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + top, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
		Stderr: io.Discard,
	}
	server := httptest.NewTLSServer(handler(backend))
	r.Cleanup(server.Close)
	certificate := filepath.Join(r.TempDir(), "certificate.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(certificate, text, 0o600); err != nil {
		r.Fatal(err)
	}
	r.cache.Environ = append(r.cache.Environ, "GIT_SSL_CAINFO="+certificate)
	return server.URL
}

func plain(h http.Handler) http.Handler { return h }

func TestARepositoryElsewhereIsFetchedByHTTPS(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := newRig(t)
			dir := gittest.Repo(t, standard(nil), "--object-format="+format)
			first := head(t, dir)
			gittest.Run(t, dir, "tag", "-a", "-m", "m", "v1")
			second := commit(t, dir, "contract/AGENT_RULES.md", "# New\n")
			address := r.serve(dir, plain) + "/.git"
			for _, c := range [][2]string{{"main", second}, {"v1", first}, {"refs/heads/main", second}} {
				if got := r.load(linkTo(address, c[0])); got.Commit != c[1] || got.Repository != address {
					t.Errorf("%s of %s is %s, want %s", c[0], got.Repository, got.Commit, c[1])
				}
			}
			again := newRig(t)
			again.cache.Environ = r.cache.Environ
			if got := again.load(linkTo(address, first)).Commit; got != first {
				t.Errorf("a commit that no branch is at is %s, want %s", got, first)
			}
			_, err := r.cache.Load(t.Context(), linkTo(address, "none"), r.root)
			wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, `has no "none": it has no such branch or tag`)
			_, err = r.cache.Load(t.Context(), linkTo(address, strings.Repeat("a", len(first))), r.root)
			wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, "no such commit")
			entries, err := filepath.Glob(filepath.Join(r.cache.Dir, "*", "pawl-remote-*"))
			if err != nil || len(entries) > 0 {
				t.Errorf("fetches left %q, %v", entries, err)
			}
		})
	}
}

// A web server that only hands out files sends no single commit and no part of a history.
func TestARepositoryOnAPlainWebServerIsFetchedAsAWhole(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	first := head(t, dir)
	commit(t, dir, "contract/AGENT_RULES.md", "# New\n")
	gittest.Run(t, dir, "update-server-info")
	address := r.serve(dir, func(http.Handler) http.Handler { return http.FileServer(http.Dir(filepath.Join(dir, ".git"))) })
	for _, reference := range []string{"main", first} {
		if got := r.load(linkTo(address, reference)).Commit; got != gittest.Run(t, dir, "rev-parse", reference) {
			t.Errorf("%s is %s", reference, got)
		}
	}
}

func TestARepositoryElsewhereIsFetchedBySSHAsTheUserReachesIt(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	program := filepath.Join(t.TempDir(), "ssh")
	// It gets the host and then the command for the other side.
	if err := os.WriteFile(program, []byte("#!/bin/sh\nfor command; do :; done\nexec sh -c \"$command\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.cache.Environ = append(r.cache.Environ, "GIT_SSH="+program, "GIT_SSH_VARIANT=simple")
	for _, address := range []string{"ssh://git@git.example.com" + dir, "git@git.example.com:" + dir} {
		if got := r.load(linkTo(address, "main")).Commit; got != head(t, dir) {
			t.Errorf("the commit of %s is %s", address, got)
		}
	}
}

func TestAPasswordIsNeitherPrintedNorKept(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	address := r.serve(dir, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if _, password, _ := q.BasicAuth(); password != "s3cret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, q)
		})
	})
	with := func(password string) string {
		return strings.Replace(address, "https://", "https://ann:"+password+"@", 1) + "/.git"
	}
	if got := r.load(linkTo(with("s3cret"), "main")); strings.Contains(got.Repository, "s3cret") {
		t.Errorf("the contract is of %s", got.Repository)
	}
	_, err := newRig(t).cache.Load(t.Context(), linkTo(with("wr0ng"), "main"), r.root)
	wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, "cannot be read")
	if strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("error = %v", err)
	}
	err = filepath.WalkDir(r.cache.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "s3cret") {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAHostThatDoesNotAnswerIsWaitedForOnlySoLong(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	silent := make(chan struct{})
	t.Cleanup(func() { close(silent) })
	answering := true
	address := r.serve(dir, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if !answering {
				select {
				case <-silent:
				case <-q.Context().Done():
				}
				return
			}
			h.ServeHTTP(w, q)
		})
	}) + "/.git"
	link := linkTo(address, "main")
	fresh := newRig(t)
	fresh.cache.Environ = r.cache.Environ
	want := r.load(link)
	answering = false
	r.cache.Patience, fresh.cache.Patience = 300*time.Millisecond, 300*time.Millisecond
	got := r.load(link)
	if got.Commit != want.Commit || !strings.Contains(got.Offline, "did not answer in time") {
		t.Errorf("commit %s, offline %q", got.Commit, got.Offline)
	}
	_, err := fresh.cache.Load(t.Context(), link, r.root)
	wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, "did not answer in time")
	link.Reference = want.Commit
	if verbs := r.processes(func() { r.load(link) }); slices.Contains(verbs, "ls-remote") || len(verbs) > 0 {
		t.Errorf("a commit that is known took %q", verbs)
	}
}
