package policy

import "strings"

// deepest is how many shells within shells are looked into.
const deepest = 6

// word is one word of a command, as the shell would pass it on. Open means that
// a part of it is only known when it runs.
type word struct {
	text string
	open bool
}

// script is what a line for a shell runs, as far as it can be told without
// running it: every simple command at any depth, pipes, substitutions and
// groups taken apart. Unclear means that something was not understood.
type script struct {
	commands [][]word
	here     []string // texts that commands get on standard input
	unclear  bool
}

// reader takes a line for a shell apart.
type reader struct {
	script

	text  string
	at    int
	depth int

	words   []word
	word    strings.Builder
	begun   bool // a word
	open    bool
	drop    bool     // the next word is a file of a redirection
	pending []string // ends of texts that follow the line
}

// readScript reads text, of which depth levels are around it.
func readScript(text string, depth int) script {
	r := &reader{text: text, depth: depth}
	if depth > deepest {
		r.unclear = true
		return r.script
	}
	for r.at < len(r.text) {
		r.step()
	}
	r.endCommand()
	return r.script
}

func (r *reader) step() {
	c := r.text[r.at]
	r.at++
	switch c {
	case ' ', '\t', '\r':
		r.endWord()
	case '\n':
		r.endCommand()
		r.takeHere()
	case ';', '|', '(', ')', '&':
		r.endCommand()
	case '<', '>':
		r.redirect(c)
	case '#':
		r.comment()
	case '\\':
		r.escape()
	case '\'':
		r.begun = true
		r.put(r.until('\''))
	case '"':
		r.begun = true
		r.double()
	case '$':
		r.dollar()
	case '`':
		r.within(r.until('`'))
	case '*', '?', '[', '{':
		r.put(string(c))
		alone := r.at == len(r.text) || r.text[r.at] <= ' ' || r.text[r.at] == '[' // The commands [, [[ and { are no patterns.
		first := len(r.words) == 0                                                 // What a pattern among the arguments stands for are files.
		r.open = r.open || first && (!alone || r.word.Len() > 2)
	default:
		r.put(string(c))
	}
}

func (r *reader) put(s string) {
	r.word.WriteString(s)
	r.begun = r.begun || s != ""
}

func (r *reader) endWord() {
	if r.begun && !r.drop {
		r.words = append(r.words, word{r.word.String(), r.open})
	}
	if r.begun {
		r.drop = false
	}
	r.word.Reset()
	r.begun, r.open = false, false
}

func (r *reader) endCommand() {
	r.endWord()
	if len(r.words) > 0 {
		r.commands = append(r.commands, r.words)
	}
	r.words, r.drop = nil, false
}

// until returns what comes before an end that no backslash hides, and steps
// over it.
func (r *reader) until(end byte) string {
	for i := r.at; i < len(r.text); i++ {
		switch {
		case r.text[i] == '\\' && end != '\'':
			i++
		case r.text[i] == end:
			inner := r.text[r.at:i]
			r.at = i + 1
			return inner
		}
	}
	inner := r.text[r.at:]
	r.at, r.unclear = len(r.text), true
	return inner
}

func (r *reader) comment() {
	if r.begun {
		r.put("#")
		return
	}
	if end := strings.IndexByte(r.text[r.at:], '\n'); end >= 0 {
		r.at += end
		return
	}
	r.at = len(r.text)
}

func (r *reader) escape() {
	if r.at == len(r.text) {
		return
	}
	if c := r.text[r.at]; c != '\n' {
		r.put(string(c))
	}
	r.at++
}

// double reads up to the end of a text in double quotes.
func (r *reader) double() {
	for r.at < len(r.text) {
		c := r.text[r.at]
		r.at++
		switch c {
		case '"':
			return
		case '\\':
			r.escape()
		case '$':
			r.dollar()
		case '`':
			r.within(r.until('`'))
		default:
			r.put(string(c))
		}
	}
	r.unclear = true
}

// dollar reads what begins with one.
func (r *reader) dollar() {
	rest := r.text[r.at:]
	switch {
	case strings.HasPrefix(rest, "("):
		r.at++
		r.within(r.parenthesis())
	case strings.HasPrefix(rest, "{"):
		inner := r.until('}')
		r.unclear = r.unclear || strings.ContainsAny(inner, "$`")
		r.begun, r.open = true, true
	case strings.HasPrefix(rest, "'"):
		r.at++
		text := r.until('\'')
		r.open = r.open || strings.Contains(text, `\`)
		r.put(text)
	case strings.HasPrefix(rest, `"`):
	default:
		r.begun, r.open = true, true
		r.at += len(rest) - len(strings.TrimLeft(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"))
	}
}

// parenthesis returns what comes before the end of a substitution.
func (r *reader) parenthesis() string {
	level, quote := 1, byte(0)
	for i := r.at; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			level++
		case c == ')':
			if level--; level == 0 {
				inner := r.text[r.at:i]
				r.at = i + 1
				return inner
			}
		}
	}
	inner := r.text[r.at:]
	r.at, r.unclear = len(r.text), true
	return inner
}

// within adds what a substitution runs.
func (r *reader) within(text string) {
	r.begun, r.open = true, true
	r.add(readScript(text, r.depth+1))
}

func (r *reader) add(s script) {
	r.commands = append(r.commands, s.commands...)
	r.here = append(r.here, s.here...)
	r.unclear = r.unclear || s.unclear
}

// redirect reads the signs of a redirection. The file that follows is no word
// of the command; a text that follows is kept as one.
func (r *reader) redirect(c byte) {
	if strings.Trim(r.word.String(), "0123456789") == "" {
		r.word.Reset()
		r.begun = false
	}
	r.endWord()
	rest := r.text[r.at:]
	switch {
	case strings.HasPrefix(rest, "("):
	case c == '<' && strings.HasPrefix(rest, "<<"):
		r.at += 2
	case c == '<' && strings.HasPrefix(rest, "<"):
		r.at++
		r.hereEnd()
	default:
		r.at += len(rest) - len(strings.TrimLeft(rest, "<>&|"))
		r.drop = true
	}
}

// hereEnd notes which line ends the text that follows.
func (r *reader) hereEnd() {
	rest := strings.TrimLeft(strings.TrimPrefix(r.text[r.at:], "-"), " \t")
	end := rest
	if i := strings.IndexAny(rest, " \t\r\n;|&<>()"); i >= 0 {
		end = rest[:i]
	}
	r.at = len(r.text) - len(rest) + len(end)
	r.pending = append(r.pending, strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(end))
}

// takeHere reads the texts that were announced on the line before.
func (r *reader) takeHere() {
	for _, end := range r.pending {
		var body []string
		for r.at < len(r.text) {
			line, _, _ := strings.Cut(r.text[r.at:], "\n")
			r.at = min(len(r.text), r.at+len(line)+1)
			if strings.TrimLeft(line, "\t") == end {
				break
			}
			body = append(body, line)
		}
		r.here = append(r.here, strings.Join(body, "\n"))
	}
	r.pending = nil
}
