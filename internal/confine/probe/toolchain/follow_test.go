package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var pathMade = rapid.Custom(func(t *rapid.T) string {
	return "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a-b", "a.b", ".a"}), 1, 4).Draw(t, "parts"), "/")
})

func TestOutermostCoversEveryPathAndNoneTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOf(pathMade).Draw(t, "paths")
		got := withoutNested(paths)
		for _, p := range paths {
			if !slices.ContainsFunc(got, func(dir string) bool { return isBelow(dir, p) }) {
				t.Errorf("%s is not covered by %v", p, got)
			}
		}
		for i, a := range got {
			for j, b := range got {
				if i != j && isBelow(a, b) {
					t.Errorf("%s lies below %s", b, a)
				}
			}
			if !slices.Contains(paths, a) {
				t.Errorf("%s was not asked for", a)
			}
		}
	})
}

// linked makes a directory of files, directories and links to any of them, some
// in a circle.
func linked(t *rapid.T, top string) (dir string, names []string) {
	dir, err := os.MkdirTemp(top, "links")
	if err != nil {
		t.Fatal(err)
	}
	for i := range rapid.IntRange(2, 8).Draw(t, "entries") {
		name := fmt.Sprintf("e%d", i)
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			err = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
		case 1:
			if err = os.Mkdir(filepath.Join(dir, name), 0o700); err == nil {
				err = os.WriteFile(filepath.Join(dir, name, "e0"), nil, 0o600)
			}
		default:
			target := fmt.Sprintf("e%d", rapid.IntRange(0, 8).Draw(t, "target"))
			if rapid.Bool().Draw(t, "absolute") {
				target = filepath.Join(dir, target)
			}
			err = os.Symlink(target, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name, name+"/e0")
	}
	return dir, names
}

func TestStagesEndWhereTheSystemEnds(t *testing.T) {
	top := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, names := linked(t, top)
		path := filepath.Join(dir, rapid.SampledFrom(names).Draw(t, "name"))
		want, failed := filepath.EvalSymlinks(path)
		got, err := linkStages(path)
		if (err == nil) != (failed == nil) {
			t.Fatalf("stages of %s: %v, the system says %v", path, err, failed)
		}
		if err != nil {
			return
		}
		if got[0] != path || got[len(got)-1] != want {
			t.Errorf("stages of %s = %v, want the last to be %s", path, got, want)
		}
		for _, stage := range got {
			if real, err := filepath.EvalSymlinks(stage); err != nil || real != want {
				t.Errorf("%s leads to %s, %v, want %s", stage, real, err, want)
			}
		}
	})
}

func TestAnInterpreterIsWhatTheFirstLineNames(t *testing.T) {
	for head, want := range map[string][2]string{
		"#!/bin/sh\n":                    {"/bin/sh", ""},
		"#! /usr/bin/python3 -E\nx":      {"/usr/bin/python3", ""},
		"#!/usr/bin/env node\r\n":        {"/usr/bin/env", "node"},
		"#!/usr/bin/env -S A=1 deno run": {"/usr/bin/env", "deno"},
		"#!/usr/bin/env /opt/x/bin/y":    {"/opt/x/bin/y", ""},
		"#!/usr/bin/env\n":               {"/usr/bin/env", ""},
		"#!python\n":                     {"", ""},
		"#!\n":                           {"", ""},
		"#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n' '''\n": {"/a b/python", ""},
		"#!/bin/sh\n'''exec' /a/python \"$0\" \"$@\"\n' '''\n":       {"/a/python", ""},
	} {
		if program, word := interpreterOf(head); program != want[0] || word != want[1] {
			t.Errorf("interpreter of %q = %q, %q, want %q", head, program, word, want)
		}
	}
}

func FuzzAnInterpreterIsAbsolute(f *testing.F) {
	for _, seed := range []string{"#!/bin/sh", "#!/usr/bin/env -S a b", "#! ", "#!/bin/sh\n'''exec' x \"$0\" \"$@\"\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, head string) {
		program, word := interpreterOf(head)
		if program != "" && !filepath.IsAbs(program) {
			t.Errorf("%q names %q", head, program)
		}
		if strings.ContainsAny(word, " \n\t") || strings.HasPrefix(word, "-") {
			t.Errorf("%q looks up %q", head, word)
		}
	})
}

func TestAHomeIsNeverShownAsAWhole(t *testing.T) {
	a := newArea("/data/people/jo", "/data/people/jo/work")
	for path, want := range map[string]bool{
		"/": true, "/data": true, "/data/people": true, "/data/people/jo": true, "/home": true, "/home/anna": true, "/root": true, "/tmp": true,
		"/data/people/jo/.pyenv": false, "/home/anna/sdk": false, "/srv/jdk": false, "/nix/store": false,
	} {
		if got := a.tooWide(path); got != want {
			t.Errorf("too wide(%s) = %v, want %v", path, got, want)
		}
	}
}

func TestAStoreIsShownForAllOfItsPrograms(t *testing.T) {
	for path, want := range map[string]string{
		"/nix/store/abc-go-1.26/bin/go":                        "/nix/store",
		"/home/linuxbrew/.linuxbrew/Cellar/node/20/bin/node":   "/home/linuxbrew/.linuxbrew",
		"/snap/go/1063/bin/go":                                 "/snap/go/1063",
		"/snap/bin/go":                                         "",
		"/home/u/.npm-global/lib/node_modules/a/bin/a":         "/home/u/.npm-global/lib/node_modules",
		"/home/u/x/node_modules/a/node_modules/b/node_modules": "/home/u/x/node_modules",
		"/nix/storefront/bin/go":                               "",
		"/home/u/go/bin/gopls":                                 "",
	} {
		if got, _ := storeOf(path); got != want {
			t.Errorf("store of %s = %q, want %q", path, got, want)
		}
	}
}

func TestTheNewestVersionThatAModuleNamesCounts(t *testing.T) {
	for text, want := range map[string]string{
		"module m\ngo 1.21\n":                              "go1.21",
		"go 1.26.0 // why\ntoolchain go1.26.8\n":           "go1.26.8",
		"go 1.27.0\ntoolchain go1.26.8\n":                  "go1.27.0",
		"go 1.22rc1\n":                                     "go1.22rc1",
		"toolchain default\ngo 1.22.0\n":                   "go1.22.0",
		"module m\nrequire go/1.22 v1.0.0\n// go 1.99.0\n": "",
	} {
		dir := t.TempDir()
		below := filepath.Join(dir, "a", "b")
		if err := os.MkdirAll(below, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, got := wantedGoVersion(below)
		if got != want || file != filepath.Join(dir, "go.mod") {
			t.Errorf("%q asks for %q in %s, want %q", text, got, file, want)
		}
	}
}
