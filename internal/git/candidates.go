package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/fault"
)

// CandidatePrefix begins the names of the refs that hold the candidates of runs
// that have not ended: RUN/N below it is that of iteration N. Until its run has
// ended no other ref leads to a candidate, and `git gc` would remove it.
const CandidatePrefix = ownPrefix + "candidates/"

// The places at which holding a candidate, and letting go of it, can be
// interrupted.
var (
	beforeHold  = fault.New("git.candidate.hold.before")
	afterHold   = fault.New("git.candidate.hold.after")
	beforeLetGo = fault.New("git.candidate.drop.before")
	afterLetGo  = fault.New("git.candidate.drop.after")
)

// HoldCandidate puts a ref on the candidate of an iteration, for DropCandidates to
// remove. Every iteration has one candidate at most. Where the repository keeps
// its refs in files, no process is started: each iteration of each run needs
// this.
func (r *Repo) HoldCandidate(ctx context.Context, run string, iteration int, commit string) error {
	ref := CandidatePrefix + run + "/" + strconv.Itoa(iteration)
	err := CheckRef(ref)
	if err == nil {
		err = r.Format.Check(commit)
	}
	if err == nil {
		err = beforeHold.Hit(ctx)
	}
	if err == nil && hasRefTable(r.CommonDir) {
		_, err = r.git.Output(ctx, nil, "update-ref", "--no-deref", ref, commit)
	} else if err == nil {
		err = writeRef(r.CommonDir, ref, commit)
	}
	if err == nil {
		err = afterHold.Hit(ctx)
	}
	if err != nil {
		return fmt.Errorf("hold candidate %s of run %s: %w", commit, run, err)
	}
	return nil
}

// hasRefTable reports whether the refs of the repository are not in files of
// their own, but in git's other format.
func hasRefTable(commonDir string) bool {
	_, err := os.Lstat(commonDir + "/reftable")
	return err == nil
}

// writeRef writes a ref that does not exist as git does: to a lock, which is then
// renamed.
func writeRef(commonDir, ref, commit string) error {
	root, err := os.OpenRoot(commonDir)
	if err != nil {
		return err
	}
	defer root.Close()
	var lock *os.File
	for range 5 { // Git removes folders without refs at any moment.
		if err = root.MkdirAll(path.Dir(ref), 0o777); err != nil {
			continue
		}
		if lock, err = root.OpenFile(ref+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	_, err = lock.WriteString(commit + "\n")
	if err == nil {
		err = lock.Sync() // A power cut must not leave a ref without content.
	}
	err = errors.Join(err, lock.Close())
	if err == nil {
		err = root.Rename(ref+".lock", ref)
	}
	if err != nil {
		return errors.Join(err, root.Remove(ref+".lock"))
	}
	return nil
}

// DropCandidates removes the refs of all candidates of a run, and what a process that
// died left of them. There may be none.
func (r *Repo) DropCandidates(ctx context.Context, run string) error {
	err := CheckRef(CandidatePrefix + run)
	if err == nil {
		err = beforeLetGo.Hit(ctx)
	}
	if err == nil {
		err = r.dropCandidates(ctx, CandidatePrefix+run)
	}
	if err == nil {
		err = afterLetGo.Hit(ctx)
	}
	if err != nil {
		return fmt.Errorf("let go of the candidates of run %s: %w", run, err)
	}
	return nil
}

func (r *Repo) dropCandidates(ctx context.Context, folder string) error {
	var refs []string
	var err error
	if hasRefTable(r.CommonDir) {
		var all []Ref
		all, err = r.forEachRef(ctx, folder+"/")
		for _, ref := range all {
			refs = append(refs, ref.Name)
		}
	} else {
		refs, err = packedCandidates(r.CommonDir)
		refs = slices.DeleteFunc(refs, func(ref string) bool { return !strings.HasPrefix(ref, folder+"/") })
	}
	if err != nil {
		return err
	}
	if len(refs) > 0 { // Git packs all refs when it collects garbage.
		commands := strings.NewReader("delete " + strings.Join(refs, "\ndelete ") + "\n")
		if _, err := r.git.Output(ctx, commands, "update-ref", "--no-deref", "--stdin"); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(r.CommonDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(folder); err != nil {
		return err
	}
	_ = root.Remove(path.Dir(folder)) // Only if this run was the last one.
	return nil
}

// CandidateRuns lists the runs whose candidates are held, sorted.
func (r *Repo) CandidateRuns(ctx context.Context) (runs []string, err error) {
	runs, err = r.candidateRuns(ctx)
	if err != nil {
		return nil, fmt.Errorf("list candidates: %w", err)
	}
	slices.Sort(runs)
	return slices.Compact(runs), nil
}

func (r *Repo) candidateRuns(ctx context.Context) (runs []string, err error) {
	if hasRefTable(r.CommonDir) {
		refs, err := r.forEachRef(ctx, CandidatePrefix)
		for _, ref := range refs {
			runs = append(runs, runOfCandidate(ref.Name))
		}
		return runs, err
	}
	packed, err := packedCandidates(r.CommonDir)
	if err != nil {
		return nil, err
	}
	for _, ref := range packed {
		runs = append(runs, runOfCandidate(ref))
	}
	root, err := os.OpenRoot(r.CommonDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	folder, err := root.Open(strings.TrimSuffix(CandidatePrefix, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return runs, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	return append(runs, names...), err
}

func runOfCandidate(ref string) string {
	run, _, _ := strings.Cut(strings.TrimPrefix(ref, CandidatePrefix), "/")
	return run
}

// packedCandidates lists the refs of candidates that git has packed.
func packedCandidates(commonDir string) (refs []string, err error) {
	root, err := os.OpenRoot(commonDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open("packed-refs")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil || !bytes.Contains(text, []byte(" "+CandidatePrefix)) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if _, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); strings.HasPrefix(ref, CandidatePrefix) && CheckRef(ref) == nil {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}
