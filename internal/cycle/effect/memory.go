package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Kinds of effects of a protocol whose memory is on a branch.
const (
	KindMemoryCommit = "memory_commit" // the memory and the work of a run become one commit of the branch
	KindMemoryPush   = "memory_push"   // the branch goes to its remote
	KindMemoryPull   = "memory_pull"   // the branch takes in what its remote has
	KindBranchPush   = "branch_push"   // the branch goes to its remote up to one commit, which a person was shown
)

// Arguments of them, in addition to ArgBase (the branch) and ArgWhen. A commit has ArgOnto,
// ArgTree (empty: nothing but the memory changes) and ArgMessage, too, the others have
// ArgRemote, and that of a person's yes has ArgCommit.
const (
	ArgFiles    = "files"    // EncodeFiles of the memory, as the checkout has it
	ArgPaths    = "paths"    // JSON list; in a row instead of ArgFiles, which then has what is in the checkout when the commit is made
	ArgContract = "contract" // what the memory is valid by, for MemoryMerge
	ArgGated    = "gated"    // trees of merged work that the gates have passed, separated by spaces
	ArgAsks     = "asks"     // of a commit: "true" if a person is asked before it goes to ArgRemote
)

// ResultUnpushed is the key of the reason in the result of a push that has nowhere to go.
const ResultUnpushed = "unpushed"

// ResultWork is the key of the result of a push that has sent work of runs, and not their
// memory alone.
const ResultWork = "work"

// EncodeFiles and DecodeFiles write and read contents by path as an argument.
func EncodeFiles(files map[string]string) string {
	text, err := json.Marshal(files)
	if err != nil {
		panic("effect: strings do not marshal: " + err.Error())
	}
	return string(text)
}

// DecodeFiles is the opposite of EncodeFiles.
func DecodeFiles(arg string) (files map[string]string, err error) {
	if err = json.Unmarshal([]byte(arg), &files); err != nil {
		err = fmt.Errorf("read the files of an effect: %w", err)
	}
	return files, err
}

// MemoryMerge unites the memories of two commits that begin from base, by path; a path that
// is missing in one of them has no file there. The result is valid by the contract, or there is an error.
type MemoryMerge func(ctx context.Context, contract string, base, ours, theirs map[string]string) (map[string]string, error)

// UngatedError means that work of two sides was merged and the gates have not seen it. The
// effect is to be applied again with the tree among its ArgGated.
type UngatedError struct{ Commit, Tree string }

func (e *UngatedError) Error() string {
	return "work of two sides was merged as " + e.Commit + ", which no gate has judged"
}

// memory is what all kinds have in common.
type memory struct {
	repo  *git.Repo
	merge MemoryMerge
	sleep func(context.Context, time.Duration) error
}

// MemoryCommit puts the memory and the gated tree of a run on a branch, as one commit, by
// compare-and-swap, and updates the checkout if it has the branch. A branch that has moved
// meanwhile is merged with.
type MemoryCommit struct{ memory }

// NewMemoryCommit returns the kind for one repository.
func NewMemoryCommit(repo *git.Repo, merge MemoryMerge, sleep func(context.Context, time.Duration) error) *MemoryCommit {
	return &MemoryCommit{memory{repo, merge, sleep}}
}

// runTrailer is the line of a commit's message that names its run.
func runTrailer(runID string) string { return "Pawl-Run: " + runID }

// isOf reports whether a commit is that of the run, by its message.
func isOf(runID, message string) bool {
	return slices.Contains(strings.Split(message, "\n"), runTrailer(runID))
}

// IsOfRun reports whether a commit is that of a run, by its message.
func IsOfRun(message string) bool {
	return slices.ContainsFunc(strings.Split(message, "\n"), func(line string) bool { return strings.HasPrefix(line, runTrailer("")) })
}

// commitTries is how often a commit is tried whose branch moves, or whose index is locked.
const commitTries = 3

