package judging

import (
	"maps"
	"path"
	"strings"
)

// expand expands the variables and functions of a text of a makefile.
func (m *makefile) expand(text string, auto map[string]string) string {
	return m.expandWithin(text, auto, 0)
}

func (m *makefile) expandWithin(text string, auto map[string]string, depth int) string {
	if depth > 30 || len(text) > maxText || m.outOfSteps(m.local.where) {
		return outside
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case '$':
			b.WriteByte('$')
		case '(', '{':
			end := closingBracket(text, i)
			b.WriteString(m.expandReference(text[i+1:end], auto, depth+1))
			i = end
		default:
			b.WriteString(m.expandReference(string(c), auto, depth+1))
		}
		if b.Len() > maxText {
			return outside
		}
	}
	return b.String()
}

// closingBracket is where the bracket at i ends, or the end of the text.
func closingBracket(text string, i int) int {
	opens, closes := text[i], byte(')')
	if opens == '{' {
		closes = '}'
	}
	level := 0
	for k := i; k < len(text); k++ {
		switch text[k] {
		case opens:
			level++
		case closes:
			if level--; level == 0 {
				return k
			}
		}
	}
	return len(text) - 1
}

// builtins are variables that make sets by itself.
var builtins = map[string]string{
	"MAKE": "make", "CURDIR": top, "SHELL": "/bin/sh", "MAKEFLAGS": "", "MAKECMDGOALS": "", "CC": "cc", "CXX": "c++", "AR": "ar", "RM": "rm -f", "LD": "ld", "AS": "as",
	".DEFAULT_GOAL": "", "MAKELEVEL": "", "empty": "", "space": " ",
}

// expandReference expands $(inner).
func (m *makefile) expandReference(inner string, auto map[string]string, depth int) string {
	if value, ok := auto[inner]; ok {
		return value
	}
	if name, rest, ok := strings.Cut(strings.Replace(inner, "\t", " ", 1), " "); ok {
		if value, known := m.callFunction(name, strings.TrimLeft(rest, " "), auto, depth); known {
			return value
		}
	}
	inner = m.expandWithin(inner, auto, depth)
	if name, change, ok := strings.Cut(inner, ":"); ok {
		from, to, _ := strings.Cut(change, "=")
		if !strings.Contains(from, "%") {
			from, to = "%"+from, "%"+to
		}
		return substitute(from, to, m.expandReference(name, auto, depth+1))
	}
	switch value, ok := m.given[inner]; {
	case ok:
		return value
	case inner == "CURDIR":
		return m.local.absolutePath(".")
	case inner == "MAKEFILE_LIST":
		return top + "/" + m.local.where
	}
	if value, ok := m.vars[inner]; ok {
		return m.expandWithin(value, auto, depth+1)
	}
	if value, ok := builtins[inner]; ok {
		return value
	}
	if len(inner) == 1 && strings.Contains("0123456789", inner) {
		return ""
	}
	return outside // Of the environment, or empty.
}

