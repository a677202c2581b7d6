package git

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Remote is another repository, and how the user reaches it.
type Remote struct {
	URL     string   // https://, ssh:// or user@host:path
	Environ []string // the user's own environment: credentials, agents, global configuration
	Local   bool     // a path or file:// is allowed, too
}

// RemoteURL returns the address to which the repository's own configuration
// pushes for a remote such as origin: pushurl, else url. It is read as data;
// url.*.insteadOf is not applied, and conditional includes are not followed. A path that
// begins with a dot is one from the top of the checkout, and returned as a full one. It can
// hold a password: print it by SafeURL only.
func (r *Repo) RemoteURL(name string) (string, error) {
	fetch, push := "", ""
	for _, file := range []string{filepath.Join(r.CommonDir, "config"), filepath.Join(r.GitDir, "config.worktree")} {
		data, err := gitdir.Read(file)
		if err != nil {
			continue // It is judged by Hazards.
		}
		settings, err := gitconfig.Parse(data)
		if err != nil {
			return "", fmt.Errorf("read address of remote %s: %s: %w", name, file, err)
		}
		for _, s := range settings {
			switch {
			case s.Key == "remote."+name+".url" && fetch == "":
				fetch = s.Value
			case s.Key == "remote."+name+".pushurl" && push == "":
				push = s.Value
			}
		}
	}
	if push == "" {
		push = fetch
	}
	if push == "" {
		return "", &loop.Fault{
			Exit: loop.ExitNotFound, What: fmt.Sprintf("the repository has no remote %q", name),
			Fix: "{1}", Actions: []loop.Command{loop.HostCommand("git", "remote", "add", name, "URL").WithBlanks("URL")}, Err: loop.ErrNotFound,
		}
	}
	if strings.HasPrefix(push, "./") || strings.HasPrefix(push, "../") {
		push = filepath.Join(r.Root, filepath.FromSlash(push))
	}
	return push, nil
}

// SafeURL is an address without what could be a secret.
func SafeURL(address string) string { return hazard.Printable(address) }

var scpLike = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^:].*$`)

// transports returns the protocols that git may use for the address, or a
// fault: nothing that starts a transport program, no plain text, no option.
func (to Remote) transports() (string, error) {
	u, err := url.Parse(to.URL)
	switch {
	case strings.ContainsFunc(to.URL, func(c rune) bool { return c < ' ' || c == 0x7f }):
	case to.Local && (filepath.IsAbs(to.URL) || strings.HasPrefix(to.URL, "file:///")):
		return "file", nil
	case scpLike.MatchString(to.URL):
		return "ssh", nil
	case err != nil || u.Host == "" || u.Host[0] == '-' || strings.HasPrefix(u.User.Username(), "-"):
	case u.Scheme == "https" || u.Scheme == "ssh":
		return u.Scheme, nil
	}
	return "", &loop.Fault{
		Exit: loop.ExitRefused, What: "the remote address " + SafeURL(to.URL) + " is not used",
		Why:     "only https://, ssh:// and user@host:path are",
		Fix:     "give the remote such an address: {1}",
		Actions: []loop.Command{loop.HostCommand("git", "remote", "set-url", "--push", "NAME", "URL").WithBlanks("NAME", "URL")},
	}
}

// loginVariables are the variables of git with which a user logs in; none of them
// names a repository.
var loginVariables = []string{
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
	"GIT_CONFIG_NOSYSTEM", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_EXEC_PATH",
}

// environ is the user's environment without the variables that redirect git, and with
// those that pawl sets.
func (to Remote) environ(gitDir, transports string) []string {
	env := slices.DeleteFunc(slices.Clone(to.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		if name == "LC_ALL" || name == "LANGUAGE" {
			return true
		}
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(loginVariables, name)
	})
	return append(env,
		"GIT_DIR="+gitDir, "GIT_WORK_TREE="+gitDir, "GIT_ALLOW_PROTOCOL="+transports, "GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_ATTR_NOSYSTEM=1", "LC_ALL=C")
}

// RemoteRef asks a remote for a branch, by its full name, and reports whether
// it is there. It contacts the remote and changes nothing.
func (r *Repo) RemoteRef(ctx context.Context, from Remote, ref string) (id string, ok bool, err error) {
	if err := CheckRef(ref); err != nil {
		return "", false, fmt.Errorf("ask remote: %w", err)
	}
	out, err := from.runGit(ctx, r, "ls-remote", "--refs", "--quiet", remoteName, ref)
	if err != nil {
		return "", false, err
	}
	id, ok = refLines(out)[ref]
	return id, ok && r.Format.Check(id) == nil, nil
}

// refLines reads what ls-remote prints. A pattern also matches the end of longer
// names.
func refLines(out []byte) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			refs[name] = id
		}
	}
	return refs
}

// Check refuses an address that pawl does not use.
func (to Remote) Check() error {
	_, err := to.transports()
	return err
}