// Apply makes the commit. It does nothing if the run has its commit already, or if nothing
// differs from the branch.
func (m *MemoryCommit) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (result map[string]string, err error) {
	files, err := DecodeFiles(e.Args[ArgFiles])
	if err != nil {
		return nil, err
	}
	for try := range commitTries {
		if try > 0 {
			if err := m.sleep(ctx, 200*time.Millisecond<<try); err != nil {
				return nil, err
			}
		}
		if result, err = m.commitOnce(ctx, e, files, confirm); err == nil {
			return result, nil
		}
		held, ok := errors.AsType[*loop.Fault](err)
		if locked := ok && held.Exit == loop.ExitHeld; !locked && !errors.Is(err, git.ErrRefMoved) {
			break
		}
	}
	return nil, fmt.Errorf("commit the memory to %s: %w", e.Args[ArgBase], err)
}

func (m *MemoryCommit) commitOnce(ctx context.Context, e loop.Effect, files map[string]string, confirm func(context.Context) error) (map[string]string, error) {
	found, err := m.Look(ctx, e)
	if err == nil && found.Begun { // The branch has the commit, and the checkout does not follow yet.
		if err = m.repo.FinishAdvance(ctx); err == nil {
			found, err = m.Look(ctx, e)
		}
	}
	if err != nil || found.Applied {
		return found.Result, err
	}
	tip, _, err := m.repo.Ref(ctx, BranchRef(e.Args[ArgBase]))
	if err != nil {
		return nil, err
	}
	own, err := m.ownCommit(ctx, e, files)
	if err != nil {
		return nil, err
	}
	before, err := m.repo.TreeOf(ctx, e.Args[ArgOnto])
	if err != nil || own.Tree == before {
		return map[string]string{}, err
	}
	build := func(ctx context.Context) (object.Candidate, error) { return m.ownCommit(ctx, e, files) }
	if tip != e.Args[ArgOnto] {
		theirs, err := m.readFiles(ctx, tip, files)
		if err != nil {
			return nil, err
		}
		merged := files // The branch is checked out, so that these files are based on what it has.
		if e.Args[ArgPaths] == "" {
			base, err := m.readFiles(ctx, e.Args[ArgOnto], files)
			if err != nil {
				return nil, err
			}
			if merged, err = m.merge(ctx, e.Args[ArgContract], base, files, theirs); err != nil {
				return nil, err
			}
		} else if maps.Equal(files, theirs) {
			return map[string]string{}, nil
		}
		if err := m.checkGated(ctx, e, files, union{base: e.Args[ArgOnto], ours: own.Commit, theirs: tip}, merged); err != nil {
			return nil, err
		}
		build = func(ctx context.Context) (object.Candidate, error) {
			return m.replay(ctx, e, git.Replay{Base: e.Args[ArgOnto], Commit: own.Commit, Onto: tip, Message: m.message(e), Settled: changesOf(merged)})
		}
	}
	target, err := build(ctx)
	if err != nil {
		return nil, err
	}
	err = m.repo.Advance(ctx, git.Advance{Branch: e.Args[ArgBase], Onto: tip, Commit: target.Commit, Memory: m.blobs(files), Confirm: rebuilt(build, confirm)})
	return map[string]string{ResultCommit: target.Commit}, err
}

// rebuilt confirms and then writes the commit again: nothing refers to it yet, so git may
// have removed it.
func rebuilt(build func(context.Context) (object.Candidate, error), confirm func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := confirm(ctx); err != nil {
			return err
		}
		_, err := build(ctx)
		return err
	}
}

// Look reports whether the branch has a commit of the run, and the checkout is complete.
func (m *MemoryCommit) Look(ctx context.Context, e loop.Effect) (Found, error) {
	tip, there, err := m.repo.Ref(ctx, BranchRef(e.Args[ArgBase]))
	if err != nil || !there || tip == e.Args[ArgOnto] {
		return Found{}, err
	}
	const looked = 200 // commits that others may have made meanwhile
	list, err := m.repo.History(ctx, tip, e.Args[ArgOnto], "", looked)
	if err != nil {
		return Found{}, err
	}
	for _, c := range list {
		if !isOf(e.RunID, c.Message) {
			continue
		}
		open, unfinished, err := m.repo.Unfinished(ctx)
		if err != nil || unfinished && open.Commit == c.ID {
			return Found{Begun: err == nil}, err
		}
		return Found{Applied: true, Result: map[string]string{ResultCommit: c.ID}}, nil
	}
	return Found{}, nil
}

