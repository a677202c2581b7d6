package taskfile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// Context is a CONTEXT.md.
type Context struct{ document }

// ParseContext reads a CONTEXT.md. Every text is one.
func ParseContext(text string) *Context { return &Context{newDocument(text)} }

// String returns the whole file.
func (c *Context) String() string { return c.document.String() }

// Append adds text at the end of the file.
func (c *Context) Append(text string) { c.appendText(text) }

// Pitfall is a line of "## Known Pitfalls" that pawl wrote.
type Pitfall struct {
	Date   time.Time // of the first time
	Step   string    // a key; empty if it has nothing to do with a step
	Cause  string
	Advice string // what to do instead; empty if nobody knows
	Times  int    // how often it was met; AddPitfall counts 0 as 1
	Last   time.Time
}

const instead = " — instead: "

var (
	pitfallLine = lazyregexp.New(`^- (\d{4}-\d\d-\d\d)(?:, ([\w-]+))?: (.*?)(?: \((\d+) times, last (\d{4}-\d\d-\d\d)\))?$`)
	attempts    = lazyregexp.New(`\d+`)
)

func (p Pitfall) line() string {
	var b strings.Builder
	b.WriteString("- " + p.Date.UTC().Format(time.DateOnly))
	if p.Step != "" {
		b.WriteString(", " + p.Step)
	}
	b.WriteString(": " + p.Cause)
	if p.Advice != "" {
		b.WriteString(instead + p.Advice)
	}
	if p.Times > 1 {
		fmt.Fprintf(&b, " (%d times, last %s)", p.Times, p.Last.UTC().Format(time.DateOnly))
	}
	return b.String()
}

func readPitfall(line string) (p Pitfall, ok bool) {
	text := strings.TrimRight(line, "\r\n")
	if !strings.HasPrefix(text, "- 2") && !strings.HasPrefix(text, "- 1") {
		return p, false
	}
	m := pitfallLine.FindStringSubmatch(text)
	if m == nil {
		return p, false
	}
	var err error
	if p.Date, err = time.Parse(time.DateOnly, m[1]); err != nil {
		return p, false
	}
	p.Step, p.Cause, p.Times, p.Last = m[2], m[3], 1, p.Date
	if i := strings.Index(p.Cause, instead); i >= 0 {
		p.Cause, p.Advice = p.Cause[:i], p.Cause[i+len(instead):]
	}
	if m[4] != "" {
		p.Times, _ = strconv.Atoi(m[4])
		p.Last, _ = time.Parse(time.DateOnly, m[5])
	}
	return p, p.line() == text
}

// pitfallText is a text as the line of a pitfall has it.
func pitfallText(text string) string {
	text = strings.ReplaceAll(fold(text), instead, " - instead: ")
	if strings.HasSuffix(text, ")") && strings.Contains(text, " times, last ") {
		text += "." // it must not read as a count
	}
	return text
}

// sameCause is a cause without case, spaces, numbers and full stop: "Timeout after 3 attempts" and
// "timeout after 4  attempts" are one.
func sameCause(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return -1
		case r == '—': // pitfallText replaces some.
			return '-'
		}
		return unicode.ToLower(r)
	}, strings.TrimRight(attempts.ReplaceAllString(pitfallText(text), "#"), ". "))
}

func (c *Context) pitfallLines() []int {
	from, to, _ := c.section("known pitfalls", "pitfalls")
	var lines []int
	for i := from; i < to; i++ {
		if _, ok := readPitfall(c.lines[i]); ok && c.plain[i] {
			lines = append(lines, i)
		}
	}
	return lines
}

// Pitfalls lists the pitfalls that pawl wrote, in file order.
func (c *Context) Pitfalls() []Pitfall {
	var list []Pitfall
	for _, i := range c.pitfallLines() {
		p, _ := readPitfall(c.lines[i])
		list = append(list, p)
	}
	return list
}

// AddPitfall adds a line at the end of "## Known Pitfalls". If there is one with the
// same cause, it is counted up instead.
func (c *Context) AddPitfall(p Pitfall) {
	p.Cause, p.Advice = pitfallText(p.Cause), pitfallText(p.Advice)
	p.Step = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return -1
	}, p.Step)
	p.Cause = cmp.Or(p.Cause, "no reason was given")
	p.Times = max(p.Times, 1)
	if p.Last.Before(p.Date) {
		p.Last = p.Date
	}
	own := c.pitfallLines()
	for _, i := range own {
		there, _ := readPitfall(c.lines[i])
		if sameCause(there.Cause) != sameCause(p.Cause) {
			continue
		}
		there.Times += p.Times
		if p.Last.After(there.Last) {
			there.Last = p.Last
		}
		there.Advice = cmp.Or(there.Advice, p.Advice)
		_, end := cutLineEnd(c.lines[i])
		c.lines[i] = there.line() + end
		return
	}
	if len(own) > 0 {
		c.insert(own[len(own)-1]+1, p.line())
		return
	}
	from, to, found := c.section("known pitfalls", "pitfalls")
	if !found {
		from = c.addSection("Known Pitfalls")
		to = from
	}
	c.insertApart(c.lastText(from, to), p.line())
}

// AddErrorLine adds what was wrong with the answer of an agent, as a pitfall without a
// step.
func (c *Context) AddErrorLine(at time.Time, code string) {
	c.AddPitfall(Pitfall{Date: at, Step: "parse-error", Cause: code})
}

// NewContext returns the CONTEXT.md of an agent that knows nothing yet.
func NewContext(agent string) string {
	return "# " + fold(agent) + " — CONTEXT\n\n## Stack\n\n## Constraints\n\n## Known Pitfalls\n\n## Decision Pipeline\n"
}
