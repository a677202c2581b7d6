package git

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// MaxDiff is the most of a diff in bytes that Diff returns.
const MaxDiff = 4 << 20

// MaxShow is the largest file in bytes that Show returns.
const MaxShow = 16 << 20

// diffArgs are exact and independent of configuration: a rename is a deletion
// and an addition.
var diffArgs = []string{
	"diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
	"--no-commit-id", "--end-of-options",
}

// Diff returns the unified diff between two trees or commits. Binary files are
// only named. A diff of more than MaxDiff bytes is cut at a line, and its last
// line says so.
func (r *Repo) Diff(ctx context.Context, from, to string) ([]byte, error) {
	out := &program.Bounded{Limit: MaxDiff}
	if err := r.diffTree(ctx, out, from, to, "-p", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"); err != nil {
		return nil, err
	}
	if !out.Cut {
		return out.Bytes(), nil
	}
	kept := out.Bytes()
	kept = kept[:bytes.LastIndexByte(kept, '\n')+1]
	return fmt.Appendf(kept, "[pawl: the diff is cut after %d bytes]\n", len(kept)), nil
}

// DiffStat counts changed files and added and removed lines between two trees
// or commits. Binary files count as files and have no lines.
func (r *Repo) DiffStat(ctx context.Context, from, to string) (files, added, removed int, err error) {
	out := &program.Bounded{Limit: program.MaxOutput}
	if err := r.diffTree(ctx, out, from, to, "--numstat", "-z"); err != nil {
		return 0, 0, 0, err
	}
	for record := range bytes.SplitSeq(out.Bytes(), []byte{0}) {
		f := bytes.SplitN(record, []byte{'\t'}, 3)
		if len(f) != 3 {
			continue
		}
		files++
		added += lineCount(f[0])
		removed += lineCount(f[1])
	}
	return files, added, removed, nil
}

// lineCount reads a number of lines; a binary file has "-".
func lineCount(text []byte) int {
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0
	}
	return n
}

func (r *Repo) diffTree(ctx context.Context, out *program.Bounded, from, to string, flags ...string) error {
	for _, id := range []string{from, to} {
		if err := r.Format.Check(id); err != nil {
			return fmt.Errorf("diff: %w", err)
		}
	}
	args := append([]string{diffArgs[0]}, flags...)
	args = append(append(args, diffArgs[1:]...), from, to, "--")
	if err := r.git.Pipe(ctx, nil, out, args...); err != nil {
		return fmt.Errorf("diff %s %s: %w", from, to, err)
	}
	return nil
}

// Show returns the content of one file of a revision: a full object name, HEAD
// or a full ref name. A path that is not a file there is loop.ErrNotFound.
func (r *Repo) Show(ctx context.Context, rev, path string) ([]byte, error) {
	if rev != "HEAD" && r.Format.Check(rev) != nil {
		if err := CheckRef(rev); err != nil {
			return nil, fmt.Errorf("show %s: %w", path, err)
		}
	}
	if err := object.CheckPath(path); err != nil {
		return nil, fmt.Errorf("show file: %w", err)
	}
	out := &program.Bounded{Limit: MaxShow + 256}
	ask := strings.NewReader(rev + ":" + path + "\x00")
	if err := r.git.Pipe(ctx, ask, out, "cat-file", "--batch", "-z"); err != nil {
		return nil, fmt.Errorf("show %s: %w", path, err)
	}
	return parseBlob(rev, path, out.Bytes())
}

// parseBlob takes the content out of "id blob size\ncontent\n".
func parseBlob(rev, path string, out []byte) ([]byte, error) {
	head, body, _ := bytes.Cut(out, []byte{'\n'})
	f := bytes.Fields(head)
	if len(f) != 3 || string(f[1]) != "blob" {
		return nil, fmt.Errorf("show %s in %s: %w", path, rev, loop.ErrNotFound)
	}
	size, err := strconv.Atoi(string(f[2]))
	if err != nil || size > MaxShow || len(body) < size {
		return nil, fmt.Errorf("show %s in %s: %s bytes are more than %d", path, rev, f[2], MaxShow)
	}
	return body[:size], nil
}
