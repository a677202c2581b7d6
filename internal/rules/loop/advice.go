package loop

import (
	"strconv"
	"strings"
)

// Command is a command of pawl or of the host, as data: a terminal prints it, a
// dashboard draws a button, an agent calls the verb. The zero Command is invalid.
type Command struct {
	Program string   `json:"program,omitempty"` // a program of the host; empty: pawl
	Verb    string   `json:"verb,omitempty"`    // the command of pawl, like "recover prune"
	Args    []string `json:"args,omitempty"`    // for a program of the host, everything after its name
	Flags   []Flag   `json:"flags,omitempty"`
	Blanks  []string `json:"blanks,omitempty"` // those of the values above that the person chooses
}

// Flag is one option of a verb. Without a value it is switched on.
type Flag struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// PawlCommand returns a command of pawl with its arguments.
func PawlCommand(verb string, args ...string) Command { return Command{Verb: verb, Args: args} }

// HostCommand returns a command of another program.
func HostCommand(program string, args ...string) Command {
	return Command{Program: program, Args: args}
}

// WithFlag adds a flag, with at most one value.
func (c Command) WithFlag(flag string, value ...string) Command {
	c.Flags = append(c.Flags[:len(c.Flags):len(c.Flags)], Flag{flag, strings.Join(value, " ")})
	return c
}

// WithBlanks says which arguments and values are placeholders that the person fills in.
func (c Command) WithBlanks(names ...string) Command {
	c.Blanks = append(c.Blanks[:len(c.Blanks):len(c.Blanks)], names...)
	return c
}

// String is the command as it is typed into a shell.
func (c Command) String() string {
	words := []string{"pawl"}
	if c.Program != "" {
		words = []string{c.quote(c.Program)}
	}
	if c.Verb != "" {
		words = append(words, c.Verb)
	}
	var flags, args []string
	for _, f := range c.Flags {
		switch {
		case f.Value == "":
			flags = append(flags, "--"+f.Name)
		case strings.HasPrefix(f.Value, "-"):
			flags = append(flags, "--"+f.Name+"="+c.quote(f.Value))
		default:
			flags = append(flags, "--"+f.Name, c.quote(f.Value))
		}
	}
	dashed := false
	for _, arg := range c.Args {
		args = append(args, c.quote(arg))
		dashed = dashed || strings.HasPrefix(arg, "-")
	}
	if dashed && c.Program == "" { // After a lone -- nothing is a flag.
		words = append(append(words, flags...), "--")
		return strings.Join(append(words, args...), " ")
	}
	return strings.Join(append(append(words, args...), flags...), " ")
}

// quote quotes a text for the shell. A placeholder of several words is in double
// quotes.
func (c Command) quote(text string) string {
	for _, blank := range c.Blanks {
		if text == blank && strings.Contains(text, " ") {
			return `"` + text + `"`
		}
	}
	return QuoteWord(text)
}

// QuoteWord quotes a text if necessary, so that a shell reads it as one word.
func QuoteWord(text string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:@%+=,#", r)
	}
	if text != "" && text[0] != '#' && text[0] != '=' && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Advice is a sentence about what a person can do, in which {1}, {2} and so on are
// the places of its commands. The zero Advice is empty.
type Advice struct {
	Text    string
	Actions []Command
}

// Advise returns an Advice. Without commands the text is printed as it is.
func Advise(text string, actions ...Command) Advice { return Advice{text, actions} }

// Render replaces each place by its command, as show writes it. A command is alone
// after a colon or on a line of its own; any other is inside a sentence.
func (a Advice) Render(show func(c Command, alone bool) string) string {
	if len(a.Actions) == 0 {
		return a.Text
	}
	var b strings.Builder
	rest := a.Text
	for {
		before, at, after, found := nextPlace(rest, len(a.Actions))
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text := b.String()
		starts := text == "" || strings.HasSuffix(text, "\n")
		ends := after == "" || strings.HasPrefix(after, "\n")
		b.WriteString(show(a.Actions[at], strings.HasSuffix(text, ": ") || strings.HasSuffix(text, " && ") || starts && ends))
		rest = after
	}
}

// nextPlace cuts a text around the first place of one of n commands.
func nextPlace(text string, n int) (before string, at int, after string, found bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		number, after, closed := strings.Cut(text[i+1:], "}")
		if k, err := strconv.Atoi(number); closed && err == nil && 1 <= k && k <= n {
			return text[:i], k - 1, after, true
		}
	}
	return text, 0, "", false
}

// String is the advice for somebody with a shell.
func (a Advice) String() string {
	return a.Render(func(c Command, alone bool) string {
		if alone {
			return c.String()
		}
		return "`" + c.String() + "`"
	})
}

// Then joins two advices with sep between them. If one is empty, the other is
// returned as it is.
func (a Advice) Then(sep string, next Advice) Advice {
	if a.Text == "" {
		return next
	}
	if next.Text == "" {
		return a
	}
	var b strings.Builder
	rest := next.Text
	for {
		before, at, after, found := nextPlace(rest, len(next.Actions))
		b.WriteString(before)
		if !found {
			break
		}
		b.WriteString("{" + strconv.Itoa(len(a.Actions)+at+1) + "}")
		rest = after
	}
	return Advice{a.Text + sep + b.String(), append(a.Actions[:len(a.Actions):len(a.Actions)], next.Actions...)}
}
