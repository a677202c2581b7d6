package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/program"
)

// SnapshotPrefix begins the names of the refs that keep work which is on no
// branch.
const SnapshotPrefix = ownPrefix + "snapshots/"

// Snapshot is a commit that a ref below SnapshotPrefix keeps.
type Snapshot struct {
	Ref    string
	Commit string
	Parent string // what the work was done on; empty for a commit without one
	When   time.Time
	Files  int   // that differ from the parent
	Bytes  int64 // of their contents in the snapshot; 0 for what is missing in the repository
}

// Snapshots lists the snapshots of the repository, sorted by ref, with three
// processes however many there are. A ref that names no commit is left out.
func (r *Repo) Snapshots(ctx context.Context) ([]Snapshot, error) {
	out, err := r.git.Output(ctx, nil, "for-each-ref", "--format=%(objectname) %(objecttype) %(committerdate:unix) %(refname) %(parent)", SnapshotPrefix)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var list []Snapshot
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[1] != "commit" {
			continue
		}
		seconds, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("list snapshots: unexpected line %q", line)
		}
		s := Snapshot{Ref: f[3], Commit: f[0], When: time.Unix(seconds, 0).UTC()}
		if len(f) > 4 {
			s.Parent = f[4]
		}
		list = append(list, s)
	}
	return list, r.countChanges(ctx, list)
}

// countChanges fills in the files and bytes that each snapshot changed.
func (r *Repo) countChanges(ctx context.Context, list []Snapshot) error {
	if len(list) == 0 {
		return nil
	}
	asked := map[string]bool{}
	var commits strings.Builder
	for _, s := range list {
		if !asked[s.Commit] {
			asked[s.Commit] = true
			commits.WriteString(s.Commit + "\n")
		}
	}
	out, err := r.git.Output(ctx, strings.NewReader(commits.String()), "diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--no-ext-diff")
	if err != nil {
		return fmt.Errorf("measure snapshots: %w", err)
	}
	files, blobs := changedBlobs(out, asked)
	sizes, err := r.blobSizes(ctx, blobs)
	if err != nil {
		return fmt.Errorf("measure snapshots: %w", err)
	}
	for i, s := range list {
		list[i].Files = files[s.Commit]
		for _, id := range blobs[s.Commit] {
			list[i].Bytes += sizes[id]
		}
	}
	return nil
}

// changedBlobs reads what diff-tree says of many commits: the name of each,
// then a record and a path for each of its files.
func changedBlobs(out []byte, commits map[string]bool) (files map[string]int, blobs map[string][]string) {
	files, blobs = map[string]int{}, map[string][]string{}
	commit, record := "", false
	for field := range bytes.SplitSeq(out, []byte{0}) {
		text := string(field)
		switch {
		case record: // The path.
			record = false
		case commits[text]:
			commit = text
		case strings.HasPrefix(text, ":"):
			record = true
			files[commit]++
			if f := strings.Fields(text); len(f) == 5 && f[1] != "160000" && strings.Trim(f[3], "0") != "" {
				blobs[commit] = append(blobs[commit], f[3])
			}
		}
	}
	return files, blobs
}

func (r *Repo) blobSizes(ctx context.Context, blobs map[string][]string) (map[string]int64, error) {
	var ask strings.Builder
	sizes := map[string]int64{}
	for _, ids := range blobs {
		for _, id := range ids {
			if _, asked := sizes[id]; !asked {
				sizes[id] = 0
				ask.WriteString(id + "\n")
			}
		}
	}
	if len(sizes) == 0 {
		return sizes, nil
	}
	out, err := r.git.Output(ctx, strings.NewReader(ask.String()), "cat-file", "--batch-check=%(objectname) %(objectsize)")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		id, size, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(size, 10, 64); err == nil {
			sizes[id] = n
		}
	}
	return sizes, nil
}

// unknownOption is git's exit status for an option that it does not have.
const unknownOption = 129

// PackRefs moves pawl's own refs out of files of their own, so that many of
// them stay cheap to list. No ref changes its value. Git before 2.42 cannot
// pack some refs only and packs all of them, as `git gc` does.
func (r *Repo) PackRefs(ctx context.Context) error {
	_, err := r.git.Output(ctx, nil, "pack-refs", "--include", ownPrefix+"*")
	if e, ok := errors.AsType[*program.Error](err); ok && e.Exit == unknownOption {
		_, err = r.git.Output(ctx, nil, "pack-refs", "--all")
	}
	if err != nil {
		return fmt.Errorf("pack refs: %w", err)
	}
	return nil
}
