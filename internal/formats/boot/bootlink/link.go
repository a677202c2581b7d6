// Package bootlink reads what a workspace of the boot protocol links to: AGENT_LINK.md,
// the versions that fit together, and the table of stop lines.
//
// It does no I/O and reads no clock: callers pass the texts, and look themselves whether
// a path leads out of the workspace by a link. It changes no text except by Migrate,
// which returns a new one.
package bootlink

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Link is an AGENT_LINK.md.
type Link struct {
	Repository string // owner/repo, a URL or a path
	Reference  string // a branch, a tag or a commit
	Version    Version
	Contract   string // the companion contract that is asked for; usually empty
	BootPath   string // where the contract is in the boot repository; empty: it is looked for

	State, Tasks, Changelog string   // paths below the workspace
	Directories             []string // that may change, each with a slash at its end

	Rows []Row // all rows of its tables, known or not, in their order
}

// Finding is one fault of a file, or a note about it.
type Finding struct {
	Reason  loop.Reason
	Message string // one line: what is wrong, and the fix
	Line    int    // from 1
	Column  int    // characters from 1
}

// String is the finding with its place.
func (f Finding) String() string { return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message) }

// Defaults of what a link need not say.
const (
	DefaultState     = "agent/STATE.json"
	DefaultTasks     = "agent/TODO.json"
	DefaultChangelog = "CHANGELOG.md"
)

// Scratch is the directory that never leaves the checkout.
const Scratch = "scratch/"

// DefaultDirectories may change if a link names none.
var DefaultDirectories = []string{"agent/", "inputs/", "outputs/", "audits/", Scratch}

// Labels of rows.
const (
	labelRepository = "Boot Repository"
	labelReference  = "Boot Reference"
	labelVersion    = "Boot Version"
	labelContract   = "Contract Repository"
	labelPath       = "Boot Path"
	labelState      = "State"
	labelTasks      = "Tasks"
	labelChangelog  = "Changelog"
)

var labels = []string{
	labelRepository, labelReference, labelVersion, labelContract, labelPath, labelState, labelTasks, labelChangelog,
}

// olderLabels are those of the older form, and what they are called now.
var olderLabels = map[string]string{"Repo": labelRepository, "Branch": labelReference, "Entry": ""}

// MaxBytes is how long a Markdown file of the protocol may be.
const MaxBytes = 1 << 20

// linkReader reads one link.
type linkReader struct {
	src      []byte
	rows     map[string]Row // known ones, by label
	findings []Finding
}

func (r *linkReader) report(reason loop.Reason, lineNumber, column int, format string, args ...any) {
	message := strings.ReplaceAll(readiness.Printable(fmt.Sprintf(format, args...)), "\t", " ")
	r.findings = append(r.findings, Finding{reason, message, lineNumber, column})
}

