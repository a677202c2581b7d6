package program_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestTheEnvironmentIsMadeFromNothing(t *testing.T) {
	for name, value := range map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_SSH_COMMAND": "evil", "HOME": "/home/somebody"} {
		t.Setenv(name, value)
	}
	git := program.New(proc.Plain{}, "/r/.git", "/r/.git", "/r/.git")
	for _, kv := range git.Env {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains([]string{"GIT_CONFIG_COUNT", "GIT_SSH_COMMAND", "HOME", "GIT_COMMON_DIR"}, name) {
			t.Errorf("git is told %s", kv)
		}
	}
}

// Each of them keeps something away from git that a repository or a user could say.
func TestGitIsToldTheSameWhateverTheUserHasSet(t *testing.T) {
	git := program.New(proc.Plain{}, "/r/.git/worktrees/w", "/r/.git", "/w")
	told := map[string]string{}
	for _, kv := range git.Env {
		name, value, _ := strings.Cut(kv, "=")
		told[name] = value
	}
	for name, want := range map[string]string{
		"GIT_DIR": "/r/.git/worktrees/w", "GIT_COMMON_DIR": "/r/.git", "GIT_WORK_TREE": "/w", "GIT_INDEX_FILE": "/r/.git/worktrees/w/pawl-no-index",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_ATTR_NOSYSTEM": "1",
		"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "/bin/false", "GIT_OPTIONAL_LOCKS": "0", "GIT_LITERAL_PATHSPECS": "1",
		"GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "LC_ALL": "C", "TZ": "UTC",
		"GIT_AUTHOR_NAME": "pawl", "GIT_AUTHOR_EMAIL": "pawl@localhost", "GIT_COMMITTER_NAME": "pawl", "GIT_COMMITTER_EMAIL": "pawl@localhost",
	} {
		if got, ok := told[name]; !ok || got != want {
			t.Errorf("%s = %q, %v, want %q", name, got, ok, want)
		}
	}
	if told["PATH"] == "" {
		t.Error("git is told no PATH")
	}
}

func TestVariablesAreChangedForOneValueOnly(t *testing.T) {
	git := program.New(proc.Plain{}, "/r/.git", "/r/.git", "/r/.git")
	before := slices.Clone(git.Env)
	one, two := git.With("A=1"), git.With("A=2")
	if one.Env[len(before)] != "A=1" || two.Env[len(before)] != "A=2" || slices.Contains(git.Without("GIT_DIR").Env, "GIT_DIR=/r/.git") {
		t.Errorf("got %q and %q", one.Env[len(before):], two.Env[len(before):])
	}
	if !slices.Equal(before, git.Env) {
		t.Errorf("the first one has %q now", git.Env)
	}
}

func TestACommandThatFailsSaysWhatGitSaid(t *testing.T) {
	dir := gittest.Repo(t, nil) + "/.git"
	git := program.New(proc.Plain{}, dir, dir, dir)
	_, err := git.Output(t.Context(), nil, "rev-parse", "--verify", "none")
	failed, ok := errors.AsType[*program.Error](err)
	if !ok || program.Status(err) != 128 || failed.Verb != "rev-parse" || !strings.Contains(err.Error(), "Needed a single revision") {
		t.Errorf("error = %#v, want the status and the words of git", err)
	}
	if out, err := git.Output(t.Context(), nil, "rev-parse", "--git-dir"); err != nil || strings.TrimSpace(string(out)) != dir || program.Status(err) != 0 {
		t.Errorf("rev-parse = %q, %v", out, err)
	}
}

// full is a git that prints more than is kept.
type full struct{}

func (full) Run(_ context.Context, spec proc.Spec) (proc.Result, error) {
	_, err := io.WriteString(spec.Stdout, "a part")
	spec.Stdout.(*program.Bounded).Cut = true
	return proc.Result{Ended: proc.Exited}, err
}

// bounded runs git and notes how long it could have taken.
type bounded struct{ most time.Duration }

func (b *bounded) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	b.most = spec.Timeout
	return proc.Plain{}.Run(ctx, spec)
}

func TestACommandEndsAfterTwoMinutesUnlessItsGitSaysAnotherTime(t *testing.T) {
	dir := gittest.Repo(t, nil) + "/.git"
	for said, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Hour: time.Hour} {
		b := &bounded{}
		git := program.New(b, dir, dir, dir)
		git.Timeout = said
		if _, err := git.Output(t.Context(), nil, "version"); err != nil || b.most != want {
			t.Errorf("a Timeout of %v lets git run for %v, %v, want %v", said, b.most, err, want)
		}
	}
}

func TestHalfAnAnswerIsAnError(t *testing.T) {
	if out, err := program.New(full{}, "/r/.git", "/r/.git", "").Output(t.Context(), nil, "ls-tree"); out != nil || err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("Output = %q, %v, want that it is too much", out, err)
	}
}

func TestACheckoutThatIsGoneIsNamedAndNotAMissingGit(t *testing.T) {
	top := gittest.Repo(t, nil)
	dir := filepath.Join(top, ".git")
	git := program.New(proc.Plain{}, dir, dir, dir)
	for _, c := range [][2]string{{dir, "the git directory " + dir + " is gone"}, {top, "the checkout at " + top + " is gone"}} {
		if err := os.RemoveAll(c[0]); err != nil {
			t.Fatal(err)
		}
		_, err := git.Output(t.Context(), nil, "rev-parse", "HEAD")
		f, ok := errors.AsType[*loop.Fault](err)
		if !ok || f.Exit != loop.ExitNotFound || f.What != c[1] || strings.Contains(f.Advice().String(), "install") || !strings.Contains(f.Advice().String(), "put it back") {
			t.Errorf("error = %#v, want that %s", err, c[1])
		}
	}
}

// canceling is stopped while it runs git.
type canceling func()

func (cancel canceling) Run(context.Context, proc.Spec) (proc.Result, error) {
	cancel()
	return proc.Result{Ended: proc.Canceled}, nil
}

func TestACommandThatIsStoppedEndsWithTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("kill switch")
	git := program.New(canceling(func() { cancel(why) }), "/r/.git", "/r/.git", "")
	if out, err := git.Output(ctx, nil, "version"); !errors.Is(err, why) {
		t.Errorf("Output = %q, %v, want the cause", out, err)
	}
}
