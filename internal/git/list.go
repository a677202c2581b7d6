package git

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

// Modes of tree entries.
const (
	ModeFile    = 0o100644
	ModeExec    = 0o100755
	ModeSymlink = 0o120000
	ModeGitlink = 0o160000
	modeTree    = 0o040000
)

// Entry is one file of a tree.
type Entry struct {
	Path string // slash separated, any bytes but NUL
	Mode uint32 // ModeFile, ModeExec, ModeSymlink or ModeGitlink; old trees hold 0100664
	ID   string // object name of the content; of a commit for ModeGitlink
	Size int64  // bytes; 0 for ModeGitlink
}

// List returns all files of a tree or commit, in git's order.
func (r *Repo) List(ctx context.Context, tree string) ([]Entry, error) {
	if err := r.checkID(tree); err != nil {
		return nil, err
	}
	out, err := r.git.Output(ctx, nil, "ls-tree", "-r", "-z", "-l", "--full-tree", tree)
	if err != nil {
		return nil, fmt.Errorf("list tree %s: %w", tree, err)
	}
	entries := make([]Entry, 0, bytes.Count(out, []byte{0}))
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
func parseEntry(record []byte) (Entry, error) {
	meta, path, ok := bytes.Cut(record, []byte{'\t'})
	f := bytes.Fields(meta)
	if !ok || len(f) != 4 {
		return Entry{}, fmt.Errorf("unexpected record %q", record)
	}
	mode, err := strconv.ParseUint(string(f[0]), 8, 32)
	if err != nil {
		return Entry{}, fmt.Errorf("mode of %q: %w", path, err)
	}
	e := Entry{Path: string(path), Mode: uint32(mode), ID: string(f[2])}
	if mode == ModeGitlink {
		return e, nil
	}
	if e.Size, err = strconv.ParseInt(string(f[3]), 10, 64); err != nil {
		return Entry{}, fmt.Errorf("size of %q: %w", path, err)
	}
	return e, nil
}
