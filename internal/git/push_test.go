//go:build unix

package git

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// user is the environment of somebody who pushes.
func user(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}, more...)
}

func bareRemote(t *testing.T, initArgs ...string) Remote {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "remote.git")
	gittest.Run(t, t.TempDir(), append([]string{"init", "-q", "--bare", dir}, initArgs...)...)
	return Remote{URL: dir, Environ: user(t), Local: true}
}

const pushed = "refs/heads/pawl/x"

func TestPushSendsOneCommitToOneBranch(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		t.Run(format, func(t *testing.T) {
			r := open(t, gittest.Repo(t, map[string]string{"f": "1"}, "--object-format="+format))
			to := bareRemote(t, "--object-format="+format)
			tip := base(t, r).Commit
			gittest.Run(t, r.Root, "tag", "-a", "-m", "m", "v1")
			for range 2 {
				must(t, r.Push(t.Context(), Push{To: to, Commit: tip, Ref: pushed}))
			}
			next, err := r.Commit(t.Context(), base(t, r).Tree, []string{tip}, "next", when)
			must(t, err)
			must(t, r.Push(t.Context(), Push{To: Remote{URL: "file://" + to.URL, Environ: to.Environ, Local: true}, Commit: next, Ref: pushed}))
			if got, want := gittest.Run(t, to.URL, "for-each-ref", "--format=%(objectname) %(refname)"), next+" "+pushed; got != want {
				t.Errorf("the remote holds %q, want %q", got, want)
			}
			id, ok, err := r.RemoteRef(t.Context(), to, pushed)
			if err != nil || !ok || id != next {
				t.Errorf("RemoteRef = %s, %v, %v, want %s", id, ok, err, next)
			}
			if _, ok, err := r.RemoteRef(t.Context(), to, "refs/heads/x"); ok || err != nil {
				t.Errorf("RemoteRef of the end of a name = %v, %v, want none", ok, err)
			}
			if err := r.Push(t.Context(), Push{To: to, Commit: tip, Ref: pushed}); !errors.Is(err, ErrRefMoved) {
				t.Errorf("Push of an older commit = %v, want ErrRefMoved", err)
			}
			if got := gittest.Run(t, to.URL, "rev-parse", pushed); got != next {
				t.Errorf("the branch went back to %s", got)
			}
		})
	}
}

func TestPushFromAShallowCloneSendsWhatIsNew(t *testing.T) {
	origin := gittest.Repo(t, map[string]string{"f": "1"})
	gittest.Run(t, origin, "commit", "-q", "--allow-empty", "-m", "second")
	to := bareRemote(t)
	gittest.Run(t, origin, "push", "-q", to.URL, "main")
	dir := filepath.Join(t.TempDir(), "shallow")
	gittest.Run(t, t.TempDir(), "clone", "-q", "--depth=1", "--branch=main", "file://"+to.URL, dir)
	r := open(t, dir)
	next, err := r.Commit(t.Context(), base(t, r).Tree, []string{base(t, r).Commit}, "next", when)
	must(t, err)
	must(t, r.Push(t.Context(), Push{To: to, Commit: next, Ref: pushed}))
	if got := gittest.Run(t, to.URL, "rev-list", "--count", pushed); got != "3" {
		t.Errorf("the remote branch has %s commits, want 3", got)
	}
}

