package registration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/surface/mcp/registration"
)

// people write JSON in many ways: this draws a value, and a way to write it.
type writer struct{ rt *rapid.T }

func (w writer) gap() string {
	return rapid.SampledFrom([]string{"", " ", "\n", "\t", "\r\n", " // {,}\n", " /* \" */ ", "\n\n    "}).Draw(w.rt, "gap")
}

func (w writer) value(depth int) (text string, plain any) {
	kind := rapid.IntRange(0, 5).Draw(w.rt, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		s := rapid.SampledFrom([]string{"", "a", "//", "/* {", `"\`, "ö,]", "pawl", "}"}).Draw(w.rt, "text")
		data, _ := json.Marshal(s)
		return string(data), s
	case 1:
		return "-1.5e3", -1500.0
	case 2:
		return "true", true
	case 3:
		return "null", nil
	case 4:
		var items []string
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(w.rt, "items") {
			item, p := w.value(depth - 1)
			items, list = append(items, w.gap()+item+w.gap()), append(list, p)
		}
		return "[" + w.joined(items) + "]", list
	}
	return w.object(depth, []string{"a", "b", "x y", "//", "args"}, nil)
}

func (w writer) joined(parts []string) string {
	text := strings.Join(parts, ",")
	if len(parts) > 0 && rapid.Bool().Draw(w.rt, "comma after the last") {
		text += "," + w.gap()
	}
	if len(parts) == 0 {
		text += w.gap()
	}
	return text
}

// object draws an object with some of the names, and with the members given.
func (w writer) object(depth int, names []string, also map[string]func() (string, any)) (string, any) {
	var parts []string
	object := map[string]any{}
	for _, name := range rapid.Permutation(append(names[:len(names):len(names)], keys(also)...)).Draw(w.rt, "names") {
		var text string
		var plain any
		if draw := also[name]; draw != nil {
			text, plain = draw()
		} else if rapid.Bool().Draw(w.rt, "has "+name) {
			text, plain = w.value(depth - 1)
		} else {
			continue
		}
		quoted, _ := json.Marshal(name)
		parts, object[name] = append(parts, w.gap()+string(quoted)+w.gap()+":"+w.gap()+text+w.gap()), plain
	}
	return "{" + w.joined(parts) + "}", object
}

func keys(m map[string]func() (string, any)) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	if len(names) > 1 {
		panic("their order is drawn")
	}
	return names
}

// withoutComments reads what people write in another way than the package: it
// drops comments and commas from the text, string by string.
func withoutComments(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		switch {
		case text[i] == '"':
			end := i + 1
			for text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			out.WriteString(text[i : end+1])
			i = end + 1
		case strings.HasPrefix(text[i:], "//"):
			i += strings.IndexByte(text[i:]+"\n", '\n')
		case strings.HasPrefix(text[i:], "/*"):
			i += strings.Index(text[i:], "*/") + 2
		default:
			if text[i] == '}' || text[i] == ']' {
				soFar := strings.TrimRight(out.String(), " \t\r\n")
				out.Reset()
				out.WriteString(strings.TrimSuffix(soFar, ","))
			}
			out.WriteByte(text[i])
			i++
		}
	}
	return out.String()
}

func TestOnlyTheEntryOfPawlIsAddedToAnyFile(t *testing.T) {
	dir := t.TempDir()
	m := machine(t)
	m.Home = dir
	file := filepath.Join(dir, ".claude.json")
	rapid.Check(t, func(rt *rapid.T) {
		w := writer{rt}
		var also map[string]func() (string, any)
		if rapid.Bool().Draw(rt, "has servers") {
			also = map[string]func() (string, any){"mcpServers": func() (string, any) { return w.object(2, []string{"x", "y", ""}, nil) }}
		}
		text, plain := w.object(3, []string{"a", "projects", "//", ""}, also)
		text = w.gap() + text + w.gap()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			rt.Fatal(err)
		}
		c, err := m.Plan("claude", program)
		if err != nil {
			rt.Fatalf("%q: %v", text, err)
		}
		if err := c.Write(); err != nil {
			rt.Fatal(err)
		}
		after, err := os.ReadFile(file)
		if err != nil {
			rt.Fatal(err)
		}

		want := plain.(map[string]any)
		servers, _ := want["mcpServers"].(map[string]any)
		if servers == nil {
			servers = map[string]any{}
		}
		servers["pawl"] = map[string]any{"type": "stdio", "command": program, "args": []any{"mcp"}}
		want["mcpServers"] = servers
		var got any
		if err := json.Unmarshal([]byte(withoutComments(string(after))), &got); err != nil || !reflect.DeepEqual(got, any(want)) {
			rt.Fatalf("%q became %q, which is %v (%v), want %v", text, after, got, err, want)
		}
		// Nothing that was there is gone, and it is in the same order.
		rest := strings.Join(strings.Fields(string(after)), "")
		for _, r := range strings.Join(strings.Fields(text), "") {
			_, behind, found := strings.Cut(rest, string(r))
			if !found {
				rt.Fatalf("%q became %q, which has lost a %q", text, after, r)
			}
			rest = behind
		}
		if again, err := m.Plan("claude", program); err != nil || again.State != registration.StateSame {
			rt.Fatalf("%q, the second time: %s (%v)", after, again.State, err)
		}
	})
}

func FuzzEnterJSON(f *testing.F) {
	for _, c := range changes {
		f.Add(c.before)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := machine(t)
		write(t, filepath.Join(m.Home, ".config/Code/User/mcp.json"), text)
		c, err := m.Plan("vscode", program)
		if err != nil {
			return
		}
		if err := c.Write(); err != nil {
			t.Fatal(err)
		}
		again, err := m.Plan("vscode", program)
		if err != nil || again.State != registration.StateSame {
			t.Errorf("%q became %q; the second time: %s (%v)", text, read(t, c.File), again.State, err)
		}
	})
}
