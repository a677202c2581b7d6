package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
)

// touch is one path that differs between two commits. An empty id means that
// the path is not there.
type touch struct {
	path     string
	old, now object.Entry
}

// touched lists what differs between two trees or commits, sorted by path.
func (r *Repo) touched(ctx context.Context, from, to string) ([]touch, error) {
	for _, id := range []string{from, to} {
		if err := r.Format.Check(id); err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
		}
	}
	out, err := r.git.Output(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id", from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var touches []touch
	for ; len(fields) > 1; fields = fields[2:] {
		t, err := r.parseTouch(fields[0], fields[1])
		if err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
		}
		touches = append(touches, t)
	}
	return touches, nil
}

// parseTouch reads ":oldmode newmode oldid newid status" and refuses a path
// that no checkout may hold.
func (r *Repo) parseTouch(meta, path string) (touch, error) {
	f := strings.Fields(strings.TrimPrefix(meta, ":"))
	if len(f) != 5 {
		return touch{}, fmt.Errorf("unexpected record %q", meta)
	}
	t := touch{path: path}
	for i, side := range []*object.Entry{&t.old, &t.now} {
		mode, err := strconv.ParseUint(f[i], 8, 32)
		if err != nil || r.Format.Check(f[2+i]) != nil {
			return touch{}, fmt.Errorf("unexpected record %q", meta)
		}
		if mode != 0 {
			*side = object.Entry{Path: path, Mode: object.PlainMode(uint32(mode)), ID: f[2+i]}
		}
	}
	return t, object.CheckPath(path)
}
