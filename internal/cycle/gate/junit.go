package gate

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Bounds of what is read of reports. A report beyond them counts as far as it
// was read.
const (
	maxReports  = 2000
	maxFolders  = 256    // in which reports are looked for
	maxEntries  = 10_000 // of one folder
	maxReport   = 32 << 20
	maxAllXML   = 128 << 20
	maxXMLToken = 2 << 20
	maxXMLDepth = 64
)

// reportPatterns are the files where runners write JUnit XML by default, below the
// folder of a project or of one of its modules.
var reportPatterns = []string{
	"junit.xml", "junit-*.xml", "test-results.xml", "report.xml", "TEST-*.xml",
	"reports/junit.xml", "reports/TEST-*.xml",
	"test-results/*.xml", "test-reports/*.xml", "TestResults/*.xml",
	"target/surefire-reports/TEST-*.xml", "target/failsafe-reports/TEST-*.xml", "target/nextest/*/junit.xml",
	"build/test-results/*.xml", "build/test-results/*/TEST-*.xml",
}

// Reports are files that look like test reports, by path, each with data that
// tells whether it was rewritten.
type Reports map[string]stamp

type stamp struct {
	size    int64
	changed time.Time
}

// FindReports lists the reports that already exist in a tree: at their usual
// places, in its root and in folders one and two levels below. It follows no
// links inside of fsys; for untrusted trees, fsys should be that of an os.Root.
// It leaves out files that cannot be read.
func FindReports(fsys fs.FS) Reports {
	found := Reports{}
	for _, folder := range projectFolders(fsys) {
		found.addMatching(fsys, folder, reportPatterns)
	}
	return found
}

// projectFolders lists the root and the folders up to two levels below it.
func projectFolders(fsys fs.FS) []string {
	all := []string{"."}
	from := 0
	for range 2 {
		to := len(all)
		for _, folder := range all[from:to] {
			all = append(all, moduleFolders(fsys, folder, maxFolders-len(all))...)
		}
		from = to
	}
	return all
}

// moduleFolders lists at most room folders that may contain a module.
func moduleFolders(fsys fs.FS, folder string, room int) []string {
	var found []string
	for _, e := range readEntries(fsys, folder) {
		if len(found) < room && e.IsDir() && e.Name()[0] != '.' && e.Name() != "node_modules" {
			found = append(found, path.Join(folder, e.Name()))
		}
	}
	return found
}

// readEntries returns the entries of a folder, and only a part of a huge one.
func readEntries(fsys fs.FS, folder string) []fs.DirEntry {
	f, err := fsys.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	list, err := d.ReadDir(maxEntries)
	if err != nil {
		return nil
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

// addMatching adds the regular files below folder that match one of the patterns.
func (r Reports) addMatching(fsys fs.FS, folder string, patterns []string) {
	for _, e := range readEntries(fsys, folder) {
		var below []string
		matches := false
		for _, p := range patterns {
			first, rest, deeper := strings.Cut(p, "/")
			if ok, err := path.Match(first, e.Name()); err != nil || !ok {
				continue
			}
			if deeper {
				below = append(below, rest)
			} else {
				matches = true
			}
		}
		name := path.Join(folder, e.Name())
		switch {
		case e.IsDir() && len(below) > 0:
			r.addMatching(fsys, name, below)
		case e.Type().IsRegular() && matches && len(r) < maxReports:
			if info, err := e.Info(); err == nil {
				r[name] = stamp{info.Size(), info.ModTime()}
			}
		}
	}
}

// ReadJUnit counts the test cases in JUnit XML reports that were written or
// changed since earlier ones were listed, and reports whether there are any. It
// expands no entities and bounds what it reads; an incomplete report counts as
// far as it goes. The process under test writes the reports, and can write
// anything.
func ReadJUnit(fsys fs.FS, earlier Reports) (loop.TestCounts, bool) {
	all, _ := readReports(fsys, earlier)
	return all.countsOf("junit")
}

func readReports(fsys fs.FS, earlier Reports) (sum, loop.TestNames) {
	var all sum
	var names named
	now := FindReports(fsys)
	left := int64(maxAllXML)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] == earlier[name] || left <= 0 {
			continue
		}
		f, err := fsys.Open(name)
		if err != nil {
			continue
		}
		n, size := readReport(io.LimitReader(f, min(left, maxReport)), &names)
		_ = f.Close()
		left -= size
		all.add(n)
	}
	return all, loop.TestNames{
		Ran: slices.Sorted(slices.Values(names.prefixedNames("junit", all.passed+all.failed))), Failed: slices.Sorted(slices.Values(names.failedNames("junit"))),
	}
}

// readReport counts the cases of one report and says how much of it was read. A
// document whose root is not a test suite has no cases.
func readReport(r io.Reader, names *named) (sum, int64) {
	in := &metered{r: r}
	d := xml.NewDecoder(in)
	doc := junitDoc{named: names}
	for {
		in.token = 0
		token, err := d.Token()
		if err != nil || !doc.readToken(token) {
			return doc.sum, in.all
		}
	}
}

// junitDoc is a report as far as it was read.
type junitDoc struct {
	sum
	*named
	name            string   // of the case at hand
	open            []string // elements
	failed, skipped bool     // the case at hand
}

// readToken reports whether the document is worth reading on.
func (j *junitDoc) readToken(t xml.Token) bool {
	switch t := t.(type) {
	case xml.StartElement:
		j.open = append(j.open, t.Name.Local)
		if len(j.open) == 1 {
			j.spoke = t.Name.Local == "testsuites" || t.Name.Local == "testsuite"
		}
		j.startElement(t)
		return j.spoke && len(j.open) <= maxXMLDepth
	case xml.EndElement:
		j.open = j.open[:len(j.open)-1]
		if t.Name.Local == "testcase" {
			j.endCase()
		}
	}
	return true
}

func (j *junitDoc) startElement(t xml.StartElement) {
	name := t.Name.Local
	switch {
	case name == "testcase":
		j.failed, j.name = false, caseName(t.Attr)
		j.skipped = slices.ContainsFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Local == "status" && a.Value == "notrun" })
	case len(j.open) < 2 || j.open[len(j.open)-2] != "testcase":
	case name == "failure" || name == "error":
		j.failed = true
	case name == "skipped" || name == "disabled":
		j.skipped = true
	}
}

func (j *junitDoc) endCase() {
	switch {
	case j.failed:
		j.sum.failed++
	case j.skipped:
		j.sum.skipped++
	default:
		j.passed++
	}
	if j.failed || !j.skipped {
		j.addName(j.name, j.failed)
	}
}

// caseName is the name of a case below that of its class.
func caseName(attr []xml.Attr) string {
	var class, name string
	for _, a := range attr {
		switch a.Name.Local {
		case "classname":
			class = a.Value
		case "name":
			name = a.Value
		}
	}
	return stableTitle(class) + " " + stableTitle(name)
}

// metered fails if a single token is too long: a tag with millions of attributes
// takes many times its size in memory.
type metered struct {
	r          io.Reader
	token, all int64
}

var errTokenTooLong = errors.New("a tag or text in the report is too long")

func (m *metered) Read(p []byte) (int, error) {
	if m.token > maxXMLToken {
		return 0, errTokenTooLong
	}
	n, err := m.r.Read(p)
	m.token += int64(n)
	m.all += int64(n)
	return n, err
}
