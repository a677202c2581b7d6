package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// binary is the tests of one package, with every mutant in them.
type binary struct {
	Name  string // of the package, below internal/
	Dir   string // of the package
	File  string
	Key   string // changes with the program and with the files that its tests read
	Tests []string
}

// buildTests builds the tests of every package that a mutant of the groups is
// linked into and that use wants.
func buildTests(ctx context.Context, root, work string, all *planted, groups []string, use func(name string) bool) ([]binary, error) {
	packages, err := listPackages(ctx, root, "-test", "-deps", "./internal/...")
	if err != nil {
		return nil, err
	}
	linked := map[string]bool{}
	for _, p := range packages {
		if p.ForTest == "" && strings.HasSuffix(p.ImportPath, ".test") {
			for _, dep := range p.Deps {
				dep, _, _ = strings.Cut(dep, " ")
				linked[p.ImportPath] = linked[p.ImportPath] || slices.Contains(groups, groupOf(dep))
			}
		}
	}
	copies := maps.Clone(all.files)
	begin := func(dir string, files []string) (names []string, err error) {
		for _, file := range files {
			file = filepath.Join(dir, file)
			body, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			tests, copied, err := beginTests(file, body, len(names))
			if err != nil {
				return nil, err
			}
			names, copies[file] = append(names, tests...), copied
		}
		return names, nil
	}
	var rounds [][]binary // binaries of one round have names of their own
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module+"/internal/")
		if p.helpsTests() {
			if _, err := begin(p.Dir, p.GoFiles); err != nil {
				return nil, err
			}
		}
		if p.ForTest != "" || !linked[p.ImportPath+".test"] || !use(name) {
			continue
		}
		i := slices.IndexFunc(rounds, func(round []binary) bool {
			return !slices.ContainsFunc(round, func(b binary) bool { return path.Base(b.Name) == path.Base(name) })
		})
		if i < 0 {
			i, rounds = len(rounds), append(rounds, nil)
		}
		b := binary{Name: name, Dir: p.Dir, File: filepath.Join(work, "tests", fmt.Sprint(i), path.Base(name)+".test")}
		if b.Tests, err = begin(p.Dir, append(p.TestGoFiles, p.XTestGoFiles...)); err != nil {
			return nil, err
		}
		rounds[i] = append(rounds[i], b)
	}
	if rounds == nil {
		return nil, errors.New("none of these tests has a mutant in it")
	}
	overlay, err := writeOverlay(root, work, copies)
	if err != nil {
		return nil, err
	}
	var built []binary
	for i, round := range rounds {
		out := filepath.Join(work, "tests", fmt.Sprint(i)) + string(filepath.Separator)
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nil, err
		}
		args := []string{
			"test", "-c", "-overlay", overlay, "-vet=off", "-o", out,
			"-ldflags", "-s -w -X " + switchPath + ".dir=" + filepath.Join(work, "records"),
		}
		for _, b := range round {
			args = append(args, "./internal/"+b.Name)
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("build the tests with the mutants: %w", err)
		}
		for _, b := range round {
			if b.Key, err = keyOf(ctx, b); err != nil {
				return nil, err
			}
			built = append(built, b)
		}
	}
	return built, nil
}

// idle are packages whose tests are no use here: they measure.
var idle = []string{"bench", "test/agente2e", "arch", "test/mutants"}

// whole are packages whose tests are whole runs of pawl. All of them take longer
// than the tests of all other packages, and they are asked with -all.
var whole = []string{"compose", "cli"}

// writeOverlay writes the copies, and what tells the go command to take them.
func writeOverlay(root, work string, copies map[string][]byte) (string, error) {
	replace := map[string]string{}
	for name, body := range copies {
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return "", err
		}
		copied := filepath.Join(work, "overlay", rel)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return "", err
		}
		if old, err := os.ReadFile(copied); err != nil || !bytes.Equal(old, body) {
			if err := os.WriteFile(copied, body, 0o600); err != nil {
				return "", err
			}
		}
		replace[name] = copied
	}
	body, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	// A module of its own: `go build ./...` in the checkout does not find the copies.
	if err := os.WriteFile(filepath.Join(work, "go.mod"), []byte("module planted\n"), 0o600); err != nil {
		return "", err
	}
	list := filepath.Join(work, "overlay.json")
	return list, os.WriteFile(list, body, 0o600)
}

// keyOf is what the results of a binary depend on.
func keyOf(ctx context.Context, b binary) (string, error) {
	id, err := exec.CommandContext(ctx, "go", "tool", "buildid", b.File).Output()
	if err != nil {
		return "", fmt.Errorf("ask for the build of %s: %w", b.File, err)
	}
	sum := sha256.New()
	sum.Write(id)
	err = filepath.WalkDir(filepath.Join(b.Dir, "testdata"), func(name string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		fmt.Fprintln(sum, name)
		_, err = io.Copy(sum, file)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
