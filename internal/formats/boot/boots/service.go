// Package boots carries out the verbs for workspaces of the boot protocol: makes their
// files, checks what a run would read, says what it would work on, brings older files into
// the form of today, and lists the sessions that git has.
//
// Only Init and Migrate write, and only files of the checkout. The package commits nothing
// in the workspace, pushes nothing, starts no run, and decides nothing about a task itself:
// packages bootlink, bootstate and bootrepo do.
package boots

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Service carries out the verbs for one workspace.
type Service struct {
	Deps

	ws *lookup.Workspace
}

// Deps are what a Service needs besides its workspace.
type Deps struct {
	Contracts bootrepo.Cache
	Exec      proc.Runner // runs git for a new boot repository

	FindTests func(context.Context) (string, error) // finds the test command of the repository, as pawl init does; empty: there is none
}

// New makes the service.
func New(ws *lookup.Workspace, d Deps) *Service { return &Service{Deps: d, ws: ws} }

// readLink reads a link that may be used. The error is a *loop.Fault.
func (s *Service) readLink() (bootdef.Link, error) {
	link, err := bootdef.Read(s.ws.Root)
	if err == nil {
		err = link.Fault()
	}
	return link, err
}

// contract is that of the boot repository.
func (s *Service) contract(ctx context.Context, link bootlink.Link) (bootrepo.Contract, error) {
	return s.Contracts.Load(ctx, link, s.ws.Root)
}

// memory is where the files of a workspace's memory are: in the checkout, or else in the
// branch that the loop works on.
type memory struct {
	ws     *lookup.Workspace
	link   bootdef.Link
	branch string // short name; empty: no branch is checked out
	rev    string // whose history has the files; empty: there is no commit yet
	away   bool   // another branch is checked out
}

// openMemory finds the memory.
func (s *Service) openMemory(ctx context.Context, link bootdef.Link) (memory, error) {
	m := memory{ws: s.ws, link: link}
	e, err := s.ws.Loops.Lookup(ctx, loop.ProtocolBoot+":"+bootdef.Name)
	if err != nil {
		return m, err
	}
	here, err := s.ws.Repo.Base(ctx, "")
	switch {
	case err == nil:
		m.branch, m.rev = here.Branch, "HEAD"
	case e.Definition.Base == "":
		return m, nil // Nothing is committed yet.
	}
	if base := e.Definition.Base; base != "" && base != m.branch {
		there, err := s.ws.Repo.Base(ctx, base)
		if err != nil {
			return m, err
		}
		m.branch, m.rev, m.away = there.Branch, "refs/heads/"+there.Branch, true
	}
	return m, nil
}

// read reads a file of the memory. What keeps it from being read is in the file.
func (m memory) read(ctx context.Context, name string) bootstate.File {
	file := bootstate.File{Path: name}
	if m.away {
		text, err := m.ws.Repo.Show(ctx, m.rev, name)
		file.Content, file.Exists = text, !errors.Is(err, loop.ErrNotFound)
		if file.Exists && err != nil {
			file.Problem = err.Error()
		}
		return file
	}
	found, err := projection.ReadFile(filepath.Join(m.ws.Root, filepath.FromSlash(name)), bootstate.MaxBytes)
	file.Content, file.Exists = []byte(found.Content), found.Exists || err != nil
	switch {
	case err != nil:
		file.Problem = err.Error()
	case found.TooBig:
		file.Problem = fmt.Sprintf("it has more than %d bytes", bootstate.MaxBytes)
	}
	return file
}

// mostVersions is how many commits of a file are looked through for one that is valid.
const mostVersions = 1000

// history is what commits had as a file, newest first. It ends where git cannot go on.
func (m memory) history(ctx context.Context, name string) iter.Seq[bootstate.Version] {
	return func(yield func(bootstate.Version) bool) {
		if m.rev == "" {
			return
		}
		commits, _ := m.ws.Repo.History(ctx, m.rev, "", name, mostVersions) // Without a history there is nothing to restore.
		for _, c := range commits {
			v := bootstate.Version{Name: short(c.ID)}
			text, err := m.ws.Repo.Show(ctx, c.ID, name)
			switch {
			case err == nil:
				v.Content = text
			case !errors.Is(err, loop.ErrNotFound):
				return
			}
			if !yield(v) {
				return
			}
		}
	}
}

// stash is what the newest stash had as a file.
func (m memory) stash(ctx context.Context, name string) iter.Seq[bootstate.Version] {
	return func(yield func(bootstate.Version) bool) {
		if text, err := m.ws.Repo.Show(ctx, "refs/stash", name); err == nil {
			yield(bootstate.Version{Name: "stash@{0}", Content: text})
		}
	}
}

// find reads all of the memory.
func (m memory) find(ctx context.Context) bootstate.Found {
	return bootstate.Found{
		State: m.read(ctx, m.link.State), Tasks: m.read(ctx, m.link.Tasks), Changelog: m.read(ctx, m.link.Changelog),
		StateHistory: m.history(ctx, m.link.State), TasksHistory: m.history(ctx, m.link.Tasks), StateStashes: m.stash(ctx, m.link.State),
		Project: projectOf(m.ws.Root), Now: m.ws.Now(),
	}
}

// projectOf is what a workspace works on if nobody has said it.
func projectOf(root string) string { return path.Base(filepath.ToSlash(root)) }

func short(commit string) string { return commit[:min(7, len(commit))] }
