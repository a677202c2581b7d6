package registration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// enterTOML returns a document with a table for pawl at its end. It reports
// whether there was one.
func enterTOML(src []byte, table, program string) (changed []byte, had bool, err error) {
	before, err := parseTOML(src)
	if err != nil {
		return nil, false, err
	}
	servers, isTable := before[table].(map[string]any)
	if before[table] != nil && !isTable {
		return nil, false, fmt.Errorf("%s is not a table", table)
	}
	names := make([]any, len(forwarded))
	for i, name := range forwarded {
		names[i] = name
	}
	want := map[string]any{"command": program, "args": []any{subcommand}, "env_vars": names, "tool_timeout_sec": int64(longestCall / time.Second)}
	if has, ok := servers[entryName].(map[string]any); ok {
		if has["command"] == want["command"] && reflect.DeepEqual(has["args"], want["args"]) {
			return src, true, nil
		}
		return nil, true, errTaken
	}

	newline := newlineOf(src)
	var b bytes.Buffer
	b.Write(src)
	if len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
		b.WriteString(newline)
	}
	if len(bytes.TrimSpace(src)) > 0 {
		b.WriteString(newline)
	}
	b.WriteString(strings.Join([]string{
		"[" + table + "." + entryName + "]", "command = " + quoteTOML(program), `args = ["` + subcommand + `"]`,
		`env_vars = ["` + strings.Join(forwarded, `", "`) + `"]`, fmt.Sprintf("tool_timeout_sec = %d", want["tool_timeout_sec"]), "",
	}, newline))

	// Some ways to write a table cannot be added to from elsewhere.
	after, err := parseTOML(b.Bytes())
	expect := maps.Clone(before)
	expect[table] = maps.Clone(servers)
	if servers == nil {
		expect[table] = map[string]any{}
	}
	expect[table].(map[string]any)[entryName] = want
	if err != nil || !reflect.DeepEqual(after, expect) {
		return nil, false, fmt.Errorf("%s is written in a way that a table at the end does not add to", table)
	}
	return b.Bytes(), false, nil
}

// maxTOML bounds what is read: the parser takes its time with lists in lists.
const maxTOML = 1 << 20

func parseTOML(src []byte) (map[string]any, error) {
	if len(src) > maxTOML {
		return nil, fmt.Errorf("it has more than %d bytes", maxTOML)
	}
	doc := map[string]any{}
	err := toml.Unmarshal(src, &doc)
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := bad.Position()
		return nil, fmt.Errorf("%d:%d: not TOML: %w", line, column, bad)
	}
	return doc, err
}

// quoteTOML writes a basic string, whose escapes are those of JSON.
func quoteTOML(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

func newlineOf(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
