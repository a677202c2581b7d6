package boots_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// olderWorkspace is one of the older form, as formats 3.1 and 3.4 tell of it.
func olderWorkspace(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.write("AGENT_LINK.md", older)
	r.write("agent/STATE.json", `{"version": "0.9.0", "lastUpdated": "2025-01-02T03:04:05Z", "activeProject": "demo", "phase": "testing", "owner": "ann"}`+"\n")
	r.write("agent/TODO.json", `{"version": "0.9.0", "todos": [{"id": "t1", "name": "First", "status": "wip", "priority": "p1", "estimate": 3}]}`+"\n")
	r.commit(r.root, "older")
	return r
}

func TestAnOlderWorkspaceIsMigratedOnceAndLosesNoValue(t *testing.T) {
	r := olderWorkspace(t)
	before := r.git("status", "--porcelain")
	plan, err := r.Outdated(t.Context(), boots.MigrateRequest{})
	if err != nil || plan.Written || len(plan.Files) != 3 || r.git("status", "--porcelain") != before {
		t.Fatalf("plan = %+v, %v", plan, err)
	}
	for i, want := range []string{"+| Boot Version | `1.0.0` |", `+  "currentPhase": "testing"`, `+      "title": "First"`} {
		if !strings.Contains(plan.Files[i].Diff, want) || !strings.HasPrefix(plan.Files[i].Diff, "diff a/"+plan.Files[i].Path) {
			t.Errorf("diff of %s has no %s:\n%s", plan.Files[i].Path, want, plan.Files[i].Diff)
		}
	}
	done, err := r.Migrate(t.Context(), boots.MigrateRequest{})
	if err != nil || !done.Written {
		t.Fatalf("migrate = %+v, %v", done, err)
	}
	all := r.read("AGENT_LINK.md") + r.read("agent/STATE.json") + r.read("agent/TODO.json")
	for _, value := range []string{"../boot", "`main`", "AGENT_RULES.md", "testing", "2025-01-02T03:04:05Z", "demo", "ann", "First", "in-progress", "high", "3"} {
		if !strings.Contains(all, value) {
			t.Errorf("%s is lost:\n%s", value, all)
		}
	}
	if c, err := r.Check(t.Context()); err != nil || !c.Ready {
		t.Errorf("check = %+v, %v", c, err)
	}
	if again, err := r.Migrate(t.Context(), boots.MigrateRequest{}); err != nil || again.Written || len(again.Files) != 0 {
		t.Errorf("a second time = %+v, %v", again, err)
	}
	if left, _ := filepath.Glob(filepath.Join(r.root, "agent", "*.pawl-new")); len(left) > 0 || r.git("log", "--oneline", "-n", "9") == "" {
		t.Errorf("left behind: %q", left)
	}
}

func TestAVersionThatNobodyKnowsIsAskedFor(t *testing.T) {
	r := olderWorkspace(t)
	if err := os.Rename(r.boot, r.boot+"-away"); err != nil {
		t.Fatal(err)
	}
	_, err := r.Migrate(t.Context(), boots.MigrateRequest{})
	wantFault(t, err, loop.ExitMissing, "pawl boot migrate --boot-version")
	if r.git("status", "--porcelain") != "" {
		t.Error("something was written")
	}
	_, err = r.Migrate(t.Context(), boots.MigrateRequest{Version: "one"})
	wantFault(t, err, loop.ExitUsage, "three numbers")
	if m, err := r.Migrate(t.Context(), boots.MigrateRequest{Version: "1.0.0"}); err != nil || !m.Written {
		t.Errorf("migrate = %+v, %v", m, err)
	}
}

func TestALinkThatNamesNothingIsMigratedWithWhatIsSaid(t *testing.T) {
	r := olderWorkspace(t)
	r.write("AGENT_LINK.md", "| Field | Value |\n|---|---|\n| Entry | `x.md` |\n")
	_, err := r.Outdated(t.Context(), boots.MigrateRequest{})
	wantFault(t, err, loop.ExitUnreadable, "Boot Repository")
	if m, err := r.Outdated(t.Context(), boots.MigrateRequest{Boot: "../boot@v1.0.0"}); err != nil || len(m.Files) != 3 || !strings.Contains(m.Files[0].Diff, "+| Boot Version | `1.0.0` |") {
		t.Errorf("plan = %+v, %v", m, err)
	}
}

func TestWhatCannotBeMigratedIsNamedAndNothingIsWritten(t *testing.T) {
	r := olderWorkspace(t)
	r.write("agent/TODO.json", `{"version": "1.0.0", "tasks": [{"id": "no good", "title": "x", "status": "done", "priority": "low"}]}`)
	r.commit(r.root, "odd")
	_, err := r.Migrate(t.Context(), boots.MigrateRequest{})
	wantFault(t, err, loop.ExitUnreadable, "/tasks/0/id")
	if r.git("status", "--porcelain") != "" {
		t.Error("something was written")
	}
}
