package orgs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/orgtree"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// rig is a workspace without a store.
type rig struct {
	*orgs.Service
	t    *testing.T
	root string
}

func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	r := &rig{t: t, root: filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(r.root, 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, r.root, "init", "-q", "-b", "main")
	gittest.Write(t, r.root, files)
	repo, err := git.Open(t.Context(), r.root)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := func(loop.Holder) loop.HolderState { return loop.HolderElsewhere }
	ws, err := lookup.OpenRepo(t.Context(), lookup.Deps{Formats: verbtest.Formats(), Now: time.Now, HolderState: elsewhere}, repo)
	if err != nil {
		t.Fatal(err)
	}
	r.Service = orgs.New(ws)
	return r
}

func TestATreeOfElevenAgentsAsTheyAreFoundPassesAll77Checks(t *testing.T) {
	r := newRig(t, orgtree.Files())
	c, err := r.Check(t.Context())
	if err != nil || !c.Healthy || c.Checks != 77 || c.Passed != 77 || len(c.Agents) != 11 || len(c.Findings) > 0 || c.Organisation != "manifest.yaml" {
		t.Errorf("check = %+v, %v", c, err)
	}
	v, err := r.Show(t.Context())
	if err != nil || len(v.Agents) != 11 || v.Chief != "jarvis" || v.Passed != 77 {
		t.Fatalf("show = %+v, %v", v, err)
	}
	var order []string
	for _, a := range v.Agents {
		order = append(order, strings.Repeat(" ", len(a.Chain))+a.ID)
		if a.State != "never_run" || !a.Enabled || a.Interval != "15m" || a.Problem != "" {
			t.Errorf("%s = %+v", a.ID, a)
		}
	}
	want := []string{"jarvis", " atlas", "  forge", "  pixel", "  trace", " muse", "  ink", "  lens", " scout", "  delta", "  quill"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	atlas := v.Agents[1]
	if !atlas.Lead || atlas.Tier != 2 || atlas.ReportsTo != "jarvis" || atlas.Department != "engineering" || v.Agents[0].Tier != 1 || v.Agents[0].ReportsTo != "" {
		t.Errorf("atlas = %+v, jarvis = %+v", atlas, v.Agents[0])
	}
}

func TestEachHealthCheckFailsAlone(t *testing.T) {
	const agent = "agents/forge/"
	for name, c := range map[string]struct{ file, text, want string }{
		"a manifest that cannot run":  {"MANIFEST.yaml", "agent: {id: forge}\nloop: {on_blocked: wait, interval: 1m}\n", "agents/forge/MANIFEST.yaml:2:20: on_blocked: 'wait' is unknown"},
		"a manifest that is not YAML": {"MANIFEST.yaml", "agent: [\n", "agents/forge/MANIFEST.yaml:1:8: not valid YAML"},
		"tasks without a heading":     {"TASKS.md", "# Tasks\n###### no\n##\n", "agents/forge/TASKS.md:1:1: it has no heading that begins with ##"},
		"no heartbeat":                {"HEARTBEAT.md", "", "agents/forge/HEARTBEAT.md:1:1: it is missing"},
		"an inbox without processed":  {"INBOX.md", "## Pending\n", "agents/forge/INBOX.md:1:1: it has no section ## Processed"},
		"no context":                  {"CONTEXT.md", "", "agents/forge/CONTEXT.md:1:1: it is missing"},
		"an identity of another form": {"IDENTITY.md", "caf\xe9", "agents/forge/IDENTITY.md:1:1: it is not UTF-8"},
		"a soul that is too large":    {"SOUL.md", strings.Repeat("x", 4<<20+1), "agents/forge/SOUL.md:1:1: it has more than 4194304 bytes"},
	} {
		files := orgtree.Files()
		files[agent+c.file] = c.text
		if c.text == "" {
			delete(files, agent+c.file)
		}
		got, err := newRig(t, files).Check(t.Context())
		if err != nil || got.Healthy || got.Checks != 77 || got.Passed != 76 || len(got.Findings) != 1 || !strings.HasPrefix(got.Findings[0].String(), c.want) {
			t.Errorf("%s: %d of %d, %v: %v", name, got.Passed, got.Checks, err, got.Findings)
		}
	}
	files := orgtree.Files()
	delete(files, agent+"SOUL.md")
	r := newRig(t, files)
	if err := os.Symlink("TASKS.md", filepath.Join(r.root, agent+"SOUL.md")); err != nil {
		t.Fatal(err)
	}
	if c, err := r.Check(t.Context()); err != nil || c.Passed != 76 || !strings.Contains(c.Findings[0].Message, "it cannot be read: it is a link") {
		t.Errorf("a link: %+v, %v", c, err)
	}
}

func TestTheOrganisationIsCheckedToo(t *testing.T) {
	files := orgtree.Files()
	files["manifest.yaml"] = strings.Replace(files["manifest.yaml"], "members: [quill", "members: [ghost, quill", 1)
	files["agents/jarvis/MANIFEST.yaml"] = strings.Replace(files["agents/jarvis/MANIFEST.yaml"], "reports_to: owner", "reports_to: forge", 1)
	c, err := newRig(t, files).Check(t.Context())
	var said []string
	for _, f := range c.Findings {
		said = append(said, f.String())
	}
	want := []string{
		"agents/atlas/MANIFEST.yaml:7:15: reports_to goes around in a cycle: atlas → jarvis → forge → atlas",
		"manifest.yaml:12:17: ghost has no folder agents/ghost that could be read",
		"agents/jarvis/MANIFEST.yaml:7:15: reports_to goes around in a cycle: atlas → jarvis → forge → atlas",
	}
	if diff := cmp.Diff(want, said); diff != "" || err != nil || c.Healthy || c.Passed != 76 {
		t.Errorf("%d passed, %v (-want +got):\n%s", c.Passed, err, diff)
	}
	_, err = newRig(t, map[string]string{"README.md": "nothing"}).Check(t.Context())
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitNotFound {
		t.Errorf("without agents: %v", err)
	}
}

func TestANewOrganisationIsInOrder(t *testing.T) {
	r := newRig(t, map[string]string{"agents/dev/TASKS.md": "# mine\n\n## Active Tasks\n"})
	request := orgs.InitRequest{Owner: "Ada", Chief: "boss", Departments: []string{"engineering=lead,dev,qa"}, Members: []string{"writer"}}
	plan, err := r.PlanInit(t.Context(), request)
	if _, statErr := os.Lstat(filepath.Join(r.root, "org.yaml")); err != nil || plan.Written || !errors.Is(statErr, os.ErrNotExist) {
		t.Fatalf("a plan wrote: %+v, %v, %v", plan, err, statErr)
	}
	b, err := r.Init(t.Context(), request)
	if err != nil || !b.Written || !slices.Equal(b.Kept, []string{"agents/dev/TASKS.md"}) || !slices.Equal(b.Agents, []string{"boss", "lead", "dev", "qa", "writer"}) {
		t.Fatalf("init = %+v, %v", b, err)
	}
	if text, err := os.ReadFile(filepath.Join(r.root, "agents/dev/TASKS.md")); err != nil || string(text) != "# mine\n\n## Active Tasks\n" {
		t.Errorf("the file that was there = %q, %v", text, err)
	}
	c, err := r.Check(t.Context())
	if err != nil || !c.Healthy || c.Passed != 35 || c.Checks != 35 || len(c.Findings) > 0 {
		t.Errorf("check = %+v, %v", c, err)
	}
	v, err := r.Show(t.Context())
	if err != nil || v.Owner != "Ada" || v.Agents[0].Interval != "5m" || v.Agents[1].Interval != "10m" || v.Agents[2].Interval != "15m" || v.Agents[4].ReportsTo != "boss" {
		t.Errorf("show = %+v, %v", v, err)
	}
	if b, err = r.Init(t.Context(), orgs.InitRequest{Members: []string{"critic"}}); err != nil || len(b.Files) != 7 {
		t.Errorf("one more = %+v, %v", b, err)
	}
}

func TestWhatInitRefuses(t *testing.T) {
	there := map[string]string{"org.yaml": "chief: boss\n"}
	for name, c := range map[string]struct {
		files map[string]string
		r     orgs.InitRequest
		exit  int
		why   string
	}{
		"an id that is a path":       {nil, orgs.InitRequest{Chief: "../boss"}, loop.ExitUsage, "'../boss' is not the id of an agent"},
		"an empty member":            {nil, orgs.InitRequest{Departments: []string{"a=lead,,dev"}}, loop.ExitUsage, "'' is not the id of an agent"},
		"an agent twice":             {nil, orgs.InitRequest{Members: []string{"chief"}}, loop.ExitUsage, "'chief' is named twice"},
		"a department without names": {nil, orgs.InitRequest{Departments: []string{"engineering"}}, loop.ExitUsage, "'engineering' is not a department"},
		"a department twice":         {nil, orgs.InitRequest{Departments: []string{"a=b", "a=c"}}, loop.ExitUsage, "the department a is named twice"},
		"a second chief":             {there, orgs.InitRequest{Chief: "other"}, loop.ExitMissing, "already there: org.yaml"},
		"nobody to add":              {there, orgs.InitRequest{}, loop.ExitUsage, "org.yaml is there already"},
	} {
		_, err := newRig(t, c.files).Init(t.Context(), c.r)
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != c.exit || !strings.Contains(f.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATreeIsTakenOverByteForByteAndNothingIsWrittenOver(t *testing.T) {
	dir := t.TempDir()
	files := orgtree.Files()
	files["agents/forge/notes.md"] = "a note\r\n"
	files["agents/forge/PAUSED"] = ""
	files["agents/forge/logs/1.log"] = "log"
	files["agents/README.md"] = "not of an agent"
	gittest.Write(t, dir, files)
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "agents/forge/host")); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, map[string]string{"agents/ink/TASKS.md": "mine"})
	request := orgs.ImportRequest{Dir: dir}
	plan, err := r.PlanImport(t.Context(), request)
	if _, statErr := os.Lstat(filepath.Join(r.root, "manifest.yaml")); err != nil || plan.Written || !errors.Is(statErr, os.ErrNotExist) || plan.Check.Passed != 77 {
		t.Fatalf("a plan wrote: %+v, %v, %v", plan, err, statErr)
	}
	v, err := r.Import(t.Context(), request)
	if err != nil || !v.Written || len(v.Agents) != 11 || !slices.Equal(v.Kept, []string{"agents/ink/TASKS.md"}) {
		t.Fatalf("import = %+v, %v", v, err)
	}
	var left []string
	for _, l := range v.Left {
		left = append(left, l.Path+": "+l.Why)
	}
	want := []string{"agents/forge/PAUSED: it is a kill switch", "agents/forge/host: it is a link, or no regular file", "agents/forge/logs/: it is a folder"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	for name, text := range files {
		switch got, err := os.ReadFile(filepath.Join(r.root, name)); {
		case strings.HasSuffix(name, "PAUSED"), strings.HasSuffix(name, ".log"), name == "agents/README.md":
			if err == nil {
				t.Errorf("%s was taken over", name)
			}
		case name == "agents/ink/TASKS.md":
			if string(got) != "mine" {
				t.Errorf("%s = %q, want as it was", name, got)
			}
		case err != nil || string(got) != text:
			t.Errorf("%s = %q, %v, want %q", name, got, err, text)
		}
	}
	if v, err := r.Import(t.Context(), request); err != nil || len(v.Files) > 0 {
		t.Errorf("a second time: %+v, %v", v.Files, err)
	}
	if v, err := r.Import(t.Context(), orgs.ImportRequest{Dir: ".", Base: r.root}); err != nil || len(v.Files) > 0 {
		t.Errorf("the workspace itself: %+v, %v", v.Files, err)
	}
	for name, why := range map[string]string{"nowhere": "there is no such folder", ".git": "there are no agents"} {
		_, err := r.Import(t.Context(), orgs.ImportRequest{Dir: name, Base: r.root})
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitNotFound || !strings.Contains(f.Error(), why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
