package boots_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Each row of the tables of failures of the steps 1 to 4: the exit status, the reason code
// and the place.
func TestACheckNamesWhatStopsARun(t *testing.T) {
	for name, c := range map[string]struct {
		boot   map[string]string // changed files of the boot repository
		make   func(*rig)
		exit   int
		reason loop.Reason
		want   string // part of a finding
	}{
		"step 1: the link is missing": {
			make: func(r *rig) { r.remove("AGENT_LINK.md") }, exit: 3, reason: loop.ReasonLinkMissing, want: "AGENT_LINK.md:1:1: there is no AGENT_LINK.md",
		},
		"step 1: a parse error": {
			make: func(r *rig) { r.write("AGENT_LINK.md", link("../boot", "{{REF}}", "1.0.0")) }, exit: 4, reason: loop.ReasonLinkMalformed, want: "AGENT_LINK.md:6:21: '{{REF}}' is not filled in",
		},
		"step 1: no boot reference": {
			make: func(r *rig) { r.write("AGENT_LINK.md", "| Field | Value |\n|---|---|\n| Boot Version | `1.0.0` |\n") }, exit: 4, reason: loop.ReasonLinkNoBoot, want: "Boot Repository, Boot Reference",
		},
		"step 1: no boot version": {
			make: func(r *rig) {
				r.write("AGENT_LINK.md", strings.Replace(link("../boot", "v1.0.0", "1.0.0"), "Boot Version", "Version", 1))
			}, exit: 4, reason: loop.ReasonLinkNoVersion,
		},
		"step 1: the older form": {
			make: func(r *rig) { r.write("AGENT_LINK.md", older) }, exit: 4, reason: loop.ReasonLinkOlder, want: "pawl boot migrate",
		},
		"step 2: the repository cannot be reached": {
			make: func(r *rig) { r.write("AGENT_LINK.md", link("../gone", "v1.0.0", "1.0.0")) }, exit: 5, reason: loop.ReasonBootAway, want: "AGENT_LINK.md:5:22: ",
		},
		"step 2: the reference cannot be reached": {
			make: func(r *rig) { r.write("AGENT_LINK.md", link("../boot", "v9", "1.0.0")) }, exit: 5, reason: loop.ReasonBootAway, want: "v9",
		},
		"step 2: version mismatch": {
			make: func(r *rig) { r.write("AGENT_LINK.md", link("../boot", "v1.0.0", "2.0.0")) }, exit: 10, reason: loop.ReasonVersionMajor, want: "AGENT_LINK.md:7:19: ",
		},
		"step 2: missing schemas":          {boot: map[string]string{"schemas/todo-schema.json": ""}, exit: 5, reason: loop.ReasonBootIncomplete, want: "schemas/todo-schema.json"},
		"step 2: missing rules":            {boot: map[string]string{"contract/AGENT_RULES.md": ""}, exit: 5, reason: loop.ReasonBootIncomplete},
		"step 2: a schema that is not one": {boot: map[string]string{"schemas/state-schema.json": "{\"type\": 3}\n"}, exit: 4, reason: loop.ReasonBootSchema, want: "/boot/schemas/state-schema.json:1:"},
		"step 2: a version file that cannot be read": {
			boot: map[string]string{"VERSION.json": "{"}, exit: 4, reason: loop.ReasonBootMalformed, want: "/boot/VERSION.json:1:",
		},
		"step 3: a state that was lost": {make: func(r *rig) { r.remove("agent/STATE.json") }, exit: 11, reason: loop.ReasonStateLost, want: "git log -- agent/STATE.json"},
		"step 3: a state of 0.9": {
			make: func(r *rig) { r.write("agent/STATE.json", `{"version": "0.9.0", "phase": "idle"}`) }, exit: 4, reason: loop.ReasonStateOlder, want: "pawl boot migrate",
		},
		"step 4: a wrong type": {
			make: func(r *rig) { r.write("agent/STATE.json", strings.Replace(state(""), `"demo"`, "7", 1)) }, exit: 4, reason: loop.ReasonStateManual, want: "agent/STATE.json:4:20: /activeProject: ",
		},
		"step 4: an unknown value": {
			make: func(r *rig) { r.write("agent/STATE.json", strings.Replace(state(""), `"idle"`, `"asleep"`, 1)) }, exit: 4, reason: loop.ReasonStateManual, want: "agent/STATE.json:5:19: /currentPhase: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newWorkspace(t, c.boot)
			if c.make != nil {
				c.make(r)
			}
			got, err := r.Check(t.Context())
			if err != nil || got.Ready || got.Exit != c.exit {
				t.Fatalf("check = %+v, %v, want exit status %d", got, err, c.exit)
			}
			var lines []string
			for _, f := range got.Findings {
				if f.Severity == boots.SeverityError && f.Reason == c.reason {
					lines = append(lines, f.String())
				}
			}
			said := strings.Join(lines, "\n")
			if said == "" || !strings.Contains(said, c.want) || !strings.Contains(said, "("+string(c.reason)+")") {
				t.Errorf("findings = %v, want %s with %q", got.Findings, c.reason, c.want)
			}
		})
	}
}

