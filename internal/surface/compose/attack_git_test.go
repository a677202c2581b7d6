//go:build unix

package compose_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

// hostileTree is what the repository's own tree holds against git.
func hostileTree(evil string) map[string]string {
	config := "[core]\n\tbare = true\n\tfsmonitor = " + evil + "\n\thooksPath = .\n"
	return map[string]string{
		".gitattributes": "* filter=evil diff=evil merge=evil\n", "src/crlf": "a\r\nb\r\n",
		"src/bare.git/HEAD": "ref: refs/heads/main\n", "src/bare.git/config": config, "src/bare.git/objects/keep": "", "src/bare.git/refs/keep": "",
		"HEAD": "ref: refs/heads/main\n", "config": config, "objects/keep": "", "refs/keep": "",
	}
}

func TestAttack025AHostileRepositoryRunsNothingFromInitToLanding(t *testing.T) {
	t.Parallel()
	v := attacked(t, "echo three >src/a.txt; printf 'c\\r\\n' >>src/crlf", hostileTree("/bin/false"))
	marker := gittest.Arm(v.t, v.root, v.outside)
	must(t, runPlainGit(t.Context(), v.root, "status"))
	if err := os.Remove(marker); err != nil {
		t.Fatalf("plain git started nothing, so this test proves nothing: %v", err)
	}
	ctx := t.Context()
	v.open(os.Environ())
	p := probe.Prober{Exec: proc.Plain{}, Environ: os.Environ(), Home: v.outside}
	_, err := v.svc.Setup.Survey(ctx, p)
	must(t, err)
	must(t, v.svc.Setup.Register(ctx, ann, false))
	_, err = v.svc.Setup.TryGates(ctx, "fix", nil)
	must(t, err)
	found := loops.Found{Name: "fix", Path: filepath.Join(v.root, ".loops/fix/loop.config.yaml")}
	checked, err := loops.Check(found)
	must(t, err)
	doctor := setup.Doctor{Service: v.svc.Setup, Probe: p, Dir: v.root, Home: v.home}
	if rows := append(doctor.LoopRows(ctx, checked), doctor.MachineRows(ctx)...); len(rows) < 5 {
		t.Errorf("doctor has only %+v", rows)
	}
	run := v.runs()
	if run.Outcome != loop.OutcomeProposed {
		t.Fatalf("run = %s %s %q, want proposed", run.Outcome, run.Reason, run.Detail)
	}
	diff, err := v.svc.Runs.Diff(ctx, "fix#1")
	must(t, err)
	if !strings.Contains(diff.Patch, "+three") {
		t.Errorf("diff:\n%s", diff)
	}
	landed, err := v.svc.Approvals.Approve(ctx, run.Approval, loop.Answer{By: "somebody"})
	must(t, err)
	if landed.Outcome != loop.OutcomeLanded {
		t.Fatalf("landing = %s %s %q", landed.Outcome, landed.Reason, landed.Detail)
	}
	tip, err := v.tip()
	must(t, err)
	if tip != run.Commit {
		t.Errorf("main is at %s, want %s", tip, run.Commit)
	}
	if got := readFile(t, filepath.Join(v.root, "src/crlf")); got != "a\r\nb\r\nc\r\n" {
		t.Errorf("src/crlf = %q, want it byte for byte", got)
	}
	v.obeys("echo four >README.md")
	if again := v.runs(); again.Outcome != loop.OutcomeRefused || again.Snapshot == "" {
		t.Errorf("second run = %s, snapshot %q", again.Outcome, again.Snapshot)
	}
	_, err = v.svc.Snapshots.List(ctx)
	must(t, err)
	_, err = v.svc.Runs.Recover(ctx)
	must(t, err)
	must(t, v.svc.Audit.VerifyChain(ctx, "fix"))
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
}

