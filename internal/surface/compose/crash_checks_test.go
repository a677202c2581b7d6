package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// checkRecovered reads every snapshot that recovery named.
func (s *fixture) checkRecovered(list []string) {
	s.t.Helper()
	for _, rec := range list {
		f := strings.Fields(rec)
		if len(f) == 4 {
			if got := s.git("show", f[3]+":src/a.txt"); got != "two" && got != "three" {
				s.t.Errorf("%s keeps a.txt = %q", f[3], got)
			}
		}
	}
}

// checkReported holds that a run which was cut off is named by the command that
// concluded it, with the phase in which its process died.
func (s *fixture) checkReported(at string, reported []string) {
	s.t.Helper()
	first := readFile(s.t, filepath.Join(s.root, ".loops/fix/run-log.md"))
	if strings.Contains(first, "run#1  ") && strings.Contains(first, "outcome=interrupted") && len(reported) != 1 {
		s.t.Errorf("a run was interrupted and recovery reports %v", reported)
	}
	area := strings.Split(at, ".")[1]
	if strings.HasPrefix(at, "engine.") && (area == "act" || area == "gather" || area == "verify") {
		if want := "fix#1 " + area + " interrupted "; len(reported) != 1 || !strings.HasPrefix(reported[0], want) {
			s.t.Errorf("recovery reports %q, want %q", reported, want)
		}
	}
}

// nothingLeft takes stock of processes, trees, locks, temporary files and refs. A
// copy that is kept for a person, because no snapshot of it could be made, stays.
func (s *fixture) nothingLeft() {
	s.t.Helper()
	for _, pattern := range []string{
		filepath.Join(s.home, "trees", "run_*"), filepath.Join(s.home, "trees", ".run_*"), filepath.Join(s.home, "runs", "*"),
		filepath.Join(s.root, ".git", "*.lock"), filepath.Join(s.root, ".git", "pawl-effects-*"),
		filepath.Join(s.root, ".git", "refs", "pawl", "candidates"), filepath.Join(s.root, ".loops", "fix", ".*"),
	} {
		left, err := filepath.Glob(pattern)
		if err != nil || len(left) > 0 {
			s.t.Errorf("left behind: %v %v", left, err)
		}
	}
	if refs := s.git("for-each-ref", "--format=%(refname)", "refs/pawl/tmp", "refs/pawl/candidates"); refs != "" {
		s.t.Errorf("left behind: %s", refs)
	}
	if wt := s.git("worktree", "list"); strings.Count(wt, "\n") != 0 {
		s.t.Errorf("left behind: %s", wt)
	}
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err == nil && strings.Contains(string(env), "PAWL_RUN=") && strings.Contains(string(env), s.home) {
			s.t.Errorf("process %s is left behind", p)
		}
	}
}

// reader is the service of the fixture's repository in a process that writes nothing.
func (s *fixture) reader() *api.Workspace {
	t, ctx := s.t, s.t.Context()
	t.Helper()
	settings, err := config.Load(config.Settings{Home: s.home, Database: s.database}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := compose.New(ctx, compose.Options{Settings: settings, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	svc, err := d.Verbs(ctx, s.root)
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// checkRuns holds the rows against each other and against the files.
func (s *fixture) checkRuns(last runs.View) {
	t, ctx := s.t, s.t.Context()
	t.Helper()
	svc := s.reader()
	all, err := svc.Runs.List(ctx, "fix", 10)
	if err != nil {
		t.Fatal(err)
	}
	if all[0].ID != last.ID {
		t.Errorf("newest run is %s, want %s", all[0].ID, last.ID)
	}
	lines, bad := runlog.Parse(readFile(t, filepath.Join(s.root, ".loops/fix/run-log.md")))
	// A run that ends paused writes no line.
	logged := slices.DeleteFunc(slices.Clone(all), func(v runs.View) bool {
		return v.Outcome == loop.OutcomePaused
	})
	if len(bad) > 0 || len(lines) != len(logged) {
		t.Errorf("run log has %d lines and %d bad ones for %d runs", len(lines), len(bad), len(logged))
	}
	for i, v := range logged {
		if len(lines) == len(logged) && (lines[len(logged)-1-i].Run != v.N || lines[len(logged)-1-i].Outcome != v.Outcome.Meaning().Log) {
			t.Errorf("log line %+v does not tell run #%d %s", lines[len(logged)-1-i], v.N, v.Outcome)
		}
	}
	proposed := 0
	for i, v := range all {
		if v.N != int64(len(all)-i) || v.State != "ended" || v.Outcome == "" {
			t.Errorf("run %d = #%d %s %s, want ended and without gaps", i, v.N, v.State, v.Outcome)
		}
		if v.Outcome == loop.OutcomeProposed {
			if v.Iterations[0].Step == "a.txt is wrong" {
				proposed++
			}
			s.checkBranch(v)
		} else if out := s.git("for-each-ref", "refs/heads/pawl/fix/"+fmt.Sprint(v.N)); out != "" {
			t.Errorf("run #%d is %s and has a branch: %s", v.N, v.Outcome, out)
		}
	}
	if proposed != 1 {
		t.Errorf("%d runs proposed the repair of the item, want 1", proposed)
	}
	s.checkState(all)
	if err := svc.Audit.VerifyChain(ctx, "fix"); err != nil {
		t.Error(err)
	}
}

// checkBranch holds that the tree on the branch is the tree that the gates saw.
func (s *fixture) checkBranch(v runs.View) {
	s.t.Helper()
	it := v.Iterations[len(v.Iterations)-1]
	if tree := s.git("rev-parse", v.Branch+"^{tree}"); tree != it.Tree || it.Verdict != loop.VerdictPass {
		s.t.Errorf("%s holds tree %s, gated was %s with %s", v.Branch, tree, it.Tree, it.Verdict)
	}
	if commit := s.git("rev-parse", v.Branch); commit != v.Commit {
		s.t.Errorf("%s is at %s, the row says %s", v.Branch, commit, v.Commit)
	}
}

func (s *fixture) checkState(all []runs.View) {
	s.t.Helper()
	text := readFile(s.t, filepath.Join(s.root, ".loops/fix/STATE.md"))
	st, err := spine.ParseState(text)
	if err != nil {
		s.t.Errorf("STATE.md: %v", err)
		return
	}
	if st.RunN != all[0].N {
		s.t.Errorf("STATE.md is of run #%d, want #%d", st.RunN, all[0].N)
	}
	if !strings.Contains(text, "a note by hand") {
		s.t.Errorf("a hand-written line is gone:\n%s", text)
	}
	if items := st.Items(spine.SectionWatch); len(items) != 1 || items[0].Text != "a.txt is wrong" {
		s.t.Errorf("Watch = %+v, want the item whose branch is proposed", items)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