func TestACheckNamesWhatARunWouldMendAndWritesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string // no text: it is removed
		reason     loop.Reason
		want       string
	}{
		"no tasks":            {"agent/TODO.json", "", loop.ReasonTodoTemplate, ""},
		"tasks that are cut":  {"agent/TODO.json", `{"version"`, loop.ReasonTodoMinimal, "agent/TODO.json:1:"},
		"a state that is cut": {"agent/STATE.json", `{"version": "1.0.0"`, loop.ReasonStateCommit, "recovered agent/STATE.json from "},
		"no phase":            {"agent/STATE.json", strings.Replace(state(""), ",\n  \"currentPhase\": \"idle\"", "", 1), loop.ReasonStateDefault, "/currentPhase"},
		"a status of others":  {"agent/TODO.json", tasks(task("t1", "wip", "low")), loop.ReasonTodoStatus, "/tasks/0/status"},
		"no changelog":        {"CHANGELOG.md", "", loop.ReasonChangelogNew, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newWorkspace(t, nil)
			if c.text == "" {
				r.remove(c.file)
			} else {
				r.write(c.file, c.text)
			}
			got, err := r.Check(t.Context())
			said := fmt.Sprint(got.Findings)
			if err != nil || !got.Ready || got.Exit != 0 || !strings.Contains(said, string(c.reason)) || !strings.Contains(said, c.want) {
				t.Errorf("check = %+v, %v, want %s with %q", got, err, c.reason, c.want)
			}
			for _, f := range got.Findings {
				if f.Severity != boots.SeverityRepair {
					t.Errorf("finding %+v, want a repair", f)
				}
			}
			now, err := os.ReadFile(r.root + "/" + c.file)
			if c.text == "" && err == nil || string(now) != c.text {
				t.Errorf("%s is %q, %v now", c.file, now, err)
			}
		})
	}
}

// What is wrong with the tasks is said, too, when the state stops a run.
func TestACheckNamesEveryFaultOfBothFiles(t *testing.T) {
	r := newWorkspace(t, nil)
	r.write("agent/STATE.json", "{\"version\": 1, \"lastUpdated\": \"soon\", \"activeProject\": \"x\", \"currentPhase\": \"idle\"}")
	r.write("agent/TODO.json", tasks(task("t1", "wip", "low")))
	got, err := r.Check(t.Context())
	said := fmt.Sprint(got.Findings)
	for _, want := range []string{"/version", "/lastUpdated", "/tasks/0/status"} {
		if err != nil || got.Exit != 4 || !strings.Contains(said, want) {
			t.Errorf("check = %+v, %v, want %s", got, err, want)
		}
	}
}

func TestACheckSaysThatACompanionContractIsNotRead(t *testing.T) {
	r := newWorkspace(t, nil)
	r.write("AGENT_LINK.md", link("../boot", "v1.0.0", "1.0.0")+"| Contract Repository | `acme/contract` |\n")
	got, err := r.Check(t.Context())
	if err != nil || !got.Ready || len(got.Findings) != 1 || got.Findings[0].Reason != loop.ReasonLinkContract || got.Findings[0].Line != 8 {
		t.Errorf("check = %+v, %v", got, err)
	}
}

func TestACheckWithAWarmCacheSaysThatItIsOffline(t *testing.T) {
	r := newWorkspace(t, nil)
	if got, err := r.Check(t.Context()); err != nil || !got.Ready || len(got.Findings) != 0 || got.Boot.Version != "1.0.0" || got.Boot.Offline != "" {
		t.Fatalf("check = %+v, %v", got, err)
	}
	if err := os.Rename(r.boot, r.boot+"-away"); err != nil {
		t.Fatal(err)
	}
	got, err := r.Check(t.Context())
	if err != nil || !got.Ready || got.Boot.Offline == "" || len(got.Findings) != 1 || got.Findings[0].Severity != boots.SeverityNote || !strings.Contains(got.Findings[0].Message, "offline") {
		t.Errorf("check = %+v, %v", got, err)
	}
}

func TestACheckReadsTheMemoryOfTheBranchThatTheLoopWorksOn(t *testing.T) {
	r := newWorkspace(t, nil)
	r.write(".loops/boot/loop.config.yaml", "base: main\n")
	r.commit(r.root, "definition")
	r.git("checkout", "-q", "-b", "other")
	r.write("agent/STATE.json", "{")
	if got, err := r.Check(t.Context()); err != nil || !got.Ready || len(got.Findings) != 0 {
		t.Errorf("check = %+v, %v, want the state of main", got, err)
	}
	r.write(".loops/boot/loop.config.yaml", "base: other\n")
	r.reopen()
	if got, err := r.Check(t.Context()); err != nil || len(got.Findings) == 0 {
		t.Errorf("check = %+v, %v, want the state of the checkout", got, err)
	}
}

func TestACheckNamesADefinitionThatCannotRun(t *testing.T) {
	r := newWorkspace(t, nil)
	r.write(".loops/boot/loop.config.yaml", "max_iterations: many\n")
	got, err := r.Check(t.Context())
	if err != nil || got.Exit != loop.ExitNotReady || !strings.Contains(fmt.Sprint(got.Findings), "max_iterations") {
		t.Errorf("check = %+v, %v", got, err)
	}
}
