package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/pawl-run/pawl/internal/loop"
)

// list is the shape of every listing in JSON.
type list struct {
	Data any      `json:"data"`
	Meta listMeta `json:"meta"`
}

type listMeta struct {
	Schema string `json:"schema"`
	Count  int    `json:"count"`
}

func listOf[T any](schema string, data []T) list {
	if data == nil {
		data = []T{}
	}
	return list{Data: data, Meta: listMeta{schema, len(data)}}
}

// printJSON prints one value, or what the jq expression makes of it.
func (a *app) printJSON(value any) error {
	if a.jq != "" {
		return a.filter(value)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if a.Terminal {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := a.Out.Write(inert(b.Bytes()))
	return err
}

// inert writes in hexadecimal what a terminal would obey and what JSON lets
// stand in texts. The value stays the same.
func inert(body []byte) []byte {
	var b bytes.Buffer
	for i, r := range string(body) {
		if r != '\n' && obeyed(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		_, size := utf8.DecodeRune(body[i:])
		b.Write(body[i : i+size])
	}
	return b.Bytes()
}

func (a *app) filter(value any) error {
	query, err := gojq.Parse(a.jq)
	if err != nil {
		return jqFault(a.jq, err)
	}
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var input any
	if err := json.Unmarshal(body, &input); err != nil {
		return err
	}
	results := query.Run(input)
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, failed := v.(error); failed {
			return jqFault(a.jq, err)
		}
		if err := a.printResult(v); err != nil {
			return err
		}
	}
}

// printResult prints texts without quotes, as scripts want them.
func (a *app) printResult(v any) error {
	if s, ok := v.(string); ok {
		_, err := fmt.Fprintln(a.Out, clean(s))
		return err
	}
	body, err := gojq.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(inert(body), '\n'))
	return err
}

func jqFault(expression string, err error) error {
	return &loop.Fault{
		Exit: loop.ExitUsage, What: "invalid --jq " + quote(expression), Why: err.Error(), Err: err,
		Fix: "test it on the output of --json",
	}
}

// style decorates text. The zero style leaves it as it is.
type style struct{ on bool }

func (a *app) style() style { return style{a.colored()} }

func (s style) bold(text string) string   { return s.with("1", text) }
func (s style) dim(text string) string    { return s.with("2", text) }
func (s style) red(text string) string    { return s.with("31", text) }
func (s style) green(text string) string  { return s.with("32", text) }
func (s style) yellow(text string) string { return s.with("33", text) }

func (s style) with(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// outcome is a mark, so that no state is told by colour alone, and the word.
func (s style) outcome(o loop.Outcome) string {
	switch {
	case o == "":
		return ""
	case o == loop.OutcomeQuiet:
		return "– " + string(o)
	case o.Success():
		return s.green("✓ " + string(o))
	case o.Meaning().Exit == loop.ExitWaiting, o == loop.OutcomePaused:
		return s.yellow("! " + string(o))
	}
	return s.red("✗ " + string(o))
}

// visible is the width of a text that may carry our own decorations.
func visible(text string) int { return utf8.RuneCountInString(clean(text)) }

// printer writes lines and remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// said is a field with the words of an agent or the output of a program. A bar
// stands before each line, as in the log, so that none is taken for pawl's own.
func (p *printer) said(by, label, text string) {
	if strings.TrimSpace(text) != "" {
		p.field(by, label, quoted(text))
	}
}

// quoted puts a bar before each line of a text.
func quoted(text string) string {
	return "| " + strings.ReplaceAll(strings.TrimRight(clean(text), "\n"), "\n", "\n| ")
}

// quotedBelow puts a bar before each line but the first, which is pawl's own.
func quotedBelow(text string) string {
	return strings.ReplaceAll(strings.TrimRight(clean(text), "\n"), "\n", "\n| ")
}

// detailed is the detail of a run's end.
func (p *printer) detailed(label string, reason loop.Reason, detail string) {
	if reason.OfAgent() {
		p.said("  ", label, detail)
		return
	}
	p.field("  ", label, quotedBelow(detail))
}

// fedBack is what was gathered about an attempt. Of one that passed, and of one
// that its agent gave up, it is what the agent said.
func fedBack(verdict loop.Verdict, reason loop.Reason, text string) string {
	if text == "" || verdict != loop.VerdictPass && !reason.OfAgent() {
		return quotedBelow(text)
	}
	if text = quoted(text); strings.Contains(text, "\n") {
		return "the agent says\n" + text
	}
	return text
}

// field is a label with a text under which further lines are aligned; nothing
// for an empty text.
func (p *printer) field(by, label, text string) {
	if strings.TrimSpace(text) != "" {
		p.line("%s%-9s %s", by, label, indented(text, by+strings.Repeat(" ", 10)))
	}
}