// ParseLink reads an AGENT_LINK.md. It returns everything that is wrong, in the order of
// the text; the link must not be used if there is a finding.
func ParseLink(src []byte) (Link, []Finding) {
	r := &linkReader{src: src, rows: map[string]Row{}}
	if message, lineNumber, column := textProblem(src); message != "" {
		r.report(loop.ReasonLinkMalformed, lineNumber, column, "%s", message)
		return Link{}, r.findings
	}
	r.findPlaceholders()
	l := Link{Rows: readTables(src)}
	for _, row := range l.Rows {
		r.addRow(row)
	}
	r.findMisspelt(l.Rows)
	r.readBoot(&l)
	r.readMemory(&l)
	r.readDirectories(&l)
	slices.SortStableFunc(r.findings, func(a, b Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return l, r.findings
}

// textProblem says why a file is not a text, and where.
func textProblem(src []byte) (message string, lineNumber, column int) {
	if len(src) > MaxBytes {
		return fmt.Sprintf("%d bytes are more than the %d that are read", len(src), MaxBytes), 1, 1
	}
	lineNumber, column = 1, 1
	for rest := src; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		switch {
		case c == utf8.RuneError && size == 1:
			return "not UTF-8: write the file in UTF-8", lineNumber, column
		case c == 0:
			return "contains a NUL", lineNumber, column
		case c == '\n':
			lineNumber, column = lineNumber+1, 0
		}
		column++
		rest = rest[size:]
	}
	return "", 0, 0
}

// findPlaceholders reports each {{…}} that nobody has filled in.
func (r *linkReader) findPlaceholders() {
	number := 0
	for text := range strings.Lines(string(r.src)) {
		number++
		offset := 0
		for {
			at := strings.Index(text[offset:], "{{")
			if at < 0 {
				break
			}
			at += offset
			end := strings.Index(text[at:], "}}")
			if end < 0 {
				break
			}
			offset = at + end + 2
			column := utf8.RuneCountInString(strings.TrimPrefix(text[:at], "\ufeff")) + 1
			r.report(loop.ReasonLinkMalformed, number, column, "%s is not filled in; write the value", readiness.Quote(text[at:offset]))
		}
	}
}

// addRow notes the value of a row that is known. Other tables may have a row or a
// column that is called State, so there a value without backticks must look like a path.
func (r *linkReader) addRow(row Row) {
	at := slices.IndexFunc(labels, func(label string) bool { return strings.EqualFold(label, row.Label) })
	if at < 0 || row.Head && !row.isCode {
		return
	}
	label := labels[at]
	if isFile := label == labelState || label == labelTasks || label == labelChangelog; isFile && !row.isCode && !strings.ContainsAny(row.Value, "./") {
		return
	}
	before, twice := r.rows[label]
	if !twice {
		r.rows[label] = row
		return
	}
	if before.Value != row.Value {
		r.report(loop.ReasonLinkMalformed, row.Line, row.columns[0], "%s is %s here and %s in line %d; remove one",
			label, readiness.Quote(row.Value), readiness.Quote(before.Value), before.Line)
	}
}

// findMisspelt reports rows whose label is a misspelling of one that the link lacks. Other
// tables may have rows of any name, so there a value must look like what such a row has.
func (r *linkReader) findMisspelt(rows []Row) {
	lacking := slices.DeleteFunc(slices.Clone(labels), func(label string) bool { _, there := r.rows[label]; return there })
	for _, row := range rows {
		if row.Head || slices.ContainsFunc(labels, func(label string) bool { return strings.EqualFold(label, row.Label) }) {
			continue
		}
		meant := readiness.Misspelt(row.Label, lacking)
		if isFile := meant == labelState || meant == labelTasks || meant == labelChangelog; meant == "" || isFile && !row.isCode && !strings.ContainsAny(row.Value, "./") {
			continue
		}
		r.report(loop.ReasonLinkMalformed, row.Line, row.columns[0], "%s is not a row of the link; did you mean %s?", readiness.Quote(row.Label), meant)
	}
}

func (r *linkReader) readBoot(l *Link) {
	r.readValue(labelRepository, &l.Repository, repositoryProblem)
	r.readValue(labelReference, &l.Reference, referenceProblem)
	r.readValue(labelContract, &l.Contract, repositoryProblem)
	r.readValue(labelPath, &l.BootPath, pathProblem)
	l.BootPath = strings.Trim(path.Clean("/"+l.BootPath), "/")
	var version string
	r.readValue(labelVersion, &version, func(text string) string {
		if _, ok := ParseVersion(text); !ok {
			return "is not a version; write three numbers, like 1.0.0"
		}
		return ""
	})
	l.Version, _ = ParseVersion(version)

	var missing []string
	for _, label := range []string{labelRepository, labelReference, labelVersion} {
		if _, there := r.rows[label]; !there {
			missing = append(missing, label)
		}
	}
	if len(missing) == 0 {
		return
	}
	first, column := 1, 1
	if len(l.Rows) > 0 {
		first, column = l.Rows[0].Line, l.Rows[0].columns[0]
	}
	names := strings.Join(missing, ", ")
	switch older := olderRows(l.Rows); {
	case len(older) > 0:
		r.report(loop.ReasonLinkOlder, older[0].Line, older[0].columns[0],
			"the older form, with the row %s: %s missing; run: pawl boot migrate", readiness.Quote(older[0].Label), names)
	case slices.Equal(missing, []string{labelVersion}):
		r.report(loop.ReasonLinkNoVersion, first, column, "%s is missing; add the row: | %s | `1.0.0` |", labelVersion, labelVersion)
	default:
		r.report(loop.ReasonLinkNoBoot, first, column, "missing: %s; add a row for each, with its value in backticks", names)
	}
}

// olderRows returns the rows that only the older form has.
func olderRows(rows []Row) []Row {
	var older []Row
	for _, row := range rows {
		if _, is := olderLabels[row.Label]; is && !row.Head {
			older = append(older, row)
		}
	}
	return older
}

// readValue reads the value of a row, if the row is there.
func (r *linkReader) readValue(label string, to *string, problem func(string) string) {
	row, there := r.rows[label]
	if !there {
		return
	}
	*to = row.Value
	switch what := problem(row.Value); {
	case strings.Contains(row.Value, "{{"): // said already
	case row.Value == "":
		r.report(loop.ReasonLinkMalformed, row.Line, max(row.at, 1), "%s is empty; write the value in backticks", label)
	case what != "":
		r.report(loop.ReasonLinkMalformed, row.Line, row.at, "%s: %s %s", label, readiness.Quote(row.Value), what)
	}
}

func (r *linkReader) readMemory(l *Link) {
	files := []struct {
		label, byDefault string
		to               *string
	}{
		{labelState, DefaultState, &l.State}, {labelTasks, DefaultTasks, &l.Tasks}, {labelChangelog, DefaultChangelog, &l.Changelog},
	}
	var there Row
	for _, f := range files {
		if row, found := r.rows[f.label]; found {
			there = row
		}
	}
	taken := map[string]string{"AGENT_LINK.md": "the link itself"}
	for _, f := range files {
		row, found := r.rows[f.label]
		if !found {
			*f.to = f.byDefault
			if there.Line > 0 {
				r.report(loop.ReasonLinkMalformed, there.Line, there.columns[0], "%s is missing in the table; add the row: | %s | `%s` |", f.label, f.label, f.byDefault)
			}
			continue
		}
		r.readValue(f.label, f.to, func(text string) string {
			if strings.HasSuffix(text, "/") {
				return "is a directory, not a file"
			}
			return pathProblem(text)
		})
		clean := path.Clean(*f.to)
		if other := taken[clean]; other != "" && *f.to != "" {
			r.report(loop.ReasonLinkMalformed, row.Line, row.at, "%s: %s is %s; write another path", f.label, readiness.Quote(*f.to), other)
		}
		taken[clean], *f.to = "the file of "+f.label, clean
	}
}

func (r *linkReader) readDirectories(l *Link) {
	for _, row := range l.Rows {
		known := slices.ContainsFunc(labels, func(label string) bool { return strings.EqualFold(label, row.Label) })
		if _, older := olderLabels[row.Label]; known || older || row.Head {
			continue
		}
		for i, cell := range row.Cells {
			text, offset, isCode := codeSpan(cell)
			if !isCode || !strings.HasSuffix(text, "/") || strings.Contains(text, "{{") {
				continue
			}
			if problem := pathProblem(text); problem != "" {
				r.report(loop.ReasonLinkMalformed, row.Line, row.columns[i]+offset, "the directory %s %s", readiness.Quote(text), problem)
			} else if dir := path.Clean(text) + "/"; !slices.Contains(l.Directories, dir) {
				l.Directories = append(l.Directories, dir)
			}
			break
		}
	}
	if len(l.Directories) == 0 {
		l.Directories = slices.Clone(DefaultDirectories)
	}
}

// pathProblem says why a text is not a path below the workspace.
func pathProblem(text string) string {
	parts := strings.Split(strings.TrimSuffix(text, "/"), "/")
	switch {
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || len(text) > 1 && text[1] == ':':
		return "is absolute; write a path below the workspace"
	case strings.Contains(text, `\`):
		return "has a backslash; write slashes"
	case slices.Contains(parts, ".."):
		return "leads out of the workspace; write a path without .."
	case slices.ContainsFunc(parts, func(p string) bool { return strings.EqualFold(p, ".git") }):
		return "is in git's own directory; write another path"
	case slices.Contains(parts, "") || path.Clean(text) == ".":
		return "is not the path of a file or directory below the workspace"
	case strings.IndexFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) >= 0:
		return "has a character that cannot be printed"
	}
	return ""
}

func repositoryProblem(text string) string {
	if strings.HasPrefix(text, "-") || strings.IndexFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) >= 0 {
		return "is not a repository; write owner/repo, a URL or a path, in backticks"
	}
	return ""
}

// referenceProblem follows git check-ref-format.
func referenceProblem(text string) string {
	bad := strings.HasPrefix(text, "-") || strings.HasPrefix(text, "/") || strings.HasSuffix(text, "/") || strings.HasSuffix(text, ".") ||
		strings.HasSuffix(text, ".lock") || strings.ContainsAny(text, ` ~^:?*[\`) || text == "@" ||
		strings.IndexFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) >= 0
	for _, part := range []string{"..", "//", "@{", "/."} {
		bad = bad || strings.Contains(text, part)
	}
	if bad {
		return "is not a branch, a tag or a commit"
	}
	return ""
}