// runPlainGit runs what a person would, in a repository that is hostile.
func runPlainGit(ctx context.Context, dir string, args ...string) error {
	_, err := proc.Plain{}.Run(ctx, proc.Spec{Argv: append([]string{"git", "-C", dir}, args...), Env: os.Environ()})
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAttack032… lets the agent of a run arm the repository of the host behind
// its back, which nothing but the sandbox prevents. The approval is then worth
// nothing until a person has looked.
func TestAttack032ConfigurationThatChangedAfterTheGatesLandsNothing(t *testing.T) {
	t.Parallel()
	for name, arm := range map[string]string{
		"a file system monitor":        `git -C ROOT config core.fsmonitor OUTSIDE/evil`,
		"a hook":                       `cp OUTSIDE/evil ROOT/.git/hooks/reference-transaction`,
		"a filter":                     `git -C ROOT config filter.evil.smudge OUTSIDE/evil; echo '* filter=evil' >ROOT/.git/info/attributes`,
		"a merge driver":               `git -C ROOT config merge.evil.driver OUTSIDE/evil`,
		"a program that signs":         `git -C ROOT config gpg.program OUTSIDE/evil; git -C ROOT config commit.gpgsign true`,
		"an included file":             `git -C ROOT config include.path ../src/more`,
		"a conditional include":        `git -C ROOT config includeIf.gitdir:/.path ../src/more`,
		"another object store":         `mkdir -p OUTSIDE/objects; echo OUTSIDE/objects >ROOT/.git/objects/info/alternates`,
		"a replaced commit":            `git -C ROOT replace HEAD $(git -C ROOT -c user.name=x -c user.email=x commit-tree -m x HEAD^{tree})`,
		"a configuration per worktree": `git -C ROOT config extensions.worktreeConfig true; printf '[core]\n\tfsmonitor = OUTSIDE/evil\n' >ROOT/.git/config.worktree`,
		"an alias":                     `git -C ROOT config alias.status '!OUTSIDE/evil'`,
		"a helper for logins":          `git -C ROOT config credential.helper '!OUTSIDE/evil'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := attacked(t, "echo three >src/a.txt\n"+arm, nil)
			marker := filepath.Join(v.outside, "marker")
			must(t, os.WriteFile(filepath.Join(v.outside, "evil"), []byte("#!/bin/sh\necho >>"+marker+"\nexit 1\n"), 0o755))
			run := v.runs()
			if run.Outcome != loop.OutcomeProposed {
				t.Fatalf("run = %s %s %q, want proposed", run.Outcome, run.Reason, run.Detail)
			}
			landing, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"})
			must(t, err)
			if landing.Outcome != loop.OutcomeRefused || landing.Reason != loop.ReasonGitConfig {
				t.Errorf("landing = %s %s %q, want refused by git_config", landing.Outcome, landing.Reason, landing.Detail)
			}
			v.accounted(landing, "outcome=refused", "reason=git_config")
			if tip, err := v.tip(); err != nil || tip != v.main {
				t.Errorf("main is at %s, %v, was %s", tip, err, v.main)
			}
			if got := readFile(t, filepath.Join(v.root, "src/a.txt")); got != "one\n" {
				t.Errorf("the checkout holds %q", got)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("what was planted was started")
			}
		})
	}
}

func TestAttack037ABaseThatMovedIsGatedAgainAndNeverLandedOn(t *testing.T) {
	t.Parallel()
	v := attacked(t, "echo three >src/a.txt", nil, "verify", "! test -e src/broken")
	run := v.runs()
	v.wantProposed(run)
	v.write("src/broken", "x\n")
	v.git("add", "-A")
	v.git("commit", "-q", "-m", "somebody else")
	v.main = v.git("rev-parse", "main")
	again, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"})
	must(t, err)
	if again.Outcome != loop.OutcomeFailed || again.Reason != loop.ReasonGateFailed {
		t.Errorf("landing = %s %s %q, want that the gate fails on the new base", again.Outcome, again.Reason, again.Detail)
	}
	if now := v.git("rev-parse", "main"); now != v.main {
		t.Errorf("main is at %s, was %s", now, v.main)
	}
}

func TestAttack010AChangeThatCollidesOnTheNewBaseIsRefusedBeforeItsGates(t *testing.T) {
	t.Parallel()
	v := attacked(t, "echo x >src/new", nil)
	v.define("verify", "echo ran >>'"+v.outside+"/gate.log'")
	run := v.runs()
	v.wantProposed(run)
	gated := readFile(t, filepath.Join(v.outside, "gate.log"))
	// By plumbing: not every file system holds both names.
	v.write("other", "x\n")
	blob := v.git("hash-object", "-w", "other")
	v.git("update-index", "--add", "--cacheinfo", "100644,"+blob+",src/New")
	v.git("commit", "-q", "-m", "somebody else")
	v.main = v.git("rev-parse", "main")
	again, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"})
	must(t, err)
	if again.Outcome != loop.OutcomeRefused || again.Reason != loop.ReasonScope || again.Approval != "" || again.Branch != "" {
		t.Errorf("landing = %s %s %q, branch %q, want refused by scope", again.Outcome, again.Reason, again.Detail, again.Branch)
	}
	if now := readFile(t, filepath.Join(v.outside, "gate.log")); now != gated {
		t.Error("a gate ran what was refused")
	}
	if now := v.git("rev-parse", "main"); now != v.main {
		t.Errorf("main is at %s, was %s", now, v.main)
	}
}

func TestAttack109AProposalIsMadeAgainOnItsOwnBaseWhateverIsCheckedOut(t *testing.T) {
	t.Parallel()
	v := attacked(t, "echo three >src/a.txt", nil)
	run := v.runs()
	v.wantProposed(run)
	v.git("commit", "-q", "--allow-empty", "-m", "somebody else")
	v.main = v.git("rev-parse", "main")
	v.git("checkout", "-q", "-b", "elsewhere")
	v.git("commit", "-q", "--allow-empty", "-m", "not on main")
	again, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"})
	if exitOf(err) != loop.ExitWaiting {
		t.Errorf("approve = %v, want that it says that nothing has landed", err)
	}
	if again.Outcome != loop.OutcomeProposed || again.Base != v.main {
		t.Fatalf("landing = %s %q on %s, want a new proposal on %s", again.Outcome, again.Detail, again.Base, v.main)
	}
	a, err := v.svc.Approvals.Find(t.Context(), again.Approval)
	must(t, err)
	if a.Action.Base != "main" || a.Action.Onto != v.main {
		t.Errorf("it asks for %s at %s, want main at %s", a.Action.Base, a.Action.Onto, v.main)
	}
}

func TestAttack109AnApprovalIsWorthNothingForWhatItDidNotShow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(v *victim, run runs.View){
		"the branch was moved": func(v *victim, run runs.View) {
			v.git("update-ref", "refs/heads/"+run.Branch, v.git("commit-tree", "-m", "x", "-p", "main", "main^{tree}"))
		},
		"the branch is gone":         func(v *victim, run runs.View) { v.git("branch", "-D", run.Branch) },
		"the definition was changed": func(v *victim, _ runs.View) { v.define("verify", "true") },
		"the scope was widened":      func(v *victim, _ runs.View) { v.define("scope", `["src/**", "*.md"]`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := attacked(t, "echo three >src/a.txt", nil)
			run := v.runs()
			v.wantProposed(run)
			change(v, run)
			if got, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"}); exitOf(err) != loop.ExitRefused {
				t.Errorf("approve = %+v, %v, want refused", got, err)
			}
			if now := v.git("rev-parse", "main"); now != v.main {
				t.Errorf("main is at %s, was %s", now, v.main)
			}
			if _, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"}); exitOf(err) != loop.ExitHeld {
				t.Errorf("approved once more: %v, want that it is closed", err)
			}
		})
	}
}

func TestAttack110AnApprovalCountsOnceAndForItsOwnRun(t *testing.T) {
	t.Parallel()
	v := attacked(t, "date +%N >src/a.txt", nil)
	first := v.runs()
	if waits, err := v.start(); err != nil || waits.Reason != loop.ReasonStepWaiting {
		t.Fatalf("run beside an open question = %s %q, %v, want that it waits", waits.Outcome, waits.Detail, err)
	}
	v.define("goal", "another one")
	second, err := v.start()
	if err != nil || second.Outcome != loop.OutcomeProposed {
		t.Fatalf("second run = %s %q", second.Outcome, second.Detail)
	}
	if _, err := v.svc.Approvals.Approve(t.Context(), first.Approval, loop.Answer{By: "somebody"}); exitOf(err) != loop.ExitHeld {
		t.Errorf("the approval of a proposal that a newer one took the place of: %v, want void", err)
	}
	landed, err := v.svc.Approvals.Approve(t.Context(), second.Approval, loop.Answer{By: "somebody"})
	must(t, err)
	if tip := v.git("rev-parse", "main"); landed.Outcome != loop.OutcomeLanded || tip != second.Commit {
		t.Errorf("landed %s at %s, want %s", landed.Outcome, tip, second.Commit)
	}
	if _, err := v.svc.Approvals.Approve(t.Context(), second.Approval, loop.Answer{By: "somebody"}); exitOf(err) != loop.ExitHeld {
		t.Errorf("the same approval once more: %v, want that it is used up", err)
	}
	other := attacked(t, "echo three >src/a.txt", nil)
	if _, err := other.svc.Approvals.Approve(t.Context(), second.Approval, loop.Answer{By: "somebody"}); exitOf(err) != loop.ExitNotFound {
		t.Errorf("in another workspace: %v, want that there is none", err)
	}
}

func TestAttack112OfYesAndNoAtOnceOneWinsAndIsRecorded(t *testing.T) {
	t.Parallel()
	v := attacked(t, "echo three >src/a.txt", nil)
	run := v.runs()
	v.wantProposed(run)
	said := make(chan error, 2)
	go func() {
		_, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "yes"})
		said <- err
	}()
	go func() {
		_, err := v.svc.Approvals.Reject(t.Context(), run.Approval, loop.Answer{By: "no"})
		said <- err
	}()
	if one, two := <-said, <-said; (one == nil) == (two == nil) {
		t.Errorf("both said: %v and %v, want one to win", one, two)
	}
	a, err := v.svc.Approvals.Find(t.Context(), run.Approval)
	must(t, err)
	landed := v.git("rev-parse", "main") != v.main
	if landed != (a.State == loop.ApprovalApproved) || (a.By == "yes") != landed {
		t.Errorf("approval is %s by %s, and landed is %v", a.State, a.By, landed)
	}
	must(t, v.svc.Audit.VerifyChain(t.Context(), "fix"))
}

// tip is where main stands, read so that nothing of the repository's
// configuration acts.
func (v *victim) tip() (string, error) {
	repo, err := git.Open(v.t.Context(), v.root)
	if err != nil {
		return "", err
	}
	commit, _, err := repo.Ref(v.t.Context(), "refs/heads/main")
	return commit, err
}
