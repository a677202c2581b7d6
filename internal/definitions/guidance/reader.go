package guidance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// reader reads files of one commit, one after the other.
type reader struct {
	blobs  *object.Blobs
	commit string

	entries map[string]object.Entry // files by path, of the folders that were listed
	lookups int

	files []File
	seen  map[string]bool   // paths that were read
	same  map[string]string // path by its content or blob, of the files that are given
	total int               // bytes that are given
}

// takeFile adds a file, and then the files that it imports. hops is the number of
// imports that led to it.
func (r *reader) takeFile(name string, hops int) error {
	if r.seen[name] {
		return nil
	}
	r.seen[name] = true
	f, imported, err := r.readFile(name, hops)
	if err != nil {
		return err
	}
	r.files = append(r.files, f)
	for _, next := range imported {
		if err := r.takeFile(next, hops+1); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a file, and returns which files it imports.
func (r *reader) readFile(name string, hops int) (f File, imported []string, err error) {
	e, note, err := r.followLinks(r.entries[name])
	f = File{Path: name, Blob: e.ID, Note: note}
	switch {
	case err != nil || note != "":
		return f, nil, err
	case len(r.files) >= maxFiles:
		f.Note = fmt.Sprintf("left out: %d files are the most", maxFiles)
		return f, nil, nil
	case r.same[e.ID] != "":
		f.Note = "the same as " + r.same[e.ID]
		return f, nil, nil
	}
	content, size, err := r.readContent(e.ID)
	f.Bytes = size
	switch {
	case errors.Is(err, loop.ErrNotFound):
		f.Note = "left out: this clone does not have its content"
		return f, nil, nil
	case err != nil:
		return f, nil, err
	case bytes.IndexByte(content, 0) >= 0:
		f.Note = "left out: it is not text"
		return f, nil, nil
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(content), "\uFFFD"), "\uFFFD") // A character may be cut.
	text, imported, err = r.cutImports(name, text, hops)
	if err == nil {
		r.giveText(&f, e.ID, text)
	}
	return f, imported, err
}

// giveText sets as much of the text as the limits allow.
func (r *reader) giveText(f *File, id, text string) {
	text = strings.TrimSpace(text)
	if first := r.same[text]; first != "" {
		f.Note = "the same as " + first
		return
	}
	room := min(MaxFile, MaxTotal-r.total)
	cut := f.Bytes > MaxFile || len(text) > room
	switch {
	case text == "":
		f.Note = "it says nothing of its own"
		return
	case cut && room < leastPart:
		f.Note = fmt.Sprintf("left out: %d bytes are the most for all files", MaxTotal)
		return
	case cut:
		text = strings.ToValidUTF8(text[:min(len(text), room)], "")
		f.Note = fmt.Sprintf("cut: the first %d of %d bytes are given", len(text), f.Bytes)
	}
	f.Text, f.Given = text, len(text)
	r.total += len(text)
	r.same[id], r.same[text] = f.Path, f.Path
}

// readContent reads the beginning of a blob, and its size.
func (r *reader) readContent(id string) (content []byte, size int64, err error) {
	err = r.blobs.Each([]string{id}, func(_ int, n int64, in io.Reader) (err error) {
		size = n
		content, err = io.ReadAll(io.LimitReader(in, MaxFile))
		return err
	})
	return content, size, err
}

// followLinks resolves symbolic links within the tree. If they lead to no file, the
// note says why.
func (r *reader) followLinks(e object.Entry) (_ object.Entry, note string, err error) {
	for range maxHops {
		if e.Mode != object.ModeSymlink {
			return e, "", nil
		}
		target, _, err := r.readContent(e.ID)
		if err != nil {
			return e, "", err
		}
		to, ok := resolveInside(path.Dir(e.Path), string(target))
		if !ok {
			return e, "left out: it is a link that leads out of the tree", nil
		}
		next, found, err := r.findEntry(to)
		if err != nil {
			return e, "", err
		}
		if !found {
			return e, "left out: it is a link to nothing", nil
		}
		e = next
	}
	return e, "left out: its links do not end", nil
}

// resolveInside returns the path that a reference in a file of dir leads to. It reports
// false if the path is outside of the tree.
func resolveInside(dir, ref string) (string, bool) {
	if path.IsAbs(ref) || strings.HasPrefix(ref, "~") {
		return "", false
	}
	to := path.Join(dir, ref)
	return to, to != ".." && !strings.HasPrefix(to, "../")
}

// findEntry finds a file by its path. It does not follow folders that are links.
func (r *reader) findEntry(name string) (object.Entry, bool, error) {
	e, ok := r.entries[name]
	if ok || r.lookups >= maxLookups {
		return e, ok, nil
	}
	r.lookups++
	list, _, err := r.blobs.Within(r.commit, maxFolders, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
	for _, e := range list {
		r.entries[e.Path] = e
	}
	e, ok = r.entries[name]
	return e, ok && e.Mode != object.ModeGitlink, err
}

// mention is @ and a path, at the beginning of a word.
var mention = lazyregexp.New(`(^|\s|\()@([^\s@()]+)`)

// cutImports finds the files that a text imports in the syntax of Claude Code: @ and a
// path relative to the file, not in code. It returns the text with these @ removed,
// because some programs replace @PATH by the file in the tree. Lines that only import a
// file are removed.
func (r *reader) cutImports(name, text string, hops int) (string, []string, error) {
	var imported []string
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if mark := strings.TrimSpace(line); strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~") {
			fenced = !fenced
		}
		if fenced || !strings.Contains(line, "@") {
			out.WriteString(line)
			continue
		}
		bare, found, err := r.cutLineImports(name, line)
		if err != nil {
			return "", nil, err
		}
		imported = append(imported, found...)
		if len(found) != 1 || strings.TrimSpace(line) != "@"+strings.TrimSpace(bare) {
			out.WriteString(bare)
		}
	}
	if hops >= maxHops {
		imported = nil
	}
	return out.String(), imported, nil
}

// cutLineImports is cutImports for one line that is not in a block of code.
func (r *reader) cutLineImports(name, line string) (string, []string, error) {
	var imported []string
	var out strings.Builder
	for i, part := range strings.Split(line, "`") { // Every second part is code.
		if i > 0 {
			out.WriteByte('`')
		}
		end := 0
		for _, m := range mention.FindAllStringSubmatchIndex(part, -1) {
			if i%2 == 1 {
				break
			}
			to, err := r.findImport(name, part[m[4]:m[5]])
			if err != nil {
				return "", nil, err
			}
			if to == "" {
				continue
			}
			imported = append(imported, to)
			out.WriteString(part[end : m[4]-1])
			end = m[4]
		}
		out.WriteString(part[end:])
	}
	return out.String(), imported, nil
}

// findImport returns the file of the tree that a reference means; empty if none.
func (r *reader) findImport(name, ref string) (string, error) {
	ref, _, _ = strings.Cut(ref, "#")
	for _, try := range []string{ref, strings.TrimRight(ref, ".,;:!?*_\"'")} {
		to, ok := resolveInside(path.Dir(name), try)
		if !ok || try == "" {
			continue
		}
		if _, found, err := r.findEntry(to); err != nil || found {
			return to, err
		}
	}
	return "", nil
}
