// Package spine keeps a loop's memory in three files: loop.config.yaml, which
// people own, STATE.md, the triage snapshot, and run-log.md, the audit trail.
//
// It reads what people and earlier programs wrote with tolerance, and writes exactly
// one form. It never changes a byte of STATE.md that it was not asked to change,
// never trusts the text of an item, and takes run numbers from the store, not from
// the file.
package spine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/record/runlog"
)

// MaxState is the largest STATE.md that is read, in bytes.
const MaxState = 1 << 20

const (
	bom         = "\uFEFF"
	placeholder = "(none yet)"
)

// Section names one of the three lists of a STATE.md.
type Section string

// The three sections, in the order in which pawl writes them.
const (
	SectionPriority Section = "Priority" // act on these next
	SectionWatch    Section = "Watch"    // not yet actionable
	SectionNoise    Section = "Noise"    // seen and dismissed
)

var sections = []Section{SectionPriority, SectionWatch, SectionNoise}

// title and headings are lines as pawl writes them.
const title = "# %s — STATE"

var headings = map[Section]string{
	SectionPriority: "## Priority   (act on these next)",
	SectionWatch:    "## Watch      (not yet actionable)",
	SectionNoise:    "## Noise      (seen + dismissed this run)",
}

// IsKnown reports whether s is one of the three sections.
func (s Section) IsKnown() bool { return slices.Contains(sections, s) }

// Item is one entry of a section. Its text is one line without bullet, tag,
// comments and control characters, at most 500 runes long; the file may hold
// more, which stays there.
type Item struct {
	Section  Section
	Priority int // 1 to 9 from the tag [P1] to [P9], 0 without one
	Text     string
	Key      string // identity: the text in lower case
}

// BrokenError means that a text cannot be a STATE.md at all and that the file
// should be put aside.
type BrokenError struct {
	Line int // 1-based; the last line if something is missing
	Why  string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("read STATE.md, line %d: %s", e.Line, e.Why)
}

// State is a STATE.md. The four fields are those of its first lines; only SetHeader
// changes them. The zero State is not usable.
type State struct {
	Name      string    // as the title has it
	Updated   time.Time // UTC; zero if missing
	RunN      int64     // 0 if missing
	Readiness int       // 0 to 100; -1 if missing

	bom   string
	eol   string
	lines []string // each with its own line end
	layout
}

// ParseState reads a STATE.md, whatever its spacing. It requires a title line
// "# … STATE" and the three sections in any order; everything else may be missing. The
// error is a *BrokenError.
//
// An item is a bullet under one of the three headings, together with the lines
// below it that belong to it in Markdown: deeper bullets, indented text, and text that
// follows without a blank line. Any other heading and a "---" end the section. The text
// after them is free text, which no edit changes.
func ParseState(text string) (*State, error) {
	if broken := checkText(text); broken != nil {
		return nil, broken
	}
	s := &State{}
	if rest, ok := strings.CutPrefix(text, bom); ok {
		s.bom, text = bom, rest
	}
	s.lines = slices.Collect(strings.Lines(text))
	s.eol = usualEnd(text)
	found, broken := scanLayout(s.lines)
	if broken != nil {
		return nil, broken
	}
	s.layout = found
	s.readHeader()
	return s, nil
}

// NewState returns the STATE.md of a loop that has never run. Source says which program
// schedules it. The time of the header is the zero time until SetHeader is called.
func NewState(name, source string) *State {
	var b strings.Builder
	fmt.Fprintf(&b, title+"\n%s\n\n", oneLine(name), headerText(time.Time{}, 0, 100))
	for _, section := range sections {
		b.WriteString(headings[section] + "\n- " + placeholder + "\n\n")
	}
	fmt.Fprintf(&b, "---\n_Source: %s · config: loop.config.yaml_\n", oneLine(source))
	s, err := ParseState(b.String())
	if err != nil {
		panic("the template is not a STATE.md: " + err.Error())
	}
	return s
}

