// Package orgdef makes the loops of an organisation's agents: it reads the front matter of
// agents/<id>/LOOP.md, or the block loop: of agents/<id>/MANIFEST.yaml, and completes it
// to the definition of a loop with what org.yaml or manifest.yaml says of the organisation.
//
// It reads these files at their fixed places and nothing else: neither the tasks of an
// agent nor IDENTITY.md or SOUL.md beside them. It writes nothing.
package orgdef

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Names of files and folders. Those of an agent are in its folder.
const (
	AgentsDir    = loop.AgentsDir
	OrgFile      = "org.yaml"
	TreeManifest = "manifest.yaml" // of the organisation
	LoopFile     = "LOOP.md"
	Manifest     = "MANIFEST.yaml" // of an agent
	PausedFile   = "PAUSED"
)

// SharedFiles are the files, relative to the workspace, that may change the definition of
// every agent: those of the organisation, and those with defaults.
var SharedFiles = []string{OrgFile, TreeManifest, AgentsDir + "/" + LoopFile, LoopFile}

// AgentFile returns the path of a file of an agent, relative to the workspace, with slashes.
func AgentFile(id, name string) string { return AgentsDir + "/" + id + "/" + name }

// source is a file as it was read.
type source struct {
	name string // relative to the workspace
	text []byte
}

// finding is one of the severity at a place of the file.
func (s source) finding(severity string, at readiness.Value, format string, args ...any) readiness.Finding {
	f := readiness.Finding{Kind: readiness.KindNote, Severity: severity, File: s.name, Line: max(at.Line, 1), Column: max(at.Column, 1), Message: fmt.Sprintf(format, args...)}
	if severity == readiness.SeverityError {
		f.Kind = readiness.KindOwn
	}
	return f
}

// readSource reads a file of the workspace at root. It refuses links and what is no
// regular file, also in place of the folders above, and text that is not UTF-8. The error
// is a *loop.Fault, and wraps loop.ErrNotFound if the file is missing.
func readSource(root, name string) (source, error) {
	s := source{name: name}
	at := root
	folders := strings.Split(name, "/")
	for _, folder := range folders[:len(folders)-1] {
		at = filepath.Join(at, folder)
		if info, err := os.Lstat(at); err == nil && !info.IsDir() {
			return s, unreadable(name, folder+" is not a folder, or a link to one", "put a folder there")
		}
	}
	text, err := definition.Read(filepath.Join(at, folders[len(folders)-1]))
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		f.What = name + " cannot be read"
		return s, f
	}
	switch {
	case err != nil:
		return s, err
	case len(text) > definition.MaxBytes:
		return s, unreadable(name, fmt.Sprintf("larger than %d bytes", definition.MaxBytes), "move long texts into files that it names")
	case !utf8.Valid(text):
		return s, unreadable(name, "it is not UTF-8", "save it as UTF-8")
	}
	s.text = text
	return s, nil
}

func unreadable(name, why, fix string) *loop.Fault {
	return &loop.Fault{Exit: loop.ExitUnreadable, What: name + " cannot be read", Why: why, Fix: fix}
}

// isMissing reports whether an error says only that a file is not there.
func isMissing(err error) bool {
	return errors.Is(err, loop.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// splitFrontMatter cuts the text between the first two lines of three dashes out of a file,
// with the first of them, so that lines keep their numbers.
func splitFrontMatter(text []byte) (head []byte, body string, ok bool) {
	rest := strings.TrimPrefix(string(text), "\ufeff")
	n := len(text) - len(rest)
	for line := range strings.Lines(rest) {
		dashes := strings.TrimRight(line, " \t\r\n") == "---"
		switch {
		case n <= len("\ufeff") && !dashes:
			return nil, "", false
		case n > len("\ufeff") && dashes:
			return text[:n], strings.TrimSpace(string(text[n+len(line):])), true
		}
		n += len(line)
	}
	return nil, "", false
}

// mapReader reads the keys of a mapping, and names those that nothing is done with.
type mapReader struct {
	src   source
	found *[]readiness.Finding
}

func (r mapReader) warn(at readiness.Value, format string, args ...any) {
	*r.found = append(*r.found, r.src.finding(readiness.SeverityWarning, at, format, args...))
}

func (r mapReader) refuse(at readiness.Value, format string, args ...any) {
	*r.found = append(*r.found, r.src.finding(readiness.SeverityError, at, format, args...))
}

// read calls the function of each key. Where is what messages put before a key.
func (r mapReader) read(n *definition.Node, where string, keys map[string]func(*definition.Node)) {
	if !n.Map {
		if n.Value.Text != "" || n.List {
			r.refuse(n.Value, "%s: expected keys and values", strings.TrimSuffix(where, "."))
		}
		return
	}
	lacking := slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool {
		return slices.ContainsFunc(n.Nodes, func(child *definition.Node) bool { return child.Key.Name == key })
	})
	for _, child := range n.Nodes {
		at := readiness.Value{Line: child.Key.Line, Column: child.Key.Column}
		name := strings.Trim(readiness.Quote(child.Key.Name), "'")
		use, known := keys[child.Key.Name]
		switch {
		case child.Key.Repeats > 0:
			r.refuse(at, "%s%s: line %d has the key already; remove one of them", where, name, child.Key.Repeats)
		case known:
			use(child)
		case readiness.IsFreeKey(child.Key.Name):
		case readiness.Misspelt(child.Key.Name, lacking) != "":
			meant := readiness.Misspelt(child.Key.Name, lacking)
			f := r.src.finding(readiness.SeverityError, at, "%s%s: unknown key; did you mean %s? Keys of your own begin with x-", where, name, meant)
			f.Meant = meant
			*r.found = append(*r.found, f)
		default:
			r.warn(at, "%s%s: this key is not used%s", where, name, didYouMean(child.Key.Name, keys))
		}
	}
}

func didYouMean[T any](name string, keys map[string]T) string {
	var names []string
	for key := range keys {
		names = append(names, key)
	}
	slices.Sort(names)
	if near := readiness.NearestName(name, names); near != "" && near != name {
		return "; did you mean " + near + "?"
	}
	return ""
}

// skip is for keys that describe a file and change nothing.
func skip(*definition.Node) {}

// text returns a scalar, and reports anything else.
func (r mapReader) text(n *definition.Node, where string) string {
	if n.Map || n.List {
		r.refuse(n.Value, "%s: expected one value, found a list or nested keys", where)
		return ""
	}
	return strings.TrimSpace(n.Value.Text)
}

// id returns an id that is written as such, or with the key agent or id.
func (r mapReader) id(n *definition.Node, where string) readiness.Value {
	v := n.Value
	if n.Map {
		v = readiness.Value{}
		set := func(child *definition.Node) { v = child.Value; v.Text = r.text(child, where+"."+child.Key.Name) }
		r.read(n, where+".", map[string]func(*definition.Node){"agent": set, "id": set, "name": skip, "role": skip, "title": skip})
		if v.Text == "" {
			r.refuse(n.Value, "%s: expected the id of an agent", where)
		}
		return v
	}
	v.Text = r.text(n, where)
	return v
}
