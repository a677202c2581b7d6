package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/policy"
)

const (
	mostLines   = 1000
	longestLine = 2000
	mostNames   = 500
	// largestEdit is the largest file that can be edited, in bytes.
	largestEdit = 8 << 20
)

type readInput struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

type listInput struct {
	Path string `json:"path"`
}

type editInput struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// inside is a path relative to the tree, with forward slashes. It is false for
// one that lies outside by its name.
func (p *place) inside(name string) (string, bool) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(p.dir, name)
		if err != nil {
			return "", false
		}
		name = rel
	}
	name = filepath.Clean(name)
	return filepath.ToSlash(name), filepath.IsLocal(name)
}

// open opens a file or a folder to read: below the tree as it is, anywhere else
// with leave for the place that it really lies at.
func (p *place) open(id, tool, name string) (*os.File, error) {
	if rel, ok := p.inside(name); ok {
		// Stat first: to open a pipe would wait for a writer.
		if info, err := p.root.Stat(rel); err == nil && (info.Mode().IsRegular() || info.IsDir()) {
			return p.root.Open(rel)
		} else if err == nil {
			return nil, fmt.Errorf("read %s: it is neither a file nor a folder", name)
		} else if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read %s: there is no such file", name)
		}
	}
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(p.dir, name)
	}
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		real = full
	}
	if err := p.may(id, policy.Call{Kind: policy.CallRead, Tool: tool, Paths: []string{real}}); err != nil {
		return nil, err
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("read %s: it is neither a file nor a folder", name)
	}
	return os.Open(real)
}

func read(_ context.Context, p *place, id string, in readInput) (string, error) {
	f, err := p.open(id, "read", in.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return "", fmt.Errorf("read %s: it is a folder, use list", in.Path)
	}
	first, limit := max(in.Offset, 1), in.Limit
	if limit <= 0 || limit > mostLines {
		limit = mostLines
	}
	var out strings.Builder
	lines := bufio.NewReader(f)
	for n := 1; out.Len() <= mostOutput; n++ {
		text, err := lineOf(lines)
		if errors.Is(err, io.EOF) {
			return whole(out.String(), in.Path, n-1), nil
		}
		switch {
		case err != nil:
			return "", fmt.Errorf("read %s: %w", in.Path, err)
		case strings.ContainsRune(text, 0):
			return "", fmt.Errorf("read %s: it is not text", in.Path)
		case n >= first+limit:
			fmt.Fprintf(&out, "[there is more: go on at offset %d]\n", n)
			return out.String(), nil
		case n >= first:
			fmt.Fprintf(&out, "%d\t%s\n", n, text)
		}
	}
	return out.String() + "[there is more: use offset and limit]\n", nil
}

// whole is what was read, or words that say that there was nothing.
func whole(text, name string, lines int) string {
	if text == "" {
		return fmt.Sprintf("%s has %d lines, and none of them is among those asked for", name, lines)
	}
	return text
}

// lineOf reads a line, without what is too much of it. The error is io.EOF if
// there is none.
func lineOf(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		b.Write(part[:min(len(part), max(0, longestLine-b.Len()))])
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil || errors.Is(err, io.EOF) && b.Len() > 0:
			return strings.ToValidUTF8(strings.TrimRight(b.String(), "\r\n"), "\uFFFD"), nil
		}
		return "", err
	}
}

func list(_ context.Context, p *place, id string, in listInput) (string, error) {
	f, err := p.open(id, "list", in.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(mostNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("list %s: %w", in.Path, err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return listing(names), nil
}

// target is a path that may be changed, as a policy is to see it.
func (p *place) target(id, tool, name string) (string, error) {
	rel, ok := p.inside(name)
	if !ok || rel == "." {
		return "", fmt.Errorf("%s %s: it is not in the tree; only files below %s can be changed", tool, name, p.dir)
	}
	// The policy judges the name; a link could make it mean another file.
	for dir := rel; dir != "."; dir = path.Dir(dir) {
		if info, err := p.root.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s %s: %s is a link; name the file that it leads to", tool, name, dir)
		}
	}
	return rel, p.may(id, policy.Call{Kind: policy.CallEdit, Tool: tool, Paths: []string{rel}})
}

func edit(_ context.Context, p *place, id string, in editInput) (string, error) {
	if in.Old == "" || in.Old == in.New {
		return "", fmt.Errorf("edit %s: the old text is empty, or the same as the new one", in.Path)
	}
	rel, err := p.target(id, "edit", in.Path)
	if err != nil {
		return "", err
	}
	info, err := p.root.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestEdit {
		return "", fmt.Errorf("edit %s: there is no such file, or it is too large", in.Path)
	}
	text, err := p.root.ReadFile(rel)
	if err != nil {
		return "", fmt.Errorf("edit %s: %w", in.Path, err)
	}
	switch n := strings.Count(string(text), in.Old); n {
	case 0:
		return "", fmt.Errorf("edit %s: the old text does not occur in it; read it again", in.Path)
	case 1:
	default:
		return "", fmt.Errorf("edit %s: the old text occurs %d times; take more lines around it", in.Path, n)
	}
	changed := strings.Replace(string(text), in.Old, in.New, 1)
	if err := p.root.WriteFile(rel, []byte(changed), info.Mode().Perm()); err != nil {
		return "", fmt.Errorf("edit %s: %w", in.Path, err)
	}
	return "edited " + rel, nil
}

func write(_ context.Context, p *place, id string, in writeInput) (string, error) {
	rel, err := p.target(id, "write", in.Path)
	if err != nil {
		return "", err
	}
	if info, err := p.root.Lstat(rel); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("write %s: it is there, and no file", in.Path)
	}
	if err := p.root.MkdirAll(path.Dir(rel), 0o777); err != nil {
		return "", fmt.Errorf("write %s: %w", in.Path, err)
	}
	if err := p.root.WriteFile(rel, []byte(in.Content), 0o666); err != nil {
		return "", fmt.Errorf("write %s: %w", in.Path, err)
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(in.Content), rel), nil
}