// checkText returns an error for a text that is too large, has a NUL byte or is not
// UTF-8.
func checkText(text string) *BrokenError {
	if len(text) > MaxState {
		return &BrokenError{Line: 1, Why: fmt.Sprintf("%d bytes, more than %d", len(text), MaxState)}
	}
	if at := strings.IndexByte(text, 0); at >= 0 {
		return &BrokenError{Line: lineAt(text, at), Why: "a NUL byte"}
	}
	for at, r := range text {
		if isInvalidUTF8(r, text[at:]) {
			return &BrokenError{Line: lineAt(text, at), Why: "not UTF-8"}
		}
	}
	return nil
}

// isInvalidUTF8 reports whether r, the first character of text, is not UTF-8. A
// replacement character that somebody typed is valid.
func isInvalidUTF8(r rune, text string) bool {
	return r == utf8.RuneError && !strings.HasPrefix(text, "\uFFFD")
}

func lineAt(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

// usualEnd returns the line end of most lines.
func usualEnd(text string) string {
	if crlf := strings.Count(text, "\r\n"); 2*crlf > strings.Count(text, "\n") {
		return "\r\n"
	}
	return "\n"
}

// String returns the whole file.
func (s *State) String() string { return s.bom + strings.Join(s.lines, "") }

// Items lists a section in file order. The caller owns the slice.
func (s *State) Items(section Section) []Item {
	var items []Item
	for _, p := range s.parts {
		if p.Section == section && !p.empty {
			items = append(items, p.Item)
		}
	}
	return items
}

// Priority lists the Priority section in the order in which it should be
// worked: [P1] first, items without a tag last, ties as in the file.
func (s *State) Priority() []Item {
	items := s.Items(SectionPriority)
	rank := func(it Item) int {
		if it.Priority == 0 {
			return 10
		}
		return it.Priority
	}
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(rank(a), rank(b)) })
	return items
}

var (
	headerLine  = lazyregexp.New(`(?i)^[\s_*]*updated[_*]*\s*:`)
	headerSpan  = lazyregexp.New(`(?i)^[\s_*]*updated[_*]*\s*:.*?\breadiness\s*:?\s*\d+\s*(?:/\s*\d+)?[_*]*`)
	headerTime  = lazyregexp.New(`\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:[Zz]|[+-]\d{2}:?\d{2})?`)
	headerRun   = lazyregexp.New(`(?i)\brun\s*#?\s*(\d+)`)
	headerReady = lazyregexp.New(`(?i)\breadiness\s*:?\s*(\d+)`)
)

func headerText(updated time.Time, run int64, readiness int) string {
	return fmt.Sprintf("_Updated: %s · run #%d · readiness %d/100_", updated.UTC().Format(runlog.TimeLayout), run, readiness)
}

// SetHeader writes the time, the number of the run and the readiness into the
// "_Updated_" line, and adds that line below the title if it is missing. Numbers out of
// range are clamped.
func (s *State) SetHeader(updated time.Time, run int64, readiness int) {
	text := headerText(updated, max(run, 0), min(max(readiness, 0), 100))
	if s.header < 0 {
		s.lines[s.title] = withLineEnd(s.lines[s.title], s.eol)
		s.lines = slices.Insert(s.lines, s.title+1, text+s.eol)
	} else {
		old, end := cutLineEnd(s.lines[s.header])
		rest := ""
		if span := headerSpan.FindString(old); span != "" {
			rest = old[len(span):]
		}
		s.lines[s.header] = text + rest + end
	}
	s.rescan()
}

func (s *State) readHeader() {
	s.Name = titleName(s.lines[s.title])
	s.Updated, s.RunN, s.Readiness = time.Time{}, 0, -1
	if s.header < 0 {
		return
	}
	line := s.lines[s.header]
	s.Updated, _ = runlog.ParseTime(headerTime.FindString(line))
	if m := headerRun.FindStringSubmatch(line); m != nil {
		s.RunN = parseCounter(m[1])
	}
	if m := headerReady.FindStringSubmatch(line); m != nil {
		s.Readiness = int(min(parseCounter(m[1]), 100))
	}
}

// rescan reads the lines again after an edit. An edit never removes the title or a
// heading, so that there is always a layout.
func (s *State) rescan() {
	found, broken := scanLayout(s.lines)
	if broken != nil {
		panic("an edit broke STATE.md: " + broken.Error())
	}
	s.layout = found
	s.readHeader()
}

// parseCounter reads a number. It is 0 if the number is too large.
func parseCounter(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
