package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

const agentFile = "---\nenabled: true\ninterval: 15m\n---\nYou build things.\n"

// agents writes files of agents, of which each is enabled.
func (r *rig) agents(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		r.write("agents/"+id+"/LOOP.md", agentFile)
	}
}

func TestAgentsAreListedBesideOtherLoops(t *testing.T) {
	r := newRig(t, "")
	r.defines("a", "")
	r.defines("z", "")
	r.agents("dev", "zz")
	r.write("agents/qa/MANIFEST.yaml", "agent: {id: qa}\nloop: {enabled: true, interval: 1h}\n")
	r.write("agents/docs/README.md", "no agent")
	r.write("agents/README.md", "no agent")
	r.write("org.yaml", "chief: dev\n")
	list, err := r.List(t.Context(), catalog.Page{})
	if want := []string{"spine:a", "tasks:dev", "tasks:qa", "spine:z", "tasks:zz"}; err != nil || !slices.Equal(keysOf(list), want) {
		t.Fatalf("list = %q, %v, want %q", keysOf(list), err, want)
	}
	for i, want := range map[int]string{1: "agents/dev/LOOP.md", 2: "agents/qa/MANIFEST.yaml"} {
		if e := list[i]; e.Problem != nil || len(e.Warnings) > 0 || filepath.ToSlash(e.File) != want || e.Definition.Tasks == nil || e.Definition.Protocol != loop.ProtocolTasks {
			t.Errorf("%s = %+v, %v, %q", want, e.Definition, e.Problem, e.Warnings)
		}
	}
	for _, name := range []string{"dev", "tasks:dev"} {
		e, err := r.Lookup(t.Context(), name)
		if err != nil || e.Problem != nil || e.Definition.Tasks.Tier != 1 || e.Definition.Cadence != "15m" {
			t.Errorf("%s = %+v, %v, %v", name, e.Definition, e.Problem, err)
		}
	}
	def, warnings, err := formats.Load(r.ws.Root, "qa")
	if err != nil || len(warnings) > 0 || def.Cadence != "1h" || def.Tasks.ReportsTo != "dev" {
		t.Errorf("qa = %+v, %q, %v", def, warnings, err)
	}
}

func TestANameThatTwoProtocolsKnowIsRefusedWithTheChoice(t *testing.T) {
	r := newRig(t, "")
	r.defines("dev", "")
	r.agents("dev")
	_, err := r.Lookup(t.Context(), "dev")
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUsage || f.Fix != "say which: spine:dev or tasks:dev" {
		t.Errorf("dev: %v", err)
	}
	for name, protocol := range map[string]string{"spine:dev": loop.ProtocolSpine, "tasks:dev": loop.ProtocolTasks} {
		if e, err := r.Lookup(t.Context(), name); err != nil || e.Problem != nil || e.Protocol != protocol {
			t.Errorf("%s = %+v, %v", name, e.Definition, err)
		}
	}
}

func TestOneAgentThatCannotBeReadKeepsNoOtherFromRunning(t *testing.T) {
	r := newRig(t, "")
	r.agents("dev")
	r.write("agents/broken/LOOP.md", "no front matter")
	r.write("agents/wrong/LOOP.md", "---\non_blocked: wait\n---\n")
	if err := os.Symlink("dev", filepath.Join(r.ws.Root, "agents", "link")); err != nil {
		t.Fatal(err)
	}
	list, err := r.List(t.Context(), catalog.Page{})
	if want := []string{"tasks:broken", "tasks:dev", "tasks:link", "tasks:wrong"}; err != nil || !slices.Equal(keysOf(list), want) {
		t.Fatalf("list = %q, %v", keysOf(list), err)
	}
	for i, want := range []string{"no front matter", "", "link is not a folder", "agents/wrong/LOOP.md:2:13: on_blocked: 'wait' is unknown"} {
		if got := list[i].Problem; (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s: problem %v, want %q", list[i].Name, got, want)
		}
	}
	r.write("org.yaml", "chief: [\n")
	if e, err := r.Lookup(t.Context(), "dev"); err != nil || e.Problem == nil || !strings.Contains(e.Problem.Error(), "org.yaml cannot be read") {
		t.Errorf("with an organisation that cannot be read: %v, %v", e.Problem, err)
	}
}

func TestNoOtherFileMakesAnAgent(t *testing.T) {
	r := newRig(t, "")
	r.defines("other", "protocol: tasks\n")
	e, err := r.Lookup(t.Context(), "other")
	if f, ok := errors.AsType[*loop.Fault](e.Problem); err != nil || !ok || f.Exit != loop.ExitNotReady || !strings.Contains(f.Error(), formats.Elsewhere(loop.ProtocolTasks)) {
		t.Errorf("other: %v, problem %v", err, e.Problem)
	}
}

func TestAnAgentIsRegisteredAsItsFilesAndThoseOfItsOrganisationChange(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	r.registers()
	sync := func(what, cadence string, changed int) {
		t.Helper()
		s, err := r.Sync(t.Context())
		if err != nil || s.Changed != changed {
			t.Errorf("%s: %+v, %v, want %d changed", what, s, err, changed)
		}
		e, err := r.Lookup(t.Context(), "tasks:dev")
		if err != nil || cadence != "" && (e.Problem != nil || e.Definition.Cadence != cadence) {
			t.Errorf("%s: %v, %v, %v", what, e.Definition.Cadence, e.Problem, err)
		}
		if due := !e.Row.Registered.Due.IsZero(); due != (cadence != "") {
			t.Errorf("%s: due %v", what, e.Row.Registered.Due)
		}
	}
	r.write("agents/dev/LOOP.md", "---\nenabled: true\n---\n")
	sync("new", "15m", 1)
	sync("as it was", "15m", 0)
	r.write("org.yaml", "departments: {a: {lead: dev}}\n")
	sync("it leads", "10m", 1)
	r.write("org.yaml", "chief: dev\n")
	sync("it is the chief", "5m", 1)
	r.write("agents/LOOP.md", "---\nfields: {interval: {default: 7m}}\n---\n")
	sync("a default", "7m", 1)
	r.write("agents/dev/MANIFEST.yaml", "agent: {role: developer}\n")
	sync("a role", "7m", 1)
	r.write("agents/dev/LOOP.md", "---\nenabled: false\non: [\"ref:refs/heads/main\"]\n---\n")
	sync("not enabled", "", 1)
	if e, err := r.Lookup(t.Context(), "dev"); err != nil || e.Problem != nil || e.Row.Registered.Listens != "" {
		t.Errorf("not enabled: %+v, %v, %v", e.Row.Registered, e.Problem, err)
	}
	for _, name := range []string{"LOOP.md", "MANIFEST.yaml"} {
		if err := os.Remove(filepath.Join(r.ws.Root, "agents/dev", name)); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := r.Sync(t.Context()); err != nil || s.Changed != 1 || s.Loops != 0 {
		t.Errorf("without its files: %+v, %v", s, err)
	}
	r.stores(loop.ProtocolTasks, "ran", false)
	if e, err := r.Lookup(t.Context(), "ran"); err != nil || !errors.Is(e.Problem, loop.ErrNotFound) || !strings.Contains(e.Problem.Error(), "agents/ran/LOOP.md") {
		t.Errorf("an agent that ran and is gone: %v, %v", e.Problem, err)
	}
}

func manyAgents(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("agent-%04d", i))
	}
	return ids
}
