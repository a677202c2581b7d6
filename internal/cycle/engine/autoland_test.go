package engine_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// unattended is a definition at L3 whose agent writes one file below src.
func unattended(t *testing.T, r *rig, file, text string, autoland ...string) loop.Definition {
	t.Helper()
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, file), text)
		return says(t, req, `{"outcome":"done","summary":"written"}`)
	}
	def := until("test -f "+file, "u", []string{"src/**", file})
	def.Tier, def.Autoland = loop.TierUnattended, autoland
	return def
}

func TestAtL3NothingButTheClassesOfAutolandLands(t *testing.T) {
	locked := func(version, sum string) string {
		return `{"name":"x","lockfileVersion":3,"packages":{"node_modules/a":{"version":"` + version +
			`","resolved":"https://example.com/a-` + version + `.tgz","integrity":"sha512-` + strings.Repeat(sum, 86) + `=="}}}` + "\n"
	}
	lock, bumped := locked("1.0.0", "a"), locked("1.0.1", "b")
	for name, c := range map[string]struct {
		base, file, text string
		autoland         []string
		outcome          loop.Outcome
		asks             bool
	}{
		"a patch of a lockfile onto a branch of its own":     {"work", "package-lock.json", bumped, []string{"lockfile-patch"}, loop.OutcomeLanded, false},
		"without a gate even a patch of a lockfile asks":     {"work", "package-lock.json", bumped, []string{"lockfile-patch"}, loop.OutcomeProposed, true},
		"a patch of a lockfile onto main asks":               {"main", "package-lock.json", bumped, []string{"lockfile-patch"}, loop.OutcomeProposed, true},
		"a change of another class asks":                     {"work", "src/a.txt", "two\n", []string{"lockfile-patch"}, loop.OutcomeProposed, true},
		"without a class everything asks":                    {"work", "src/a.txt", "two\n", nil, loop.OutcomeProposed, true},
		"a green change does not land, it may be shown only": {"work", "src/a.txt", "two\n", []string{"green-pr"}, loop.OutcomeProposed, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, storetest.SQLite(t))
			gittest.WriteFile(t, filepath.Join(r.root, "package-lock.json"), lock)
			gittest.Run(t, r.root, "add", "-A")
			gittest.Run(t, r.root, "commit", "-qm", "a lockfile")
			if c.base != "main" {
				gittest.Run(t, r.root, "checkout", "-qb", c.base)
			}
			before := gittest.Run(t, r.root, "rev-parse", c.base)
			def := unattended(t, r, c.file, c.text, c.autoland...)
			def.Sense, def.Verify, def.Guard = "false", "true", "true"
			if strings.HasPrefix(name, "without a gate") {
				def.Verify, def.Guard = "", ""
			}
			run := r.run(r.target("u", pinned{}, def), engine.Firing{})
			if run.Outcome != c.outcome || (run.Approval != "") != c.asks {
				t.Errorf("run = %s %q, approval %q; want %s, asks %v", run.Outcome, run.Detail, run.Approval, c.outcome, c.asks)
			}
			landed := gittest.Run(t, r.root, "rev-parse", c.base) != before
			if landed == c.asks {
				t.Errorf("landed = %v although a human is asked = %v", landed, c.asks)
			}
		})
	}
}

// What judges the work may be changed where the scope names it; a human is told
// what the gates say with the judges as they were.
func TestAChangeOfWhatJudgesIsTriedWithTheJudgesOfTheBase(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	gittest.WriteFile(t, filepath.Join(r.root, "src/a_test.py"), "raise SystemExit(1)\n")
	gittest.Run(t, r.root, "add", "-A")
	gittest.Run(t, r.root, "commit", "-qm", "a test that fails")
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a_test.py"), "pass\n")
		return says(t, req, `{"outcome":"done","summary":"made it pass"}`)
	}
	def := until("! grep -q SystemExit src/a_test.py", "u", []string{"src/*_test.py"})
	run := r.run(r.target("u", pinned{}, def), engine.Firing{})
	its := r.iterations(run.ID)
	if run.Outcome != loop.OutcomeProposed || len(its) != 1 {
		t.Fatalf("run = %s %q with %d iterations, want proposed", run.Outcome, run.Detail, len(its))
	}
	failed := slices.ContainsFunc(its[0].Gates, func(g loop.GateResult) bool { return g.Name == "verify@base" && !g.Pass })
	if !failed {
		t.Errorf("gates = %+v, want verify@base to fail", its[0].Gates)
	}
	a := r.approval(run.Approval)
	text := strings.Join(a.Action.Flags, "; ")
	if !strings.Contains(text, "it changes what judges it: src/a_test.py") || !strings.Contains(text, "verify@base fails") {
		t.Errorf("flags = %q", text)
	}
}

func TestALineThatIsNotWhatItLooksLikeIsAFlagOfTheProposal(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\u202eowt\n")
		return says(t, req, `{"outcome":"done","summary":"written"}`)
	}
	run := r.run(r.target("u", pinned{}, until("grep -q two src/a.txt", "u", []string{"src/**"})), engine.Firing{})
	if run.Outcome != loop.OutcomeProposed {
		t.Fatalf("run = %s %q, want proposed", run.Outcome, run.Detail)
	}
	if text := strings.Join(r.approval(run.Approval).Action.Flags, "; "); !strings.Contains(text, "src/a.txt") || !strings.Contains(text, "202e") && !strings.Contains(text, "202E") {
		t.Errorf("flags = %q, want the character and its line", text)
	}
}

func TestASecretInTheCandidateRefusesIt(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	key := "ghp_" + "x7Kq2mZ9pLw4Rt8vYb3Nc6Hs1Jd5Gf0QaEoU"
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "token = "+key+"\n")
		return says(t, req, `{"outcome":"done","summary":"put `+key+` in"}`)
	}
	run := r.run(r.target("u", pinned{}, until("grep -q token src/a.txt", "u", []string{"src/**"})), engine.Firing{})
	if run.Outcome != loop.OutcomeRefused || run.Reason != loop.ReasonSecret || !strings.Contains(run.Detail, "src/a.txt: line 1 holds a secret") {
		t.Errorf("run = %s %s %q, want refused for a secret", run.Outcome, run.Reason, run.Detail)
	}
	if strings.Contains(run.Detail+run.Summary, key) || strings.Contains(r.iterations(run.ID)[0].Report, key) {
		t.Error("the secret stands in the rows of the run")
	}
	if kept := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); !strings.HasPrefix(kept, "token = ") || strings.Contains(kept, key) {
		t.Errorf("the snapshot holds %q, want the file without the secret", kept)
	}
	if parents, want := gittest.Run(t, r.root, "log", "-1", "--format=%P", run.Snapshot), gittest.Run(t, r.root, "rev-parse", "main"); parents != want {
		t.Errorf("the snapshot is on %q, want %s", parents, want)
	}
}
