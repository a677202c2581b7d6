package program_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/gittest"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/proc"
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

func TestWhatIsOverTheLimitIsDroppedAndSaid(t *testing.T) {
	b := &program.Bounded{Limit: 3}
	for _, text := range []string{"ab", "cd", "e"} {
		if n, err := b.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write = %d, %v, want all of it taken", n, err)
		}
	}
	if b.String() != "abc" || !b.Cut {
		t.Errorf("kept %q, cut: %v", b.String(), b.Cut)
	}
}
