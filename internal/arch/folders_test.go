package arch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/drawn"
)

// folder is one part of the house. Its packages import packages of the same folder and of
// folders with a lower number, and nothing else.
type folder struct {
	order int
	name  string
	ask   string // where a new line belongs: the question that the folder answers
}

// folders are all below internal/, and cmd. Those of one number stand side by side.
var folders = []folder{
	{1, "ground", "What does everything stand on: processes that end, files that last, locks, the clock, text from outside marked as data?"},
	{2, "rules", "What may follow what? What does a decision depend on? Pure functions only."},
	{3, "git", "How is a repository read and changed without running anything of its own, and how is a code host asked?"},
	{4, "confine", "In what do untrusted programs run, and what does the machine offer them?"},
	{4, "record", "What is remembered, in which rows and files, and by which machine?"},
	{4, "definitions", "Which keys does a definition have, and what do settings and the repository's instructions add?"},
	{5, "agents", "Who works, with which key, over which way to a model, and what does it cost?"},
	{6, "cycle", "What does one run do from its trigger to its end, and what fires it?"},
	{7, "verbs", "What do people and programs ask for, whatever the format and the surface?"},
	{8, "formats", "What does only this one format know: its files, its rules, its protocol, its verbs?"},
	{9, "surface", "How do the verbs reach people and programs: command line, API, MCP, daemon, and who joins the parts?"},
	{10, "cmd", "The program."},
	{11, "arch", "The rules of the house. Nothing imports it."},
	{11, "bench", "Measures against the targets. Nothing imports it."},
	{11, "test", "Support of tests. Nothing of the product imports it."},
}

// folderOf returns the folder of a package.
func folderOf(name string) (folder, bool) {
	top, _, _ := strings.Cut(name, "/")
	if i := slices.IndexFunc(folders, func(f folder) bool { return f.name == top }); i >= 0 {
		return folders[i], true
	}
	return folder{}, false
}

// wing is the part of a folder that keeps to itself: each format is one.
func wing(name string) string {
	if parts := strings.Split(name, "/"); parts[0] == "formats" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	top, _, _ := strings.Cut(name, "/")
	return top
}

// mayImport reports whether the order of the folders lets one package import another.
func mayImport(from, to string) bool {
	f, ok := folderOf(from)
	t, found := folderOf(to)
	return ok && found && (t.order < f.order || wing(from) == wing(to))
}

// triedWith is the highest order of what a package's tests may import. A verb, and what finds
// definitions, are tried with real formats, of which each workspace has some.
func triedWith(name string) int {
	f, _ := folderOf(name)
	if f.name == "verbs" || name == "cycle/catalog" {
		f, _ = folderOf("formats")
	}
	return f.order
}

// reach is the highest order of what a package of test support imports, itself or through
// others of its kind: a test below that order may not use it.
func reach(packages []*source, name string) int {
	f, ok := folderOf(name)
	if !ok || f.name != "test" {
		return f.order
	}
	highest := 0
	for _, p := range packages {
		if p.name == name {
			for _, i := range p.imports {
				if imported := packageName(i.what); imported != "" {
					highest = max(highest, reach(packages, imported))
				}
			}
		}
	}
	return highest
}

func TestEachPackageIsInAFolderOfTheListing(t *testing.T) {
	for _, p := range checkout(t) {
		if _, ok := folderOf(p.name); !ok {
			t.Errorf("%s is in no folder of the list", p.name)
		}
	}
}

func TestTheListingOfFoldersIsDrawn(t *testing.T) {
	names := map[string][]string{}
	for _, p := range checkout(t) {
		f, _ := folderOf(p.name)
		if short := strings.TrimPrefix(p.name, f.name+"/"); short != f.name {
			names[f.name] = append(names[f.name], "`"+short+"`")
		}
	}
	var b strings.Builder
	b.WriteString("| | folder | ask here | packages |\n|--:|---|---|---|\n")
	for _, f := range folders {
		slices.Sort(names[f.name])
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", f.order, f.name, f.ask, strings.Join(names[f.name], " "))
	}
	drawn.Sections(t, filepath.Join(root, "docs", "dev", "architecture.md"), map[string]string{"map": b.String()})
}
