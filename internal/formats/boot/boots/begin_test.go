package boots_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAWorkspaceBeginsWithALinkAndAnEmptyMemory(t *testing.T) {
	r := newRig(t, nil)
	r.write(".gitignore", "bin/") // Without a newline at its end.
	r.write("CHANGELOG.md", "# Changes of ours\n")
	r.commit(r.root, "first")
	want := boots.InitRequest{Boot: "../boot@v1.0.0", Dir: r.root, Project: "parser"}
	plan, err := r.PlanInit(t.Context(), want)
	if err != nil || plan.Written || r.git("status", "--porcelain", "--ignored") != "" {
		t.Fatalf("plan = %+v, %v", plan, err)
	}
	made, err := r.Init(t.Context(), want)
	if err != nil || !made.Written || made.Version != "1.0.0" || made.Repository != "../boot" || !slices.Equal(made.Kept, []string{"CHANGELOG.md"}) {
		t.Fatalf("made = %+v, %v", made, err)
	}
	if r.read(".gitignore") != "bin/\n/scratch/\n" || r.read("CHANGELOG.md") != "# Changes of ours\n" || !strings.Contains(r.read("agent/STATE.json"), `"activeProject": "parser"`) {
		t.Errorf("files: %q, %q, %s", r.read(".gitignore"), r.read("CHANGELOG.md"), r.read("agent/STATE.json"))
	}
	for _, dir := range []string{"agent", "inputs", "outputs", "audits", "scratch"} {
		if info, err := os.Stat(filepath.Join(r.root, dir)); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if c, err := r.Check(t.Context()); err != nil || !c.Ready || len(c.Findings) > 0 {
		t.Errorf("check = %+v, %v", c, err)
	}
	for _, dir := range []string{"inputs", "outputs", "audits"} { // A clone has them, too.
		if !slices.Contains(made.Commit, dir+"/.gitkeep") || r.read(dir+"/.gitkeep") != "" {
			t.Errorf("%s is not for git: %q", dir, made.Commit)
		}
	}
	if r.git("log", "--format=%s") != "first" {
		t.Error("something was committed")
	}
	_, err = r.Init(t.Context(), want)
	wantFault(t, err, loop.ExitMissing, "agent/STATE.json, agent/TODO.json, AGENT_LINK.md")
	r.git(append([]string{"add"}, made.Commit...)...)
	r.git("commit", "-q", "-m", "begin")
	if r.git("status", "--porcelain") != "" {
		t.Errorf("what was named leaves out: %s", r.git("status", "--porcelain"))
	}
}

func TestTheGateThatIsFoundIsProposedAndWithoutOneAPersonIsAsked(t *testing.T) {
	const config = ".loops/boot/loop.config.yaml"
	for name, c := range map[string]struct {
		found, asked, there string
		verify, landVia     string
	}{
		"tests are found":          {found: `go test "./..."`, verify: `go test "./..."`},
		"none are found":           {landVia: "human"},
		"a person names one":       {found: "make test", asked: "make check", verify: "make check"},
		"a person wants none":      {found: "make test", asked: boots.NoGate, landVia: "human"},
		"the definition was there": {found: "make test", there: "agent: command\nagent_command: ./a\n"},
	} {
		r := newRig(t, nil)
		r.deps.FindTests = func(context.Context) (string, error) { return c.found, nil }
		r.reopen()
		if c.there != "" {
			r.write(config, c.there)
		}
		made, err := r.Init(t.Context(), boots.InitRequest{Boot: "../boot@v1.0.0", Dir: r.root, Verify: c.asked})
		if err != nil || made.Verify != c.verify || made.LandVia != c.landVia || slices.Contains(made.Kept, config) != (c.there != "") {
			t.Errorf("%s: made = %+v, %v", name, made, err)
		}
		doc, err := definition.Parse(config, []byte(r.read(config)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		verify, _ := doc.Scalar("verify")
		landVia, _ := doc.Scalar("land_via")
		if verify.Text != c.verify || landVia.Text != c.landVia || c.there != "" && r.read(config) != c.there {
			t.Errorf("%s: the definition is\n%s", name, r.read(config))
		}
	}
}

func TestNoFileIsWrittenOver(t *testing.T) {
	for _, name := range []string{"AGENT_LINK.md", "agent/STATE.json", "agent/TODO.json"} {
		r := newRig(t, nil)
		r.write(name, "mine")
		_, err := r.Init(t.Context(), boots.InitRequest{Boot: "../boot@v1.0.0", Dir: r.root})
		wantFault(t, err, loop.ExitMissing, "already there: "+name)
		if r.read(name) != "mine" || r.git("status", "--porcelain", "-uall") != "?? "+name {
			t.Errorf("%s: %s", name, r.git("status", "--porcelain", "-uall"))
		}
	}
}

func TestABootRepositoryOfOnesOwnIsMade(t *testing.T) {
	r := newRig(t, nil)
	want := boots.InitRequest{NewBoot: "rules/ours", Dir: r.dir}
	made, err := r.Init(t.Context(), want)
	dir := filepath.Join(r.dir, "rules", "ours")
	if err != nil || made.New != dir || made.Repository != "../rules/ours" || made.Reference != "v1.0.0" {
		t.Fatalf("made = %+v, %v", made, err)
	}
	if got := gittest.Run(t, dir, "log", "--format=%s %D") + gittest.Run(t, dir, "status", "--porcelain"); got != "Version 1.0.0 of the boot repository HEAD -> main, tag: v1.0.0" {
		t.Errorf("the new repository has %q", got)
	}
	if c, err := r.Check(t.Context()); err != nil || !c.Ready || len(c.Findings) > 0 {
		t.Errorf("check = %+v, %v", c, err)
	}
	other := newRig(t, nil)
	_, err = other.Init(t.Context(), boots.InitRequest{NewBoot: dir, Dir: other.root})
	wantFault(t, err, loop.ExitMissing, "not empty")
}

func TestWhatABootRepositoryCanBeCalled(t *testing.T) {
	r := newRig(t, nil)
	gittest.Run(t, r.boot, "branch", "rules/next")
	for text, want := range map[string]string{
		"../boot@v1.0.0": "../boot v1.0.0", "boot@main": "../boot main", r.boot + "@main": r.boot + " main", "file://" + r.boot + "@rules/next": "file://" + r.boot + " rules/next",
	} {
		dir := r.root
		if strings.HasPrefix(text, "boot@") {
			dir = r.dir
		}
		if got, err := r.PlanInit(t.Context(), boots.InitRequest{Boot: text, Dir: dir}); err != nil || got.Repository+" "+got.Reference != want {
			t.Errorf("%s: %s %s, %v, want %s", text, got.Repository, got.Reference, err, want)
		}
	}
	for _, text := range []string{"", "../boot", "../boot@", "@v1", "git@example.com:acme/boot.git", "ssh://git@example.com/acme/boot"} {
		_, err := r.PlanInit(t.Context(), boots.InitRequest{Boot: text, Dir: r.root})
		wantFault(t, err, loop.ExitUsage, "")
	}
	_, err := r.PlanInit(t.Context(), boots.InitRequest{Boot: "../boot@v1.0.0", NewBoot: "x", Dir: r.root})
	wantFault(t, err, loop.ExitUsage, "")
	_, err = r.PlanInit(t.Context(), boots.InitRequest{Boot: "../gone@v1.0.0", Dir: r.root})
	wantFault(t, err, loop.ExitMissing, "")
}

// A symbolic link in the workspace leads no file out of it.
func TestNothingIsWrittenOutOfTheWorkspace(t *testing.T) {
	r := newRig(t, nil)
	out := t.TempDir()
	if err := os.Symlink(out, filepath.Join(r.root, "agent")); err != nil {
		t.Fatal(err)
	}
	_, err := r.Init(t.Context(), boots.InitRequest{Boot: "../boot@v1.0.0", Dir: r.root})
	if left, _ := os.ReadDir(out); err == nil || len(left) > 0 {
		t.Errorf("init = %v, and outside there is %v", err, left)
	}
}
