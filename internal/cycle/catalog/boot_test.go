package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

const link = "# Link\n\n| Field | Value |\n|---|---|\n| Boot Repository | `acme/boot` |\n| Boot Reference | `v1.0.0` |\n| Boot Version | `1.0.0` |\n"

func TestALinkMakesTheLoopBoot(t *testing.T) {
	r := newRig(t, "")
	r.defines("a", "")
	r.defines("z", "")
	r.write(bootdef.LinkFile, link)
	list, err := r.List(t.Context(), catalog.Page{})
	if want := []string{"spine:a", "boot:boot", "spine:z"}; err != nil || !slices.Equal(keysOf(list), want) {
		t.Fatalf("list = %q, %v, want %q", keysOf(list), err, want)
	}
	e := list[1]
	scope := []string{"agent/**", "inputs/**", "outputs/**", "audits/**", "agent/STATE.json", "agent/TODO.json", "CHANGELOG.md"}
	if d := e.Definition; e.Problem != nil || len(e.Warnings) > 0 || e.File != bootdef.LinkFile || d.Name != "boot" || d.Protocol != loop.ProtocolBoot ||
		d.Tier != loop.TierAssisted || !slices.Equal(d.Scope, scope) || !slices.Equal(d.Protect, []string{bootdef.LinkFile}) || d.Cadence != "" || d.Goal == "" {
		t.Errorf("boot = %+v, %v, %q", d, e.Problem, e.Warnings)
	}
	for _, name := range []string{"boot", "boot:boot"} {
		if e, err := r.Lookup(t.Context(), name); err != nil || e.Protocol != loop.ProtocolBoot || e.Definition.Protocol != loop.ProtocolBoot {
			t.Errorf("%s = %+v, %v", name, e, err)
		}
	}
	if names, err := formats.Names(r.ws.Root); err != nil || !slices.Equal(names, []string{"a", "boot", "z"}) {
		t.Errorf("names = %q, %v", names, err)
	}
}

func TestTheFileOfTheLoopBootAddsToWhatTheLinkSays(t *testing.T) {
	r := newRig(t, "")
	r.write(bootdef.LinkFile, link+"\n| Directory | Holds |\n|---|---|\n| `agent/` | state |\n| `scratch/` | nothing |\n")
	r.write(definition.Path("boot"), "cadence: 1h\nscope: [\"src/**\"]\nprotect: [\"src/gen/**\"]\nverify: go test ./...\nagent: claude\nbudget_usd_day: 2\n")
	e, err := r.Lookup(t.Context(), "boot")
	d := e.Definition
	if err != nil || e.Problem != nil || !slices.Equal(d.Scope, []string{"agent/**", "agent/STATE.json", "agent/TODO.json", "CHANGELOG.md", "src/**"}) ||
		!slices.Equal(d.Protect, []string{bootdef.LinkFile, "src/gen/**"}) || d.Verify != "go test ./..." || d.Cadence != "1h" || d.Agent != "claude" || d.BudgetUSDDay == 0 {
		t.Errorf("boot = %+v, %v, %v", d, err, e.Problem)
	}
	for text, want := range map[string]string{
		"verify: <TODO>\n":        ".loops/boot/loop.config.yaml:1:9",
		"protocol: tasks\n":       ".loops/boot/loop.config.yaml:1:11",
		"scope: [\"**\"]\n":       "scope",
		"name: other\n":           "name",
		"max_iterations: many\n":  "max_iterations",
		"# nothing but comment\n": "no key found",
	} {
		r.write(definition.Path("boot"), text)
		e, err := r.Lookup(t.Context(), "boot")
		if err != nil || e.Problem == nil || !strings.Contains(e.Problem.Error(), want) {
			t.Errorf("with %q: %v, problem %v, want %s", text, err, e.Problem, want)
		}
	}
}

