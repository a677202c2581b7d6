package loopspec

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// phraseParser parses the texts of a spec and collects what is wrong with them.
type phraseParser struct{ findings []Finding }

func (p *phraseParser) report(path string, offset int, format string, args ...any) {
	p.findings = append(p.findings, Finding{Path: path, Offset: offset, Message: messageOf(format, args...)})
}

// unknownWord reports the word of a text from which on it fits no row of a field.
func (p *phraseParser) unknownWord(path, text string, words []word, at int, field Field) {
	fix := writeOneOf(field)
	switch {
	case at < len(words):
		w := words[at]
		p.report(path, w.at, "%s in %s fits no phrase; %s", readiness.Quote(text[w.at:w.end]), readiness.Quote(text), fix)
	case isBlank(text):
		p.report(path, 0, "empty; %s", fix)
	default:
		p.report(path, len(text), "%s ends before the phrase does; %s", readiness.Quote(text), fix)
	}
}

// bounded reports the number of a phrase if it is not from 1 to most.
func (p *phraseParser) bounded(path string, m matched, most int) {
	if m.has && (m.n < 1 || m.n > most) {
		p.report(path, m.nAt, "the number must be from 1 to %d", most)
	}
}

// whole finds the one row that a whole text is.
func (p *phraseParser) whole(path, text string, field Field) (matched, bool) {
	words := wordsOf(text)
	m, found := matchPhrase(field, text, words, 0)
	if !found || m.next < len(words) {
		p.unknownWord(path, text, words, m.far, field)
		return m, false
	}
	return m, true
}

// pair finds a row of one field and, after a word that joins them, one of another.
// The second is the field's default if the text ends before the joiner.
func (p *phraseParser) pair(path, text string, first Field, joiner string, second Field) (head, tail matched, ok bool) {
	words := wordsOf(text)
	head, found := matchPhrase(first, text, words, 0)
	if !found || head.next < len(words) && words[head.next].text != joiner {
		p.unknownWord(path, text, words, head.far, first)
		return head, tail, false
	}
	if head.next == len(words) {
		rows := PhrasesOf(second)
		tail.row = rows[slices.IndexFunc(rows, func(row Phrase) bool { return row.Default })]
		return head, tail, true
	}
	tail, found = matchPhrase(second, text, words, head.next+1)
	if !found || tail.next < len(words) {
		p.unknownWord(path, text, words, tail.far, second)
		return head, tail, false
	}
	return head, tail, true
}

func (p *phraseParser) giveUp(text string) loop.GiveUpRule {
	const at = "giveUp"
	head, tail, ok := p.pair(at, text, FieldGiveUp, wordArrow, FieldConsequence)
	if !ok {
		return loop.GiveUpRule{}
	}
	p.bounded(at, head, mostCount)
	rule := tail.row.value.(loop.GiveUpRule)
	rule.Repeat, rule.Times = head.row.value.(loop.Repeat), DefaultGiveUp
	if head.has {
		rule.Times = head.n
	}
	return rule
}

func (p *phraseParser) errorPolicy(text string) loop.ErrorPolicy {
	const at = "errorPolicy"
	head, tail, ok := p.pair(at, text, FieldErrorPolicy, "then", FieldErrorEnd)
	if !ok {
		return loop.ErrorPolicy{}
	}
	policy := head.row.value.(loop.ErrorPolicy)
	joined := len(wordsOf(text)) > head.next
	switch {
	case policy.Then == "" && !joined:
		p.report(at, len(text), "%s does not say what happens after the last retry; write %s", readiness.Quote(text), examplesOf(FieldErrorEnd, "then "))
	case policy.Then != "" && joined:
		p.unknownWord(at, text, wordsOf(text), head.next, FieldErrorPolicy)
	case joined:
		policy.Then = tail.row.value.(loop.ErrorEnd)
	}
	p.bounded(at, head, loop.MaxRetries)
	policy.Retries = head.n
	policy.Doubling = policy.Doubling && policy.Retries > 1
	return policy
}

func (p *phraseParser) humanGate(text string) HumanGate {
	m, ok := p.whole("humanGate", text, FieldHumanGate)
	if !ok {
		return HumanGate{}
	}
	return m.row.value.(HumanGate)
}

