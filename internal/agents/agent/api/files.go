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

	"github.com/pawl-run/pawl/internal/rules/policy"
)

const (
	maxLines     = 1000
	maxLineBytes = 2000
	maxNames     = 500
	// maxEditBytes is the size of the largest file that can be edited.
	maxEditBytes = 8 << 20
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

// relative returns a path relative to the tree, with forward slashes. It returns
// false for a name outside of the tree.
func (p *place) relative(name string) (string, bool) {
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

// openToRead opens a file or a directory: inside of the tree without a question,
// elsewhere with permission for the path that it resolves to.
func (p *place) openToRead(id, tool, name string) (*os.File, error) {
	if rel, ok := p.relative(name); ok {
		// Stat first, since opening a pipe would wait for a writer.
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
	if err := p.askPermission(id, policy.Call{Kind: policy.CallRead, Tool: tool, Paths: []string{real}}); err != nil {
		return nil, err
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("read %s: it is neither a file nor a folder", name)
	}
	return os.Open(real)
}

func readTool(_ context.Context, p *place, id string, in readInput) (string, error) {
	f, err := p.openToRead(id, "read", in.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return "", fmt.Errorf("read %s: it is a folder, use list", in.Path)
	}
	first, limit := max(in.Offset, 1), in.Limit
	if limit <= 0 || limit > maxLines {
		limit = maxLines
	}
	var out strings.Builder
	lines := bufio.NewReader(f)
	for n := 1; out.Len() <= maxOutputBytes; n++ {
		text, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF) && out.Len() == 0:
			return fmt.Sprintf("%s has %d lines, and none of them is among those asked for", in.Path, n-1), nil
		case errors.Is(err, io.EOF):
			return out.String(), nil
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

// readLine reads a line and drops the part that is too long. The error is io.EOF
// at the end.
func readLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		b.Write(part[:min(len(part), max(0, maxLineBytes-b.Len()))])
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil || errors.Is(err, io.EOF) && b.Len() > 0:
			return strings.ToValidUTF8(strings.TrimRight(b.String(), "\r\n"), "\uFFFD"), nil
		}
		return "", err
	}
}

func listTool(_ context.Context, p *place, id string, in listInput) (string, error) {
	f, err := p.openToRead(id, "list", in.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(maxNames + 1)
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
	return formatNames(names), nil
}

// pathToChange returns the path of a file to change, in the form that a policy
// judges, if permission is given.
func (p *place) pathToChange(id, tool, name string) (string, error) {
	rel, ok := p.relative(name)
	if !ok || rel == "." {
		return "", fmt.Errorf("%s %s: it is not in the tree; only files below %s can be changed", tool, name, p.dir)
	}
	// The policy judges the name, and a link could make it mean another file.
	for dir := rel; dir != "."; dir = path.Dir(dir) {
		if info, err := p.root.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s %s: %s is a link; name the file that it leads to", tool, name, dir)
		}
	}
	return rel, p.askPermission(id, policy.Call{Kind: policy.CallEdit, Tool: tool, Paths: []string{rel}})
}

func editTool(_ context.Context, p *place, id string, in editInput) (string, error) {
	if in.Old == "" || in.Old == in.New {
		return "", fmt.Errorf("edit %s: the old text is empty, or the same as the new one", in.Path)
	}
	rel, err := p.pathToChange(id, "edit", in.Path)
	if err != nil {
		return "", err
	}
	info, err := p.root.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxEditBytes {
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

func writeTool(_ context.Context, p *place, id string, in writeInput) (string, error) {
	rel, err := p.pathToChange(id, "write", in.Path)
	if err != nil {
		return "", err
	}
	if info, err := p.root.Lstat(rel); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("write %s: it exists and is not a file", in.Path)
	}
	if err := p.root.MkdirAll(path.Dir(rel), 0o777); err != nil {
		return "", fmt.Errorf("write %s: %w", in.Path, err)
	}
	if err := p.root.WriteFile(rel, []byte(in.Content), 0o666); err != nil {
		return "", fmt.Errorf("write %s: %w", in.Path, err)
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(in.Content), rel), nil
}
