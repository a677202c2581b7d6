// Package specs carries out the verbs for LoopSpecs: generates, makes, reads, changes,
// exports and removes them, and says whether one may be stepped.
//
// A spec is stored together with the loop that runs it, whose name is its id. The package
// judges a spec only by the rules of package loopspec, and starts no run but the one in which
// an agent writes a document.
package specs

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/invariant"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Service carries out the verbs for the specs of one workspace.
type Service struct {
	Deps

	ws    *lookup.Workspace
	plain proc.Plain
}

// Deps are what a Service needs besides its workspace.
type Deps struct {
	Environ []string
	Critic  loop.Reviewer  // who reviews where a gate names nobody; zero: nobody does
	Engine  *engine.Engine // nil: nothing is generated
	Lives   Lives          // of the specs in whose runs agents act; nil: none does
}

// Lives divides the life of the loop in whose run an agent acts. *engine.Engine implements it.
type Lives interface {
	// LifeLeft is how many tokens may be given to a child; false if the loop has no life of its own.
	LifeLeft(in *loop.Inside) (tokens int64, capped bool, err error)
	// GiveToChild takes an amount away from the run, for a child; undo takes it back.
	GiveToChild(in *loop.Inside, lent loop.Amount) (undo func(), err error)
}

// New makes the service.
func New(ws *lookup.Workspace, d Deps) *Service { return &Service{Deps: d, ws: ws} }

// find reads a spec of this workspace, by its id or by that of the row of its loop. The error
// is a *loop.Fault if there is none.
func (s *Service) find(ctx context.Context, id string) (row store.Spec, spec loopspec.Spec, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) error {
		row, spec, err = s.findIn(ctx, r, id)
		return err
	})
	return row, spec, orNoSpec(err, id)
}

func (s *Service) findIn(ctx context.Context, r *store.Reader, id string) (row store.Spec, spec loopspec.Spec, err error) {
	row, spec, err = s.read(ctx, r, id)
	if !errors.Is(err, loop.ErrNotFound) {
		return row, spec, err
	}
	if l, loopErr := r.Loop(ctx, id); loopErr == nil && l.Protocol == loop.ProtocolSpec {
		row, spec, err = s.read(ctx, r, l.Name)
	}
	return row, spec, err
}

// orNoSpec is the fault for a spec that is not in the workspace, if that is what err says.
func orNoSpec(err error, id string) error {
	if !errors.Is(err, loop.ErrNotFound) {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "there is no spec " + readiness.Quote(id), Err: loop.ErrNotFound,
		Fix: "{1} lists them", Actions: []loop.Command{loop.PawlCommand("spec list")},
	}
}

func (s *Service) read(ctx context.Context, r *store.Reader, id string) (row store.Spec, spec loopspec.Spec, err error) {
	if row, err = r.Spec(ctx, id); err != nil {
		return row, spec, err
	}
	if row.WorkspaceID != s.ws.ID {
		return row, spec, loop.ErrNotFound
	}
	doc, findings := loopspec.Decode([]byte(row.Body))
	if fault := loopspec.AsFault(findings); fault != nil {
		return row, spec, fault
	}
	return row, doc.Spec, nil
}

// lock is read for a transaction that changes the spec: others that do wait for it.
func (s *Service) lock(ctx context.Context, tx *store.Tx, id string) (row store.Spec, spec loopspec.Spec, err error) {
	if row, _, err = s.read(ctx, &tx.Reader, id); err != nil {
		return row, spec, err
	}
	if _, err := tx.LockLoop(ctx, row.LoopID); err != nil {
		return row, spec, err
	}
	return s.read(ctx, &tx.Reader, id)
}

// machine answers what only this machine, the roster and the grammar of invariants know.
func (s *Service) machine(ctx context.Context) loopspec.Machine {
	return loopspec.Machine{
		Executable: func(word string) bool { return s.isExecutable(ctx, word) },
		Compile: func(check string) (problem string, offset int) {
			_, err := invariant.Compile(check)
			if wrong, ok := errors.AsType[*invariant.Error](err); ok {
				return strings.TrimSpace(wrong.What + "; " + wrong.Fix), wrong.Offset
			}
			if err != nil {
				return err.Error(), 0
			}
			return "", 0
		},
		IsCommand: invariant.LooksLikeCommand,
		Model: func(handle string) string {
			if handle == "" {
				if s.Critic.Model != "" {
					return s.Critic.Model
				}
				handle = s.Critic.Agent
			}
			actor, err := s.ws.Actor(ctx, loop.Definition{Agent: handle})
			if err != nil || handle == "" {
				return ""
			}
			return actor.Model
		},
	}
}

// isExecutable reports whether the shell of a gate could start a word: a file of the
// workspace, a program on PATH, or a part of the shell.
func (s *Service) isExecutable(ctx context.Context, word string) bool {
	if strings.ContainsRune(word, '/') {
		name := word
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.ws.Root, name)
		}
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	}
	path := proc.LookupVariable(s.Environ, "PATH")
	if _, err := proc.SearchPath(word, path); err == nil {
		return true
	}
	res, err := s.plain.Run(ctx, proc.Spec{Argv: []string{"/bin/sh", "-c", `command -v "$1"`, "sh", word}, Dir: s.ws.Root, Env: []string{"PATH=" + path}})
	return err == nil && res.Ended == proc.Exited && res.Exit == 0
}

// randomBytes are those of a new id.
func randomBytes() (b [loopspec.IDBytes]byte, err error) {
	_, err = rand.Read(b[:])
	return b, err
}

// root reads the files of the checkout, and follows no link out of it.
func (s *Service) root() (fs.FS, func(), error) {
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return nil, nil, err
	}
	return root.FS(), func() { _ = root.Close() }, nil
}
