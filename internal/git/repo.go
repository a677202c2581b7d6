// Package git is the only way in which pawl uses git: a few verbs on one
// repository, each a bounded process with an environment made from nothing.
// Repository configuration, attributes and content are treated as hostile: no
// hook, filter, text conversion, external diff, merge driver, file-system
// monitor or signing program is ever started, and content is stored and read
// byte for byte. What a repository holds that could start one is listed by
// hazard.Scan.
//
// Two verbs reach further. Advance writes the files and the index of a checkout
// whose branch moves, and no file in which a person has work. Push, RemoteRef,
// RemoteRefs and Fetch contact another host, with the user's own login and none of
// the repository's configuration.
//
// It never fetches into a repository of people's, never forces a push, never
// compares the checkout through git, and never moves a ref other than by comparing
// it with an expected value first.
package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Repo is one repository as seen from one checkout. Get it from Open. It is
// safe for concurrent use, and holds no process or file open, unless it is from
// Hold.
type Repo struct {
	gitdir.Dirs
	object.Store

	git program.Git
	by  string // who moves refs, for the reflog; empty: pawl alone is named
}

// Open finds the repository whose checkout contains dir. A repository without
// a commit opens; Base refuses it. Every refusal is a *loop.Fault.
func Open(ctx context.Context, dir string) (*Repo, error) {
	return OpenWith(ctx, proc.Plain{}, dir)
}

// OpenWith is Open with another way to start processes. All commands of the
// Repo go through run.
func OpenWith(ctx context.Context, run proc.Runner, dir string) (*Repo, error) {
	dirs, err := gitdir.Find(dir)
	if err != nil {
		return nil, err
	}
	r := &Repo{Dirs: dirs}
	format := object.SHA1
	if !isOrdinary(r.CommonDir) {
		if format, err = r.askFormat(ctx, run); err != nil {
			return nil, err
		}
	}
	r.git = program.New(run, r.GitDir, r.CommonDir, r.GitDir)
	r.Store = object.At(r.git, object.Format(format), r.ObjectDirs)
	return r, nil
}

// isOrdinary reports whether a repository, by its configuration, has a checkout, names of
// SHA-1 and no extension. Of others git says what they are.
func isOrdinary(commonDir string) bool {
	text, err := readSmall(filepath.Join(commonDir, "config"), 1<<20)
	if err != nil {
		return false
	}
	settings, err := gitconfig.Parse(text)
	version := ""
	for _, s := range settings {
		switch section, _, _ := s.Split(); {
		case s.Key == "core.repositoryformatversion":
			version = s.Value
		case section == "extensions", section == "include", section == "includeif", s.Key == "core.worktree", s.Key == "core.bare" && s.Value != "false":
			return false
		}
	}
	return err == nil && version == "0"
}

// askFormat asks git for the format of object names, and refuses a repository that has
// no checkout.
func (r *Repo) askFormat(ctx context.Context, run proc.Runner) (string, error) {
	// Told about a work tree, git answers that the repository is not bare, so
	// this one question is asked without it.
	git := program.New(run, r.GitDir, r.CommonDir, "")
	out, err := git.Output(ctx, nil, "rev-parse", "--show-object-format", "--is-bare-repository")
	if err != nil {
		return "", gitdir.Unreadable(r.Root, err)
	}
	format, bare, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if bare == "true" {
		return "", gitdir.Bare(r.GitDir)
	}
	if format != object.SHA1 && format != object.SHA256 {
		return "", gitdir.Unreadable(r.Root, fmt.Errorf("unknown object format %q", format))
	}
	return format, nil
}

// MovedBy returns the same repository with the name that the reflog gives to each
// movement of a ref: `git reflog main` then says who moved main.
func (r *Repo) MovedBy(who string) *Repo {
	by := *r
	by.by = who
	return &by
}

// Hold returns the same repository for several reads in a row, as Store.Hold does.
// Release must be called.
func (r *Repo) Hold() (held *Repo, release func()) {
	h := *r
	h.Store, release = r.Store.Hold()
	return &h, release
}
