package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/test/mutants/mutant"
)

const module = "github.com/pawl-run/pawl"

// named are the packages that carry promises, with all below them.
var named = []string{
	"plan", "policy", "gate", "store", "engine", "effect", "projection", "git", "redact", "meter", "credential",
	"modelapi", "modeltool", "spend",
	"schedule", "definition", "loopspec", "invariant", "memory", "bootdef", "bootrepo",
}

// listed is what `go list` says about a package.
type listed struct {
	ImportPath   string
	Dir          string
	Export       string
	ForTest      string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	Deps         []string
	ImportMap    map[string]string
}

// helpsTests reports whether tests of other packages call this one: it may make
// them parallel.
func (p listed) helpsTests() bool {
	return strings.HasPrefix(p.ImportPath, module+"/internal/test/") && p.ForTest == "" && !strings.HasSuffix(p.ImportPath, ".test")
}

// listPackages asks the go command for the packages of the checkout. They are compiled with the flags that this program
// was compiled with, so that the build cache has most of them already.
func listPackages(ctx context.Context, root string, args ...string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,Export,ForTest,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps,ImportMap")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-trimpath" || s.Key == "-gcflags" {
				cmd.Args = append(cmd.Args, s.Key+"="+s.Value)
			}
		}
	}
	cmd.Args = append(cmd.Args, args...)
	var said strings.Builder
	cmd.Dir, cmd.Stderr = root, &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w\n%s", err, said.String())
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, p)
	}
}

// groupOf is the named package that an import path belongs to, or empty. Help
// for tests belongs to none.
func groupOf(path string) string {
	name, ours := strings.CutPrefix(path, module+"/internal/")
	if !ours || strings.HasSuffix(name, "test") || strings.HasSuffix(name, "/hostile") {
		return ""
	}
	for part := range strings.SplitSeq(name, "/") {
		if slices.Contains(named, part) {
			return part
		}
	}
	return ""
}

// planted is the whole of the mutants.
type planted struct {
	mutants []bug             // by ID
	next    int               // the ID before the first of the next package
	files   map[string][]byte // the copies, by the path of the original
	broken  int               // places that were left out because they do not compile
}

// plantAll plants every mutant of the named packages.
func plantAll(ctx context.Context, root string) (*planted, error) {
	packages, err := listPackages(ctx, root, "-export", "-deps", "./internal/...")
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	all := &planted{files: map[string][]byte{}}
	for _, p := range packages {
		group := groupOf(p.ImportPath)
		if group == "" {
			continue
		}
		sources := map[string][]byte{}
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			body, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			sources[file] = body
		}
		if err := all.plantPackage(root, p.ImportPath, group, sources, exports); err != nil {
			return nil, fmt.Errorf("plant %s: %w", p.ImportPath, err)
		}
	}
	return all, nil
}

// plantPackage adds the mutants of one package. What does not compile is left
// out and counted.
func (all *planted) plantPackage(root, path, group string, sources map[string][]byte, exports map[string]string) error {
	bad := map[string]bool{}
	for {
		p, files, err := plantSources(root, path, group, sources, exports, all.next, bad)
		if err != nil {
			return err
		}
		wrong, err := uncompiled(path, files, exports)
		if err != nil {
			return err
		}
		if len(wrong) == 0 {
			all.mutants = append(all.mutants, p.found...)
			maps.Copy(all.files, files)
			all.broken += p.left
			// With some room, so that a change of this package seldom moves
			// the numbers of the next, and with them what is built and kept.
			all.next += (len(p.found)*5/4+64)/256*256 + 256
			if all.next >= mutant.Capacity {
				return errors.New("there are more mutants than the switch has numbers for: raise mutant.Capacity")
			}
			return nil
		}
		known := len(bad)
		for at := range wrong {
			bad[at] = true
		}
		if len(bad) == known {
			return fmt.Errorf("the copies do not compile: %v", slices.Sorted(maps.Values(wrong)))
		}
	}
}

// plantSources plants one package once.
func plantSources(root, path, group string, sources map[string][]byte, exports map[string]string, base int, bad map[string]bool) (*planter, map[string][]byte, error) {
	fset := token.NewFileSet()
	names := slices.Sorted(maps.Keys(sources))
	var parsed []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, sources[name], parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		parsed = append(parsed, file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: fromExports(fset, exports)}
	pkg, err := config.Check(path, fset, parsed, info)
	if err != nil {
		return nil, nil, err
	}
	p := &planter{
		fset: fset, info: info, pkg: pkg, group: group, base: base, bad: bad,
		nths: map[string]int{}, consts: map[types.Object]*declared{},
	}
	relative := func(name string) string {
		if rel, err := filepath.Rel(root, name); err == nil {
			return filepath.ToSlash(rel)
		}
		return name
	}
	for i, file := range parsed {
		p.declare(relative(names[i]), sources[names[i]], file)
	}
	files := map[string][]byte{}
	for i, file := range parsed {
		files[names[i]] = p.plant(relative(names[i]), sources[names[i]], file)
	}
	return p, files, nil
}

func fromExports(fset *token.FileSet, exports map[string]string) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
}

// uncompiled are the errors of the copies by file:line.
func uncompiled(path string, files map[string][]byte, exports map[string]string) (map[string]string, error) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	bad := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := parser.ParseFile(fset, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: fromExports(fset, exports), Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok {
			at := fset.Position(e.Pos)
			bad[fmt.Sprintf("%s:%d", at.Filename, at.Line)] = e.Error()
		}
	}}
	_, _ = config.Check(path, fset, parsed, nil) // its errors are in bad
	return bad, nil
}
