package toolset_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pawl-run/pawl/internal/confine/probe/toolchain"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
)

func files(of map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, text := range of {
		all[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return all
}

var npm = map[string]string{"package.json": `{"name":"x"}`, "package-lock.json": `{"lockfileVersion":3}`, "index.js": "1"}

func with(of map[string]string, name, text string) map[string]string {
	all := map[string]string{name: text}
	for n, t := range of {
		if n != name {
			all[n] = t
		}
	}
	return all
}

func plan(t *testing.T, of map[string]string, command string) toolset.Setup {
	t.Helper()
	s, err := toolset.Set{}.PlanSetup(files(of), command)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestALockfileAsksForItsSetUp(t *testing.T) {
	s := plan(t, npm, "")
	if s.Command != "npm ci" || !s.Detected || len(s.Hosts) != 1 || s.Hosts[0] != "registry.npmjs.org" {
		t.Errorf("Plan = %+v", s)
	}
	if s := plan(t, npm, toolset.None); s.Command != "" {
		t.Errorf("none prepares %q", s.Command)
	}
	if s := plan(t, map[string]string{"main.c": ""}, ""); s.Command != "" {
		t.Errorf("no lockfile prepares %q", s.Command)
	}
	if s := plan(t, npm, "make deps"); s.Command != "make deps" || s.Detected || len(s.Hosts) == 0 {
		t.Errorf("a written command gives %+v", s)
	}
}

func TestASetUpIsRunAgainExactlyWhenWhatItDependsOnChanges(t *testing.T) {
	first := plan(t, npm, "").Digest
	for name, c := range map[string]struct {
		tree    map[string]string
		command string
		same    bool
	}{
		"nothing changed":              {npm, "", true},
		"another source file":          {with(npm, "index.js", "2"), "", true},
		"another lockfile":             {with(npm, "package-lock.json", `{"lockfileVersion":2}`), "", false},
		"another manifest":             {with(npm, "package.json", `{"name":"y"}`), "", false},
		"the same command, written":    {npm, "npm ci", true},
		"another command":              {npm, "npm ci --ignore-scripts", false},
		"a file that no command names": {with(npm, "deps.sh", "1"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan(t, c.tree, c.command).Digest; (got == first) != c.same {
				t.Errorf("digest %s after %s, same wanted: %v", got, first, c.same)
			}
		})
	}
	const command = "sh ./deps.sh"
	if plan(t, with(npm, "deps.sh", "1"), command).Digest == plan(t, with(npm, "deps.sh", "2"), command).Digest {
		t.Error("a script that the command names may change without another run")
	}
}

func TestOnlyTheToolchainsOfTheSetUpCount(t *testing.T) {
	toolsetOf := func(node, sleep string) toolset.Set {
		return toolset.Set{Toolchains: []toolchain.Toolchain{{Program: "node", Digest: node}, {Program: "sleep", Digest: sleep}}}
	}
	digest := func(k toolset.Set) string {
		s, err := k.PlanSetup(files(npm), "")
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest
	}
	first := digest(toolsetOf("20", "1"))
	if digest(toolsetOf("20", "2")) != first {
		t.Error("a program that the set-up does not start makes it run again")
	}
	if digest(toolsetOf("22", "1")) == first {
		t.Error("another Node does not make it run again")
	}
}

func TestALayerHoldsWhatTheSetUpAddedAndNothingElse(t *testing.T) {
	p := toolset.Prepared{Dir: filepath.Join(t.TempDir(), "setups")}
	unlock, err := p.Lock(t.Context(), "d1")
	if err != nil {
		t.Fatal(err)
	}
	upper := tree(t, map[string]string{"node_modules/a/index.js": "1", "package.json": "changed", ".git/HEAD": "x"})
	if _, ok := p.Layer("d1"); ok {
		t.Error("a layer is there before it was kept")
	}
	scratch := tree(t, map[string]string{"npm-0/_x": "downloaded", "go-build-1/aa": "compiled"})
	k := toolset.Set{Caches: []toolchain.Cache{{Kind: "npm", Path: "/nowhere", Downloads: true}, {Kind: "go-build", Path: "/nowhere"}}}
	dir, err := p.KeepLayer(k, "d1", toolset.Written{Upper: upper, Tracked: []string{"package.json"}, Caches: scratch})
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := p.Layer("d1"); !ok || got != dir {
		t.Errorf("Layer = %q, %v", got, ok)
	}
	for name, there := range map[string]bool{
		"tree/node_modules/a/index.js": true, "tree/package.json": false, "tree/.git": false, "caches/npm-0/_x": true, "caches/go-build-1": false,
	} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOldLayersGoAndTheLastUsedStay(t *testing.T) {
	p := toolset.Prepared{Dir: filepath.Join(t.TempDir(), "setups")}
	now := time.Now()
	for i, name := range []string{"new", "old", "older"} {
		dir := filepath.Join(p.Dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		used := now.Add(-time.Duration(i) * 24 * time.Hour)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Collect(now.Add(-time.Hour), 2); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"new": true, "old": true, "older": false} {
		if _, err := os.Lstat(filepath.Join(p.Dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}
