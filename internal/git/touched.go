package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
)

// changedPath is one path that differs between two commits. An empty id means that
// the path is not there.
type changedPath struct {
	path     string
	old, now object.Entry
}

// changedPaths lists what differs between two trees or commits, sorted by path. A
// path that no checkout may hold is an error.
func (r *Repo) changedPaths(ctx context.Context, from, to string) ([]changedPath, error) {
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
	var changed []changedPath
	for ; len(fields) > 1; fields = fields[2:] {
		// ":oldmode newmode oldid newid status" and the path
		f := strings.Fields(strings.TrimPrefix(fields[0], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("compare %s with %s: unexpected record %q", from, to, fields[0])
		}
		c := changedPath{path: fields[1]}
		for i, side := range []*object.Entry{&c.old, &c.now} {
			mode, err := strconv.ParseUint(f[i], 8, 32)
			if err != nil || r.Format.Check(f[2+i]) != nil {
				return nil, fmt.Errorf("compare %s with %s: unexpected record %q", from, to, fields[0])
			}
			if mode != 0 {
				*side = object.Entry{Path: c.path, Mode: object.PlainMode(uint32(mode)), ID: f[2+i]}
			}
		}
		if err := object.CheckPath(c.path); err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
		}
		changed = append(changed, c)
	}
	return changed, nil
}
