package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforePush = fault.New("git.push.before")
	afterPush  = fault.New("git.push.after")
)

// remoteName stands for the address in the scratch configuration, so that the
// address is in no argument list.
const remoteName = "pawl-remote"

const scratchPrefix = "pawl-remote-"

// Push is one commit that becomes the tip of one remote branch.
type Push struct {
	To     Remote
	Commit string
	Ref    string // full name of the remote branch
	Under  string // what Ref must begin with; empty means refs/heads/pawl/

	// Confirm is asked right before the remote is reached; its error keeps
	// everything here. Nil confirms.
	Confirm func(context.Context) error
}

// Push sends a commit. It never forces, deletes, or sends tags, other branches
// or submodules. ErrRefMoved means that the branch is there and not an ancestor
// of the commit. Git works in a scratch directory that only borrows the
// objects: configuration and hooks of the repository play no part, those of
// the user do, but for hooks. Sending a commit that is there already does
// nothing.
func (r *Repo) Push(ctx context.Context, p Push) error {
	if err := p.check(r.Format); err != nil {
		return fmt.Errorf("push %s: %w", p.Ref, err)
	}
	if err := beforePush.Hit(ctx); err != nil {
		return fmt.Errorf("push %s: %w", p.Ref, err)
	}
	if p.Confirm != nil {
		if err := p.Confirm(ctx); err != nil {
			return fmt.Errorf("push %s: %w", p.Ref, err)
		}
	}
	_, err := p.To.runGit(ctx, r, "-c", "push.pushOption=", "-c", "push.useForceIfIncludes=false",
		"push", "--porcelain", "--atomic", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no", "--quiet",
		remoteName, p.Commit+":"+p.Ref)
	if err != nil {
		return err
	}
	if err := afterPush.Hit(ctx); err != nil {
		return fmt.Errorf("push %s: %w", p.Ref, err)
	}
	return nil
}

func (p Push) check(format object.Format) error {
	under := p.Under
	if under == "" {
		under = headPrefix + "pawl/"
	}
	if err := CheckRef(p.Ref); err != nil {
		return err
	}
	if !strings.HasPrefix(p.Ref, headPrefix) || !strings.HasPrefix(p.Ref, under) {
		return &loop.Fault{
			Exit: loop.ExitRefused, What: fmt.Sprintf("%q is not pushed to", p.Ref),
			Why: "it is not below " + under, Fix: "push to a branch below " + under,
		}
	}
	return format.Check(p.Commit)
}

// Fetch brings the commits of a remote branch, by its full name, into the repository and
// returns the tip. Known is a commit of the repository whose history need not be sent; it
// may be empty. No ref is made: what is fetched is lost to git's garbage collection unless
// the caller makes one. A branch that is missing there is loop.ErrNotFound.
func (r *Repo) Fetch(ctx context.Context, from Remote, ref, known string) (id string, err error) {
	if err := CheckRef(ref); err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	transports, err := from.transports()
	if err != nil {
		return "", err
	}
	dir, err := makeScratch("", r.CommonDir, r.Format, from.URL)
	if err != nil {
		return "", fmt.Errorf("reach %s: %w", SafeURL(from.URL), err)
	}
	defer os.RemoveAll(dir)
	if known != "" {
		if err := r.Format.Check(known); err != nil {
			return "", err
		}
		name := filepath.Join(dir, filepath.FromSlash(headPrefix), "known")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(known+"\n"), 0o600)); err != nil {
			return "", err
		}
	}
	const fetched = headPrefix + "fetched"
	there := program.Git{Run: r.git.Run, Dir: dir, Env: from.environ(dir, transports)}.With("GIT_OBJECT_DIRECTORY=" + filepath.Join(r.CommonDir, "objects"))
	out := &program.Bounded{Limit: program.MaxOutput}
	err = there.Pipe(ctx, nil, out, "-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
		"--recurse-submodules=no", remoteName, "+"+ref+":"+fetched)
	if failed, ok := errors.AsType[*program.Error](err); ok && strings.Contains(failed.Stderr, "couldn't find remote ref") {
		return "", fmt.Errorf("fetch %s from %s: %w", ref, SafeURL(from.URL), loop.ErrNotFound)
	}
	if err != nil {
		return "", remoteFault(from, err, out.String())
	}
	tip, err := there.Output(ctx, nil, "rev-parse", "--verify", fetched)
	id = strings.TrimSpace(string(tip))
	return id, errors.Join(err, r.Format.Check(id))
}