func (m *MemoryCommit) message(e loop.Effect) string {
	return strings.TrimRight(e.Args[ArgMessage], "\n") + "\n\n" + runTrailer(e.RunID) + "\n"
}

// ownCommit writes the commit of the run on the commit that it began from. It is the same
// every time.
func (m *MemoryCommit) ownCommit(ctx context.Context, e loop.Effect, files map[string]string) (object.Candidate, error) {
	when, err := whenOf(e)
	if err != nil {
		return object.Candidate{}, err
	}
	tree := e.Args[ArgTree]
	if tree == "" {
		if tree, err = m.repo.TreeOf(ctx, e.Args[ArgOnto]); err != nil {
			return object.Candidate{}, err
		}
	}
	return m.repo.Candidate(ctx, object.Draft{Tree: tree, Parents: []string{e.Args[ArgOnto]}, Changes: changesOf(files), Message: m.message(e), When: when})
}

func whenOf(e loop.Effect) (time.Time, error) {
	when, err := time.Parse(time.RFC3339, e.Args[ArgWhen])
	if err != nil {
		err = fmt.Errorf("effect %s has no time: %w", e.Key, err)
	}
	return when, err
}

// changesOf are the changes that give files their contents.
func changesOf(files map[string]string) []object.FileChange {
	changes := make([]object.FileChange, 0, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		changes = append(changes, object.FileChange{Path: name, Mode: object.ModeFile, Content: []byte(files[name])})
	}
	return changes
}

// blobs are the names that git gives to the contents of files.
func (m *memory) blobs(files map[string]string) map[string]string {
	ids := make(map[string]string, len(files))
	for name, text := range files {
		ids[name] = m.repo.Format.HashBytes([]byte(text))
	}
	return ids
}

// readFiles reads the files of the memory in a commit.
func (m *memory) readFiles(ctx context.Context, commit string, like map[string]string) (map[string]string, error) {
	files := map[string]string{}
	for name := range like {
		text, err := m.repo.Show(ctx, commit, name)
		if errors.Is(err, loop.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = string(text)
	}
	return files, nil
}

// errSides means that two histories cannot become one by themselves.
var errSides = errors.New("two sides do not fit together")

// union is two commits that become one.
type union struct{ base, ours, theirs string }

// replay makes a change again on another commit. Paths in conflict are an error that names
// them.
func (m *memory) replay(ctx context.Context, e loop.Effect, p git.Replay) (object.Candidate, error) {
	if p.When.IsZero() {
		var err error
		if p.When, err = whenOf(e); err != nil {
			return object.Candidate{}, err
		}
	}
	c, conflicts, err := m.repo.Rebase(ctx, p)
	if err == nil && len(conflicts) > 0 {
		err = &loop.Fault{
			Exit: loop.ExitError, What: "two sides changed the same lines of " + strings.Join(conflicts, ", "),
			Why: e.Args[ArgBase] + " has moved to " + p.Onto, Fix: "merge {1} by hand",
			Actions: []loop.Command{loop.HostCommand("git", "merge", p.Onto)}, Err: errSides,
		}
	}
	return c, err
}

// changesWork reports whether paths are among those that changed and not among the files of
// the memory.
func changesWork(changed []string, files map[string]string) bool {
	return slices.ContainsFunc(changed, func(p string) bool { _, own := files[p]; return !own })
}

// checkGated returns an UngatedError if both sides changed more than the memory, and the
// gates have not judged what that comes to.
func (m *memory) checkGated(ctx context.Context, e loop.Effect, files map[string]string, u union, merged map[string]string) error {
	for _, side := range []string{u.ours, u.theirs} {
		changed, err := m.repo.Changed(ctx, u.base, side)
		if err != nil {
			return err
		}
		if !changesWork(changed, files) {
			return nil
		}
	}
	c, err := m.replay(ctx, e, git.Replay{Base: u.base, Commit: u.ours, Onto: u.theirs, Message: "pawl: merged work\n", Settled: changesOf(merged)})
	if err != nil || slices.Contains(strings.Fields(e.Args[ArgGated]), c.Tree) {
		return err
	}
	return &UngatedError{Commit: c.Commit, Tree: c.Tree}
}
