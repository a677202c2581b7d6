package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// WriteJSON prints one value, or what the jq expression makes of it. On a
// terminal it is indented. Characters that a terminal would act on are written
// as escapes, which does not change the value.
func (p *Printer) WriteJSON(value any) error {
	if p.JQ != "" {
		return p.writeFiltered(value)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if p.Terminal {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := p.Out.Write(escapeJSON(b.Bytes()))
	return err
}

// escapeJSON writes in hexadecimal what a terminal would act on and what JSON
// allows in strings.
func escapeJSON(body []byte) []byte {
	var b bytes.Buffer
	for i, r := range string(body) {
		if r != '\n' && controlsTerminal(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		_, size := utf8.DecodeRune(body[i:])
		b.Write(body[i : i+size])
	}
	return b.Bytes()
}

// writeFiltered prints each result of the jq expression on a line: strings
// without quotes, as scripts want them.
func (p *Printer) writeFiltered(value any) error {
	invalid := func(err error) error {
		return &loop.Fault{
			Exit: loop.ExitUsage, What: "invalid --jq " + strconv.Quote(Clean(p.JQ)), Why: err.Error(), Err: err,
			Fix: "test it on the output of --json",
		}
	}
	query, err := gojq.Parse(p.JQ)
	if err != nil {
		return invalid(err)
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
		result, ok := results.Next()
		if !ok {
			return nil
		}
		var line []byte
		switch v := result.(type) {
		case error:
			return invalid(v)
		case string:
			line = []byte(Clean(v))
		default:
			if body, err = gojq.Marshal(v); err != nil {
				return err
			}
			line = escapeJSON(body)
		}
		if _, err := p.Out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
}