// runGit runs one command of git that contacts the remote, with the objects of r. The
// secrets of the address are removed from errors.
func (to Remote) runGit(ctx context.Context, r *Repo, args ...string) ([]byte, error) {
	if _, err := to.transports(); err != nil {
		return nil, err
	}
	dir, err := makeScratch("", r.CommonDir, r.Format, to.URL)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", SafeURL(to.URL), err)
	}
	defer os.RemoveAll(dir)
	return to.runIn(ctx, r.git.Run, dir, args...)
}

// runIn is runGit in a scratch directory that is there already.
func (to Remote) runIn(ctx context.Context, run proc.Runner, dir string, args ...string) ([]byte, error) {
	transports, err := to.transports()
	if err != nil {
		return nil, err
	}
	there := program.Git{Run: run, Dir: dir, Env: to.environ(dir, transports)}
	out := &program.Bounded{Limit: program.MaxOutput}
	if err := there.Pipe(ctx, nil, out, args...); err != nil {
		return nil, remoteFault(to, err, out.String())
	}
	return out.Bytes(), nil
}

// makeScratch makes a git directory in the folder parent, by default that of
// temporary files, with an empty configuration but for the address. It borrows the
// objects of the repository in commonDir, unless that is empty.
func makeScratch(parent, commonDir string, format object.Format, address string) (string, error) {
	dir, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return "", err
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if format != object.SHA1 {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = " + string(format) + "\n"
	}
	config += fmt.Sprintf("[remote %q]\n\turl = \"%s\"\n", remoteName, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(address))
	files := map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config}
	if commonDir != "" {
		objects := filepath.Join(commonDir, "objects")
		files["objects/info/alternates"] = objects + "\n"
		// Without it git would miss the parents of a shallow clone's last commits.
		shallow, readErr := os.ReadFile(filepath.Join(commonDir, "shallow"))
		if readErr == nil {
			files["shallow"] = string(shallow)
		} else if !errors.Is(readErr, fs.ErrNotExist) {
			err = readErr
		}
		if strings.Contains(objects, "\n") {
			err = errors.Join(err, fmt.Errorf("the path %q cannot be written into a list of object stores", objects))
		}
	}
	for _, sub := range []string{"objects/info", "refs"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// remoteFault says why a remote did not do what it was asked.
func remoteFault(to Remote, err error, out string) error {
	failed, ok := errors.AsType[*program.Error](err)
	if !ok {
		return fmt.Errorf("reach %s: %w", SafeURL(to.URL), err)
	}
	why := withoutSecrets(to.URL, failed.Stderr)
	if strings.Contains(out, "[rejected]") && !strings.Contains(out, "[remote rejected]") {
		return fmt.Errorf("push to %s: %w: its branch holds other commits", SafeURL(to.URL), ErrRefMoved)
	}
	if strings.Contains(out, "[remote rejected]") {
		why = withoutSecrets(to.URL, out)
	}
	return &loop.Fault{
		Exit: loop.ExitError, What: "the remote " + SafeURL(to.URL) + " refused, or cannot be reached",
		Why: firstLines(why), Fix: "see that {1} works without a prompt, and that you may push there",
		Actions: []loop.Command{loop.HostCommand("git", "ls-remote", "URL").WithBlanks("URL")},
	}
}

// withoutSecrets removes the secrets of an address from what git printed, also
// where git printed them decoded.
func withoutSecrets(address, text string) string {
	text = strings.ReplaceAll(text, address, SafeURL(address))
	if u, err := url.Parse(address); err == nil && u.User != nil && u.Scheme != "ssh" {
		password, _ := u.User.Password()
		for _, secret := range []string{u.User.String(), password, url.QueryEscape(password), u.User.Username()} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "***")
			}
		}
	}
	return text
}

// firstLines bounds a message and takes the escapes out of it.
func firstLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && len(lines) < 4 {
			lines = append(lines, hazard.Printable(line))
		}
	}
	return strings.Join(lines, "; ")
}
