package git

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/pawl-run/pawl/internal/git/object"
)

// List returns all files of a tree or commit, in git's order.
func (r *Repo) List(ctx context.Context, tree string) ([]object.Entry, error) {
	if err := r.Format.Check(tree); err != nil {
		return nil, err
	}
	out, err := r.git.Output(ctx, nil, "ls-tree", "-r", "-z", "-l", "--full-tree", tree)
	if err != nil {
		return nil, fmt.Errorf("list tree %s: %w", tree, err)
	}
	entries := make([]object.Entry, 0, bytes.Count(out, []byte{0}))
	for record := range bytes.SplitSeq(out, []byte{0}) {
		if len(record) == 0 {
			continue
		}
		e, err := parseEntry(record)
		if err != nil {
			return nil, fmt.Errorf("list tree %s: %w", tree, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// parseEntry reads "mode type id size\tpath".
func parseEntry(record []byte) (object.Entry, error) {
	meta, path, ok := bytes.Cut(record, []byte{'\t'})
	f := bytes.Fields(meta)
	if !ok || len(f) != 4 {
		return object.Entry{}, fmt.Errorf("unexpected record %q", record)
	}
	mode, err := strconv.ParseUint(string(f[0]), 8, 32)
	if err != nil {
		return object.Entry{}, fmt.Errorf("mode of %q: %w", path, err)
	}
	e := object.Entry{Path: string(path), Mode: uint32(mode), ID: string(f[2])}
	if mode == object.ModeGitlink {
		return e, nil
	}
	if e.Size, err = strconv.ParseInt(string(f[3]), 10, 64); err != nil {
		return object.Entry{}, fmt.Errorf("size of %q: %w", path, err)
	}
	return e, nil
}