func (p *phraseParser) guardrails(entries []string) Guardrails {
	var g Guardrails
	for i, text := range entries {
		at := fmt.Sprintf("guardrails[%d]", i)
		m, ok := p.whole(at, text, FieldGuardrail)
		if !ok {
			continue
		}
		if d, is := m.row.value.(loop.Denial); is {
			g.Deny = append(g.Deny, d)
			continue
		}
		switch m.row.value.(guardKind) {
		case guardScope:
			g.Scope = append(g.Scope, p.scope(at, text, m)...)
		case guardNoBranch:
			g.NoBranch = true
		case guardReportOnly:
			g.ReportOnly = true
		case guardNote:
			g.Notes = append(g.Notes, m.rest)
		}
	}
	g.Deny = slices.DeleteFunc(slices.Clone(loop.Denials), func(d loop.Denial) bool { return !slices.Contains(g.Deny, d) })
	return g
}

// scope reads the paths of an entry, which commas and the word and separate.
func (p *phraseParser) scope(at, text string, m matched) []string {
	var globs []string
	begin := m.at
	read := func(end int) {
		item := strings.TrimSpace(text[begin:end])
		offset := begin + strings.Index(text[begin:end], item)
		item = strings.Trim(item, "`")
		glob, problem := scopeGlob(item)
		switch {
		case item == "":
			p.report(at, begin, "a path is missing; write paths like /src and /tests")
		case strings.ContainsAny(item, " \t\r\n"):
			p.report(at, offset, "%s: separate paths by a comma or by and", readiness.Quote(item))
		case problem != "":
			p.report(at, offset, "%s: %s", readiness.Quote(item), problem)
		default:
			globs = append(globs, glob)
		}
	}
	end := m.at + len(m.rest)
	if strings.HasSuffix(m.rest, ".") && !strings.HasSuffix(m.rest, "..") {
		end--
	}
	for _, w := range separators(text[:end], m.at) {
		read(w[0])
		begin = w[1]
	}
	read(end)
	return globs
}

// separators returns where the commas and the words and of a text are, from a byte on;
// a comma with a following and is one separator. A comma in braces belongs to a glob.
func separators(text string, from int) [][2]int {
	var all [][2]int
	add := func(at, end int) {
		if last := len(all) - 1; last >= 0 && text[all[last][0]] == ',' && isBlank(text[all[last][1]:at]) && text[at] != ',' {
			all[last][1] = end
			return
		}
		all = append(all, [2]int{at, end})
	}
	start, level := from, 0 // of a word; of braces
	for i := from; i <= len(text); i++ {
		c := byte(' ')
		if i < len(text) {
			c = text[i]
		}
		switch {
		case c == '{':
			level++
		case c == '}':
			level--
		case c == ',' && level <= 0, strings.IndexByte(" \t\r\n", c) >= 0:
			if word := text[start:i]; strings.EqualFold(word, "and") || word == "+" {
				add(start, i)
			}
			if c == ',' {
				add(i, i+1)
			}
			start = i + 1
		}
	}
	return all
}

// mostGlob is how many bytes a path of a guardrail may have.
const mostGlob = 1 << 10

