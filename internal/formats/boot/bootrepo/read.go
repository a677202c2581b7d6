package bootrepo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	maxFetched   = 512 << 20 // bytes on the disk while a contract is fetched
	fetchTimeout = 2 * time.Minute
)

// errNoAnswer is the cause of a look-up that took too long.
var errNoAnswer = errors.New("it did not answer in time")

// tip is where a branch or a tag is.
type tip struct{ commit, ref string }

// lookUp asks the repository where its branch or tag is. It is an *awayError if nobody
// answers.
func (r *repository) lookUp(ctx context.Context) (tip, error) {
	names := refNames(r.reference)
	if r.source.path != "" {
		return r.lookUpHere(ctx, names)
	}
	asked, cancel := context.WithTimeoutCause(ctx, r.Patience, errNoAnswer)
	defer cancel()
	var ask []string
	for _, name := range names {
		ask = append(ask, name, name+"^{}")
	}
	refs, err := git.RemoteRefs(asked, r.Exec, r.source.remote, ask...)
	if err != nil {
		return tip{}, asAway(ctx, err)
	}
	for _, name := range names {
		for _, found := range []string{refs[name+"^{}"], refs[name]} {
			if isCommit(found) {
				return tip{found, name}, nil
			}
		}
	}
	return tip{}, r.refuseReference("it has no such branch or tag")
}

// asAway makes an error of git an *awayError, unless the caller itself has ended.
func asAway(ctx context.Context, err error) error {
	switch f, isFault := errors.AsType[*loop.Fault](err); {
	case ctx.Err() != nil:
		return fmt.Errorf("load boot repository: %w", context.Cause(ctx))
	case isFault && f.Exit == loop.ExitMissing: // git itself
		return err
	case isFault && f.Why != "":
		return &awayError{f.Why, err}
	}
	return &awayError{err.Error(), err}
}

// localObjects opens a repository on this machine for reading. Git is told where it is,
// so that it looks for no other and runs nothing that is configured there.
func (r *repository) localObjects() (gitdir.Dirs, object.Store, error) {
	dir, err := gitdir.Of(r.source.path)
	if err == nil && dir == "" {
		dir = gitdir.Resolve("", r.source.path)
	}
	dirs, ok := gitdir.At(r.source.path, dir)
	switch {
	case err != nil:
		return dirs, object.Store{}, &awayError{err.Error(), err}
	case !ok:
		return dirs, object.Store{}, &awayError{"no git repository is there", nil}
	}
	common := dirs.CommonDir
	return dirs, object.At(program.New(r.Exec, common, common, common), formatOf(common), dirs.ObjectDirs), nil
}

// formatOf reads how a repository names its objects.
func formatOf(commonDir string) object.Format {
	format := object.SHA1
	text, err := gitdir.Read(filepath.Join(commonDir, "config"))
	if err != nil {
		return object.Format(format)
	}
	settings, err := gitconfig.Parse(text)
	for _, s := range settings {
		if s.Key == "extensions.objectformat" && s.Value == object.SHA256 && err == nil {
			format = object.SHA256
		}
	}
	return object.Format(format)
}

func (r *repository) lookUpHere(ctx context.Context, names []string) (found tip, err error) {
	dirs, objects, err := r.localObjects()
	if err != nil {
		return tip{}, err
	}
	blobs, err := objects.Blobs(ctx)
	if err != nil {
		return tip{}, asAway(ctx, err)
	}
	defer func() {
		if closed := blobs.Close(); err == nil && closed != nil {
			err = asAway(ctx, closed)
		}
	}()
	refs, err := dirs.Refs(names...)
	if err != nil && !errors.Is(err, gitdir.ErrRefStorage) {
		return tip{}, asAway(ctx, err)
	}
	for _, name := range names {
		id := refs[name]
		if err != nil { // Git knows how refs are kept there.
			id = name
		} else if id == "" {
			continue
		}
		object, err := blobs.Resolve(id + "^{commit}")
		if err != nil {
			return tip{}, asAway(ctx, err)
		}
		if object[0].Kind == "commit" {
			return tip{object[0].ID, name}, nil
		}
	}
	return tip{}, r.refuseReference("it has no such branch or tag of a commit")
}

// readRepository reads the files of a commit from the repository itself. The caller
// has the lock.
func (r *repository) readRepository(ctx context.Context, commit, name string) (*files, error) {
	if r.source.path != "" {
		_, objects, err := r.localObjects()
		if err != nil {
			return nil, err
		}
		return r.readObjects(ctx, objects, commit)
	}
	format := object.Format(object.SHA1)
	if len(commit) > 40 {
		format = object.SHA256
	}
	fetch := git.Fetch{From: r.source.remote, Format: format, Names: []string{name}, Depth: 1, Folder: r.dir, MaxBytes: maxFetched}
	bounded, cancel := context.WithTimeoutCause(ctx, fetchTimeout, errNoAnswer)
	defer cancel()
	fetched, err := fetch.Run(bounded, r.Exec)
	if err != nil && bounded.Err() == nil && !errors.Is(err, git.ErrFetchSize) {
		// Some hosts send no single commit, or no history that is cut.
		if fetch.Depth = 0; isCommit(name) {
			fetch.Names = []string{"refs/heads/*", "refs/tags/*"}
		}
		fetched, err = fetch.Run(bounded, r.Exec)
	}
	if err != nil {
		return nil, asAway(ctx, err)
	}
	defer fetched.Close()
	if !isCommit(name) {
		commit = fetched.Ref(0)
	}
	return r.readObjects(bounded, fetched.Store, commit)
}

// readObjects reads the files of a commit, or of the commit that a ref leads to.
func (r *repository) readObjects(ctx context.Context, objects object.Store, commit string) (found *files, err error) {
	if isCommit(commit) && objects.Format.Check(commit) != nil {
		return nil, r.refuseReference("the names of its commits have another length")
	}
	blobs, err := objects.Blobs(ctx)
	if err != nil {
		return nil, asAway(ctx, err)
	}
	defer func() {
		if closed := blobs.Close(); err == nil && closed != nil {
			found, err = nil, asAway(ctx, closed)
		}
	}()
	named, err := blobs.Resolve(commit + "^{commit}")
	if err != nil {
		return nil, asAway(ctx, err)
	}
	if named[0].Kind != "commit" {
		return nil, r.refuseReference("it has no such commit")
	}
	if found, err = readFiles(blobs, named[0].ID, r.bootPath); err != nil {
		return nil, asAway(ctx, err)
	}
	return found, nil
}