func TestAttack035OnlyBranchesBelowThePrefixArePushedTo(t *testing.T) {
	r := open(t, gittest.Repo(t, map[string]string{"f": "1"}))
	to := bareRemote(t)
	tip := base(t, r).Commit
	for _, ref := range []string{
		"--upload-pack=x", "refs/heads/pawl/a..b", "@{-1}", "refs/heads/main", "main", "refs/heads/pawl", "refs/heads/pawlx/a",
		"refs/tags/pawl/x", "refs/pawl/x", "+refs/heads/pawl/x", "refs/heads/pawl/x:refs/heads/main", "refs/heads/pawl/../main", "",
	} {
		if err := r.Push(t.Context(), Push{To: to, Commit: tip, Ref: ref}); err == nil {
			t.Errorf("it was pushed to %q", ref)
		}
	}
	for _, commit := range []string{"", "HEAD", "-x", ":refs/heads/main"} {
		if err := r.Push(t.Context(), Push{To: to, Commit: commit, Ref: pushed}); err == nil {
			t.Errorf("%q was pushed", commit)
		}
	}
	if got := gittest.Run(t, to.URL, "for-each-ref"); got != "" {
		t.Errorf("the remote holds %q, want nothing", got)
	}
	must(t, r.Push(t.Context(), Push{To: to, Commit: tip, Ref: "refs/heads/work", Under: "refs/heads/"}))
}

func TestOnlyHttpsAndSshAddressesAreReached(t *testing.T) {
	cases := map[string]string{
		"https://example.org/x": "https", "https://u:p@example.org/x": "https", "ssh://git@example.org/x": "ssh", "git@example.org:o/n.git": "ssh",
		"http://example.org/x": "", "git://example.org/x": "", "ext::sh -c x": "", "fd::3": "", "/srv/x": "", "file:///srv/x": "", "../x": "",
		"-u@example.org:x": "", "--upload-pack=x": "", "ssh://-oProxyCommand=x/y": "", "ssh://-u@example.org/y": "", "https://": "", "": "",
		"git@example.org::x": "", "https://example.org/x\n[core]": "", "C:/x": "", "git@-o:x": "",
	}
	for address, want := range cases {
		got, err := Remote{URL: address}.transports()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("transports of %q = %q, %v, want %q", address, got, err, want)
		}
	}
}

func TestPushIsLedNowhereElseByConfiguration(t *testing.T) {
	dir, marker := gittest.Hostile(t)
	trap := bareRemote(t)
	config := readFile(t, filepath.Join(dir, ".git", "config"))
	to := bareRemote(t)
	gittest.Write(t, dir, map[string]string{".git/config": config + `
[url "` + trap.URL + `"]
	insteadOf = ` + to.URL + `
	pushInsteadOf = ` + to.URL + `
[push]
	followTags = true
	gpgSign = true
	recurseSubmodules = on-demand
	pushOption = x
[remote "` + remoteName + `"]
	mirror = true
	receivepack = touch ` + marker + `
	uploadpack = touch ` + marker + `
`})
	r := open(t, dir)
	gittest.Run(t, trap.URL, "symbolic-ref", "HEAD", "refs/heads/none")
	home := t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, "hooks"), 0o755))
	must(t, os.Symlink(filepath.Join(dir, ".git", "hooks", "pre-push"), filepath.Join(home, "hooks", "pre-push")))
	gittest.Write(t, home, map[string]string{".gitconfig": "[core]\n\thooksPath = " + home + "/hooks\n[push]\n\tfollowTags = true\n\tgpgSign = if-asked\n"})
	to.Environ = append(user(t), "GIT_DIR="+trap.URL, "GIT_INDEX_FILE=/x", "GIT_OBJECT_DIRECTORY=/x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.sshCommand", "GIT_CONFIG_VALUE_0=x")
	to.Environ[1] = "HOME=" + home
	must(t, r.Push(t.Context(), Push{To: to, Commit: base(t, r).Commit, Ref: pushed}))
	if _, ok, err := r.RemoteRef(t.Context(), to, pushed); !ok || err != nil {
		t.Errorf("RemoteRef = %v, %v, want it there", ok, err)
	}
	if got := gittest.Run(t, trap.URL, "for-each-ref"); got != "" {
		t.Errorf("the trap holds %q", got)
	}
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
}