// substitute is patsubst. Of an unknown word only the new ending is known.
func substitute(from, to, text string) string {
	var words []string
	for w := range strings.FieldsSeq(text) {
		stem, ok := stemOf(from, w)
		switch {
		case partlyUnknown(w):
			_, end, _ := strings.Cut(to, "%")
			w = outside + "/" + "*" + end
			if strings.Trim(end, "*./") == "" {
				w = outside
			}
		case ok:
			w = strings.ReplaceAll(to, "%", stem)
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// callFunction returns the result of a function of make, as far as that is certain.
// It reports false if name is not a function.
func (m *makefile) callFunction(name, rest string, auto map[string]string, depth int) (string, bool) {
	expand := func(s string) string { return m.expandWithin(s, auto, depth) }
	args := splitArgs(rest)
	arg := func(i int) string {
		if i < len(args) {
			return expand(args[i])
		}
		return ""
	}
	each := func(text string, change func(string) string) string {
		words := strings.Fields(text)
		for i, w := range words {
			words[i] = change(w)
		}
		return strings.Join(words, " ")
	}
	switch name {
	case "shell":
		return m.runShell(expand(rest)), true
	case "wildcard", "strip", "sort", "info", "warning", "error", "realpath":
		return strings.Join(strings.Fields(expand(rest)), " "), true
	case "abspath":
		return each(expand(rest), func(w string) string {
			if strings.HasPrefix(w, top) || partlyUnknown(w) {
				return w
			}
			return m.local.absolutePath(w)
		}), true
	case "dir":
		return each(expand(rest), func(w string) string { return strings.TrimSuffix(path.Dir(w), "/") + "/" }), true
	case "notdir":
		return each(expand(rest), func(w string) string { return w[strings.LastIndexByte(w, '/')+1:] }), true
	case "basename":
		return each(expand(rest), func(w string) string { return strings.TrimSuffix(w, path.Ext(w)) }), true
	case "suffix":
		return each(expand(rest), path.Ext), true
	case "firstword", "lastword":
		words := strings.Fields(expand(rest))
		switch {
		case len(words) == 0:
			return "", true
		case name == "firstword":
			return words[0], true
		}
		return words[len(words)-1], true
	case "addprefix":
		head := arg(0)
		return each(arg(1), func(w string) string { return head + w }), true
	case "addsuffix":
		tail := arg(0)
		return each(arg(1), func(w string) string { return w + tail }), true
	case "patsubst":
		return substitute(arg(0), arg(1), arg(2)), true
	case "subst":
		if arg(0) == "" {
			return arg(2), true
		}
		return strings.ReplaceAll(arg(2), arg(0), arg(1)), true
	case "filter", "filter-out", "wordlist":
		return arg(len(args) - 1), true
	case "if":
		return strings.TrimSpace(arg(1) + " " + arg(2)), true
	case "or", "and":
		var all []string
		for i := range args {
			all = append(all, arg(i))
		}
		return strings.Join(all, " "), true
	case "foreach":
		if len(args) < 3 {
			return "", true
		}
		var all []string
		for w := range strings.FieldsSeq(arg(1)) {
			inner := map[string]string{strings.TrimSpace(arg(0)): w}
			for k, v := range auto {
				if _, ok := inner[k]; !ok {
					inner[k] = v
				}
			}
			all = append(all, m.expandWithin(args[2], inner, depth+1))
		}
		return strings.Join(all, " "), true
	case "call":
		inner := map[string]string{}
		maps.Copy(inner, auto)
		for i := range args {
			inner[string(rune('0'+min(i, 9)))] = arg(i)
		}
		return m.expandWithin(m.vars[strings.TrimSpace(arg(0))], inner, depth+1), true
	case "file":
		if from, ok := strings.CutPrefix(strings.TrimSpace(expand(rest)), "<"); ok {
			m.protectFiles(m.local.globs(strings.TrimSpace(from)))
		}
		return computed, true
	case "eval":
		for _, line := range logicalLines(expand(rest)) {
			m.readVariable(strings.TrimSpace(line))
		}
		return "", true
	case "word", "words", "origin", "flavor", "value", "join", "guile", "intcmp", "let":
		return outside, true
	}
	return "", false
}

// splitArgs splits the arguments of a function at the commas between them.
func splitArgs(text string) []string {
	var args []string
	level, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			level++
		case ')', '}':
			level--
		case ',':
			if level == 0 {
				args, from = append(args, text[from:i]), i+1
			}
		}
	}
	return append(args, text[from:])
}

// runShell follows a command that make runs while it reads, and returns its output,
// if that is certain.
func (m *makefile) runShell(line string) string {
	inner := *m.local
	inner.vars = map[string][]string{}
	m.followRecipeLine(&inner, line)
	return m.expander(&inner).printedBy(line)
}