// A loop that somebody called boot before is the one that its own files say.
func TestASpineLoopThatIsCalledBootKeepsWorking(t *testing.T) {
	for name, make := range map[string]func(*rig){
		"its state is beside it": func(r *rig) { r.defines("boot", ""); r.write(".loops/boot/STATE.md", "# boot\n") },
		"it says that it is one": func(r *rig) { r.defines("boot", "protocol: spine\n") },
		"both, and a folder beside it": func(r *rig) {
			r.defines("boot", "protocol: spine\n")
			r.write(".loops/boot/STATE.md", "")
			r.defines("a", "")
		},
	} {
		r := newRig(t, "")
		make(r)
		e, err := r.Lookup(t.Context(), "boot")
		if err != nil || e.Problem != nil || e.Protocol != loop.ProtocolSpine {
			t.Errorf("%s: boot = %+v, %v", name, e, err)
		}
		r.write(bootdef.LinkFile, link)
		_, err = r.Lookup(t.Context(), "boot")
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUsage || f.Fix != "say which: boot:boot or spine:boot" {
			t.Errorf("%s, with a link: %v", name, err)
		}
		for _, protocol := range []string{loop.ProtocolBoot, loop.ProtocolSpine} {
			if e, err := r.Lookup(t.Context(), protocol+":boot"); err != nil || e.Problem != nil || e.Definition.WithDefaults().Protocol != protocol {
				t.Errorf("%s: %s:boot = %+v, %v", name, protocol, e, err)
			}
		}
	}
}

func TestWithoutALinkTheLoopBootSaysHowToBegin(t *testing.T) {
	r := newRig(t, "")
	said := func(err error) bool {
		f, ok := errors.AsType[*loop.Fault](err)
		return ok && f.Exit == loop.ExitNotFound && errors.Is(err, loop.ErrNotFound) && strings.Contains(f.Advice().String(), "pawl boot init")
	}
	for _, name := range []string{"boot", "boot:boot"} {
		if _, err := r.Lookup(t.Context(), name); !said(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.Lookup(t.Context(), "spine:boot"); err == nil || said(err) {
		t.Errorf("spine:boot: %v", err)
	}
	r.write(definition.Path("boot"), "verify: go test ./...\n")
	e, err := r.Lookup(t.Context(), "boot")
	if err != nil || !said(e.Problem) || e.Protocol != loop.ProtocolBoot {
		t.Errorf("with a definition: %+v, %v", e, err)
	}
}

func TestALinkThatCannotBeUsedIsAProblemOfItsLoopAlone(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*rig)
		want string
		fix  string
	}{
		"a placeholder": {func(r *rig) { r.write(bootdef.LinkFile, link+"| Note | {{FILL}} |\n") }, "AGENT_LINK.md:8:10: ", "pawl boot check"},
		"no version": {
			func(r *rig) { r.write(bootdef.LinkFile, strings.Replace(link, "Boot Version", "Version", 1)) }, "(link_no_version)", "pawl boot check",
		},
		"the older form": {
			func(r *rig) {
				r.write(bootdef.LinkFile, "| a | b |\n|---|---|\n| Repo | `acme/boot` |\n| Branch | `main` |\n| Entry | `x.md` |\n")
			}, "AGENT_LINK.md:3:3: ", "pawl boot migrate",
		},
		"a path out of the workspace": {func(r *rig) {
			r.write(bootdef.LinkFile, link+"\n| File | Path |\n|---|---|\n| State | `out/STATE.json` |\n| Tasks | `agent/TODO.json` |\n| Changelog | `CHANGELOG.md` |\n")
			if err := os.Symlink(r.t.TempDir(), filepath.Join(r.ws.Root, "out")); err != nil {
				t.Fatal(err)
			}
		}, "AGENT_LINK.md:11:12: 'out/STATE.json' leads out of the workspace", "pawl boot check"},
		"a directory with a pattern": {func(r *rig) { r.write(bootdef.LinkFile, link+"\n| D | H |\n|---|---|\n| `a*/` | all |\n") }, "AGENT_LINK.md:11:4: 'a*/' has a character of a pattern", "pawl boot check"},
		"a link on disk": {func(r *rig) {
			if err := os.Symlink("other", filepath.Join(r.ws.Root, bootdef.LinkFile)); err != nil {
				t.Fatal(err)
			}
		}, "AGENT_LINK.md cannot be read", "regular"},
	} {
		r := newRig(t, "")
		r.defines("a", "")
		c.make(r)
		list, err := r.List(t.Context(), catalog.Page{})
		if err != nil || !slices.Equal(keysOf(list), []string{"spine:a", "boot:boot"}) || list[0].Problem != nil {
			t.Fatalf("%s: list = %q, %v", name, keysOf(list), err)
		}
		f, ok := errors.AsType[*loop.Fault](list[1].Problem)
		if !ok || f.Exit != loop.ExitUnreadable || !strings.Contains(f.Error(), c.want) || !strings.Contains(f.Advice().String(), c.fix) {
			t.Errorf("%s: problem = %v, want %s and %s", name, list[1].Problem, c.want, c.fix)
		}
	}
}