func TestTheUsersOwnConfigurationIsUsedToReachARemote(t *testing.T) {
	r := open(t, gittest.Repo(t, map[string]string{"f": "1"}))
	asked := make(chan string, 10)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, password, _ := req.BasicAuth()
		asked <- password
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	home := t.TempDir()
	gittest.Write(t, home, map[string]string{".gitconfig": "[http]\n\tsslVerify = false\n[credential]\n\thelper = \"!f() { echo username=me; echo password=from-helper; }; f\"\n"})
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	address := strings.Replace(server.URL, "https://", "https://bob:hunter2@", 1) + "/x"
	err := r.Push(t.Context(), Push{To: Remote{URL: address, Environ: env}, Commit: base(t, r).Commit, Ref: pushed})
	wantFault(t, err, loop.ExitError, "ls-remote")
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "bob") {
		t.Errorf("the error holds the credential: %v", err)
	}
	close(asked)
	var seen []string
	for p := range asked {
		seen = append(seen, p)
	}
	if !strings.Contains(strings.Join(seen, " "), "hunter2") {
		t.Errorf("the server saw the passwords %q, want that of the address", seen)
	}
	server.Config.Handler = nil
	_, _, err = r.RemoteRef(t.Context(), Remote{URL: "https://bob:hunter2@127.0.0.1:1/x", Environ: env}, pushed)
	wantFault(t, err, loop.ExitError, "ls-remote")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error holds the credential: %v", err)
	}
}

func TestPushThatDiedAfterItsEffectIsSeenByLooking(t *testing.T) {
	r := open(t, gittest.Repo(t, map[string]string{"f": "1"}))
	to := bareRemote(t)
	p := Push{To: to, Commit: base(t, r).Commit, Ref: pushed}
	for point, there := range map[string]bool{"git.push.before": false, "git.push.after": true} {
		plan, err := fault.Parse(point + "=EIO")
		must(t, err)
		if err := r.Push(fault.With(t.Context(), plan), p); err == nil {
			t.Errorf("%s: the fault was not seen", point)
		}
		_, ok, err := r.RemoteRef(t.Context(), to, pushed)
		if err != nil || ok != there {
			t.Errorf("%s: RemoteRef = %v, %v, want %v", point, ok, err, there)
		}
		if there {
			gittest.Run(t, to.URL, "update-ref", "-d", pushed)
		}
	}
}

func TestARemoteThatRefusesIsSaidWithItsReason(t *testing.T) {
	r := open(t, gittest.Repo(t, map[string]string{"f": "1"}))
	to := bareRemote(t)
	hook := filepath.Join(to.URL, "hooks", "pre-receive")
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho 'protected\033[2J' >&2\nexit 1\n"), 0o755))
	err := r.Push(t.Context(), Push{To: to, Commit: base(t, r).Commit, Ref: pushed})
	wantFault(t, err, loop.ExitError, "push there")
	if !strings.Contains(err.Error(), "hook declined") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("error = %q, want the reason without escapes", err)
	}
}

func TestRemoteURLIsReadAsData(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Run(t, dir, "remote", "add", "origin", "https://example.org/fetch")
	gittest.Run(t, dir, "remote", "add", "Up.stream", "git@example.org:o/n")
	gittest.Run(t, dir, "remote", "add", "near", "../near.git")
	gittest.Run(t, dir, "config", "url.https://evil.example/.insteadOf", "https://example.org/")
	r := open(t, dir)
	for name, want := range map[string]string{"origin": "https://example.org/fetch", "Up.stream": "git@example.org:o/n", "near": filepath.Join(filepath.Dir(r.Root), "near.git"), "none": ""} {
		got, err := r.RemoteURL(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("RemoteURL(%s) = %q, %v, want %q", name, got, err, want)
		}
	}
	gittest.Run(t, dir, "remote", "set-url", "--push", "origin", "https://bob:hunter2@example.org/push")
	got, err := r.RemoteURL("origin")
	if err != nil || got != "https://bob:hunter2@example.org/push" {
		t.Errorf("RemoteURL = %q, %v, want the address for pushing", got, err)
	}
	if safe := SafeURL(got); strings.Contains(safe, "hunter2") || !strings.Contains(safe, "example.org/push") {
		t.Errorf("SafeURL = %q", safe)
	}
}
