package arch

import (
	"fmt"
	"slices"
	"strings"
)

// impure are the imports that no pure package has; their own packages, as
// os/exec, are meant too.
var impure = []string{"os", "net", "database/sql", "log", "io/ioutil", "syscall"}

// reads are the ways to ask for the time; waits also pass it.
var (
	reads = []string{"time.Now", "time.Since", "time.Until"}
	waits = []string{"time.Sleep", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker"}
)

// starts are the ways to start a program without os/exec.
var starts = []string{
	"os.StartProcess", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "golang.org/x/sys/unix.Exec",
}

// stageImports have no expensive init; unsafe has none at all, and runtime comes
// first in every program.
var stageImports = []string{"os", "runtime", "syscall", "unsafe"}

// violations returns a sentence for each place that breaks a rule, in the
// order of the packages.
func violations(rows []row, packages []*source) []string {
	var all []string
	points := map[string]string{} // name → place
	for _, p := range packages {
		r, ok := find(rows, p.name)
		if !ok {
			all = append(all, fmt.Sprintf("package %s is not in the table: add a row for it in internal/arch/table_test.go", p.name))
			continue
		}
		j := judge{rows: rows, all: packages, row: r, source: p}
		j.layers()
		j.permissions()
		if r.isPure() {
			j.purity()
		}
		j.faultPoints(points)
		all = append(all, j.sentences...)
	}
	return all
}

// judge holds one package against its row.
type judge struct {
	rows      []row
	all       []*source
	row       row
	source    *source
	sentences []string
}

func (j *judge) say(f found, format string, args ...any) {
	j.sentences = append(j.sentences, f.at+": "+j.source.name+" "+fmt.Sprintf(format, args...))
}

func (j *judge) layers() {
	for _, f := range j.source.imports {
		if f.what == "C" {
			j.say(f, "uses cgo, and pawl is built without")
		}
		name, r, ours := j.ours(f)
		if j.row.leaf && !slices.Contains(stageImports, f.what) && !strings.HasPrefix(f.what, "golang.org/x/sys/") && !slices.Contains(j.row.only, name) {
			j.say(f, "imports %s, and a stage may import os, runtime, syscall and golang.org/x/sys only", f.what)
		}
		switch {
		case !ours:
		case r.forTests() && !j.row.forTests() && j.row.name != "bench":
			j.say(f, "imports %s, which is for tests only", name)
		case j.row.only != nil && !slices.Contains(j.row.only, name):
			j.say(f, "imports %s, and may import %s only", name, strings.Join(j.row.only, ", "))
		case !mayImport(j.source.name, name):
			j.say(f, "imports %s: a package imports from its own folder and from folders that stand before it", name)
		}
	}
	for _, f := range j.source.testImports {
		// Tests may meet their neighbours, but nothing from above.
		name, _, ours := j.ours(f)
		if ours && reach(j.all, name) > triedWith(j.source.name) {
			j.say(f, "imports %s in a test: it tests more than its folder", name)
		}
	}
}

// ours returns the row of an import of the module. An import without a row is
// said where its package is read.
func (j *judge) ours(f found) (string, row, bool) {
	name := packageName(f.what)
	r, ok := find(j.rows, name)
	return name, r, ok && name != "" && name != j.source.name
}

func (j *judge) permissions() {
	for _, f := range j.source.imports {
		if f.what == "os/exec" && j.row.exec == "" {
			j.say(f, "imports os/exec: only proc starts processes")
		}
		if strings.HasPrefix(f.what, "database/sql") && j.row.sql == "" {
			j.say(f, "imports %s: only store speaks to the database", f.what)
		}
	}
	for _, f := range j.source.refs {
		if slices.Contains(starts, f.what) && j.row.exec == "" {
			j.say(f, "uses %s: only proc starts processes", f.what)
		}
		if slices.Contains(reads, f.what) && j.row.clock == "" {
			j.say(f, "uses %s: take a clock from the caller", f.what)
		}
		if f.what == "regexp.MustCompile" && j.source.name != "ground/lazyregexp" && !strings.HasPrefix(j.source.name, "test/") {
			j.say(f, "uses %s: lazyregexp does not compile before the first use", f.what)
		}
	}
	for _, f := range j.source.dots {
		j.say(f, "imports %s with a dot, which hides what it uses", f.what)
	}
	for _, f := range j.source.sql {
		if j.row.sql == "" {
			j.say(f, "has the SQL %.40q: only store has SQL (if it is a sentence, reword it)", f.what)
		}
	}
	for _, f := range j.source.inits {
		if j.row.init == "" {
			j.say(f, "has an init function: the composition root joins the parts")
		}
	}
}

func (j *judge) purity() {
	for _, f := range j.source.imports {
		for _, p := range impure {
			if f.what == p || strings.HasPrefix(f.what, p+"/") && f.what != "net/url" && f.what != "net/netip" {
				j.say(f, "imports %s, and a pure package does no I/O", f.what)
			}
		}
	}
	for _, f := range j.source.refs {
		if slices.Contains(waits, f.what) {
			j.say(f, "uses %s, and a pure package is told the time", f.what)
		}
	}
}

// faultPoints finds two literal names that are alike, in packages that no
// binary of the tests has to link together. New sees the others.
func (j *judge) faultPoints(known map[string]string) {
	for _, f := range j.source.points {
		if at, taken := known[f.what]; taken {
			j.say(f, "declares the fault point %s, which %s has", f.what, at)
			continue
		}
		known[f.what] = f.at
	}
}