func TestTheLoopBootIsRegisteredAsItsFilesChange(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.registers()
		sync := func(changed, broken int) loop.Registration {
			t.Helper()
			got, err := r.Sync(t.Context())
			if err != nil || got.Changed != changed || got.Broken != broken {
				t.Fatalf("sync = %+v, %v, want %d changed and %d broken", got, err, changed, broken)
			}
			rows, err := r.FindNamed(t.Context(), "boot")
			if err != nil || len(rows) == 0 {
				return loop.Registration{}
			}
			return rows[0].Row.Registered
		}
		r.write(bootdef.LinkFile, link)
		if reg := sync(1, 0); reg.Good == "" || !reg.Due.IsZero() {
			t.Errorf("registered as %+v, want never due", reg)
		}
		sync(0, 0)
		r.write(definition.Path("boot"), "cadence: 1h\n")
		if reg := sync(1, 0); reg.Due.IsZero() {
			t.Errorf("with a cadence: %+v, want due", reg)
		}
		sync(0, 0)
		r.write(bootdef.LinkFile, link+"| Note | {{FILL}} |\n")
		if reg := sync(1, 1); reg.Broken == "" || strings.Contains(reg.Broken, r.ws.Root) {
			t.Errorf("broken: %+v", reg)
		}
		r.write(bootdef.LinkFile, link)
		sync(1, 0)
		if err := os.Remove(filepath.Join(r.ws.Root, bootdef.LinkFile)); err != nil {
			t.Fatal(err)
		}
		if reg := sync(1, 0); reg != (loop.Registration{}) {
			t.Errorf("without the link: %+v, want nothing planned", reg)
		}
	})
}

func TestALoopBootThatRanAndHasNoLinkAnyMoreSaysSo(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	r.stores(loop.ProtocolBoot, "boot", false)
	e, err := r.Lookup(t.Context(), "boot")
	if err != nil || !errors.Is(e.Problem, loop.ErrNotFound) || !strings.Contains(e.Problem.Error(), bootdef.LinkFile) {
		t.Errorf("boot = %+v, %v", e, err)
	}
}

// No file makes another loop of the boot protocol, whose memory would be that of the loop boot.
func TestOnlyTheLoopBootHasItsProtocol(t *testing.T) {
	r := newRig(t, "")
	r.write(bootdef.LinkFile, link)
	r.defines("other", "protocol: boot\n")
	r.defines("boot", "protocol: boot\n")
	r.write(".loops/boot/STATE.md", "# boot\n")
	for _, name := range []string{"other", "spine:boot"} {
		e, err := r.Lookup(t.Context(), name)
		if f, ok := errors.AsType[*loop.Fault](e.Problem); err != nil || !ok || f.Exit != loop.ExitNotReady || !strings.Contains(f.Error(), formats.Elsewhere(loop.ProtocolBoot)) {
			t.Errorf("%s: %v, problem %v", name, err, e.Problem)
		}
	}
}