// scopeGlob returns the glob that a path of a guardrail means, or what is wrong with it.
// A name without an extension is a directory.
func scopeGlob(item string) (glob, problem string) {
	directory := strings.HasSuffix(item, "/")
	glob = strings.Trim(item, "/")
	glob = strings.TrimPrefix(glob, "./")
	alternatives, few := policy.Alternatives(glob)
	switch {
	case len(item) > mostGlob:
		return "", fmt.Sprintf("longer than %d bytes", mostGlob)
	case strings.ContainsFunc(item, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", "contains a control character"
	case strings.HasPrefix(glob, "!"):
		return "", "what may not be changed cannot be named; name what may"
	case !few:
		return "", fmt.Sprintf("its braces mean more than %d paths", policy.MaxAlternatives)
	case !doublestar.ValidatePattern(glob):
		return "", "not a valid glob"
	case slices.ContainsFunc(alternatives, leavesTree):
		return "", "leaves the workspace; write paths below its top, without .."
	case slices.ContainsFunc(alternatives, isWholeTree):
		return "", "is the whole workspace; name a directory, like /src"
	}
	if last := path.Base(glob); directory || !strings.ContainsAny(last, "*?[{") && !strings.Contains(strings.TrimLeft(last, "."), ".") {
		return glob + "/**", ""
	}
	return glob, ""
}

func leavesTree(glob string) bool {
	slashed := strings.ReplaceAll(glob, `\`, "/")
	return len(slashed) > 2 && slashed[1:3] == ":/" || slices.Contains(strings.Split(slashed, "/"), "..")
}

func isWholeTree(glob string) bool {
	return !slices.ContainsFunc(strings.Split(glob, "/"), func(part string) bool { return part != "." && strings.Trim(part, "*?") != "" })
}

func (p *phraseParser) stateSource(text string) StateSource {
	const at = "stateSource"
	m, ok := p.whole(at, text, FieldStateSource)
	if !ok {
		return StateSource{}
	}
	s := StateSource{Kind: m.row.value.(SenseKind)}
	switch s.Kind {
	case SenseCommand:
		s.Command = m.rest
	case SenseQueue:
		s.Command = insideBackticks(m.rest)
	case SenseFile:
		s.Path = path.Clean(strings.TrimPrefix(strings.Trim(strings.TrimSuffix(m.rest, "."), "`"), "/"))
		if s.Path == "." || leavesTree(s.Path) {
			p.report(at, m.at, "%s is not a file of the workspace; write a path below its top", readiness.Quote(m.rest))
		}
	case SenseTestOutput, SenseDiff, SenseMemory:
	}
	return s
}

// insideBackticks returns what is in the first pair of backticks of a text, or the
// whole text if it has none.
func insideBackticks(text string) string {
	_, after, opens := strings.Cut(text, "`")
	inner, _, closes := strings.Cut(after, "`")
	if !opens || !closes {
		return strings.TrimSpace(text)
	}
	return strings.TrimSpace(inner)
}

// defaultSchedule is the cadence of a schedule that does not say how often it fires:
// 300 000 ms.
const defaultSchedule = "5m"

func (p *phraseParser) trigger(t Trigger) Schedule {
	const at = "trigger.on"
	s := Schedule{Type: t.Type}
	switch t.Type {
	case TriggerManual:
		if t.On != "" {
			p.report(at, 0, "a manual trigger fires by nothing; remove on, or write the type schedule or event")
		}
	case TriggerSchedule:
		s.Cadence = p.cadence(at, t.On)
	case TriggerEvent:
		var err error
		if s.Event, err = loop.ParseEventSource(t.On); err != nil {
			p.report(at, 0, "%s: %s", readiness.Quote(t.On), err)
		} else if s.Event.Kind == loop.OnFile && !doublestar.ValidatePattern(s.Event.What) {
			p.report(at, len("file:"), "%s: not a valid glob", readiness.Quote(s.Event.What))
		}
	}
	return s
}

// cadence reads how often a schedule fires. A number is milliseconds, and it fires
// every whole minute at most.
func (p *phraseParser) cadence(at, on string) string {
	on = strings.TrimSpace(on)
	if on == "" {
		return defaultSchedule
	}
	if strings.Trim(on, "0123456789") == "" {
		const minute = 60_000
		ms, err := strconv.ParseInt(on, 10, 64)
		if err != nil || ms < 1 || ms > mostExact {
			p.report(at, 0, "%s is not a number of milliseconds; write one like 300000, an interval like 1h or five cron fields", readiness.Quote(on))
			return ""
		}
		minutes := (ms + minute - 1) / minute
		if minutes*minute != ms {
			p.findings = append(p.findings, Finding{Path: at, Note: true, Message: messageOf("%s ms is not a whole minute: it fires every %d m", on, minutes)})
		}
		on = minuteCadence(minutes)
	}
	c, err := schedule.Parse(on)
	if err != nil {
		p.report(at, 0, "%s: %s", readiness.Quote(on), err)
		return ""
	}
	return c.String()
}

// minuteCadence writes a number of minutes as package schedule reads it, which takes
// numbers of up to six digits.
func minuteCadence(minutes int64) string {
	days, rest := minutes/(24*60), minutes%(24*60)
	text := ""
	if days > 0 {
		text = strconv.FormatInt(days, 10) + "d"
	}
	if rest > 0 {
		text += strconv.FormatInt(rest, 10) + "m"
	}
	return text
}
