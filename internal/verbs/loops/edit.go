package loops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Draft is a copy of a definition that a person edits. Callers must Remove it.
type Draft struct {
	Found
	Copy   string // path of the copy, in a folder of its own
	before []byte
}

// NewDraft copies a definition for editing, so that a half-edited one is never run.
func NewDraft(f Found) (Draft, error) {
	if f.root != "" && filepath.Base(f.Path) != definition.ConfigFile {
		return Draft{}, &loop.Fault{
			Exit: loop.ExitNotFound, What: "loop " + f.Name + " has no " + definition.ConfigFile + " to edit", Why: f.Shown + " alone makes the loop", Err: loop.ErrNotFound,
			Fix: "edit that file, and check it: {1}", Actions: []loop.Command{loop.PawlCommand("check", f.Name)},
		}
	}
	_, source, err := definition.Load(f.Path)
	if source == nil && err != nil {
		return Draft{}, err
	}
	dir, err := os.MkdirTemp("", "pawl-edit-")
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Found: f, Copy: filepath.Join(dir, filepath.Base(f.Path)), before: source}
	return d, os.WriteFile(d.Copy, source, 0o600)
}

// Editor is the program that a person edits with.
type Editor struct {
	Line     string // for the shell, which splits it: it may hold arguments
	Dir      string // working directory
	Environ  []string
	In       io.Reader
	Out, Err io.Writer
}

// OpenIn runs an editor on the copy and blocks until it has ended. An editor that
// cannot be run, or fails, is a *loop.Fault.
func (d Draft) OpenIn(ctx context.Context, e Editor) error {
	res, err := proc.Foreground{}.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", e.Line + ` "$1"`, "sh", d.Copy}, Dir: e.Dir, Env: e.Environ, Stdin: e.In, Stdout: e.Out, Stderr: e.Err,
	})
	if err == nil && res.Exit != 0 {
		err = fmt.Errorf("it ended with exit status %d", res.Exit)
	}
	if err != nil {
		return &loop.Fault{
			Exit: loop.ExitError, What: "edit with " + e.Line, Why: err.Error(), Err: err, Fix: "set VISUAL or EDITOR to your editor; the copy is " + d.Copy,
		}
	}
	return nil
}

// Check judges the copy as if it were the original.
func (d Draft) Check() (Checked, error) {
	copied := d.Found
	copied.Path = d.Copy
	return Check(copied)
}

// IsChanged reports whether the copy differs from the original.
func (d Draft) IsChanged() (bool, error) {
	now, err := os.ReadFile(d.Copy)
	return !bytes.Equal(now, d.before), err
}

// Save atomically replaces the original by the copy. If somebody else changed the
// original meanwhile, both stay as they are, and the error is a *loop.Fault.
func (d Draft) Save() error {
	now, err := os.ReadFile(d.Path)
	if err != nil || !bytes.Equal(now, d.before) {
		return &loop.Fault{
			Exit: loop.ExitHeld, What: "save " + d.Shown, Why: "it was changed by somebody else meanwhile", Err: err,
			Fix: "your version is kept in " + d.Copy + "; compare them, and edit again",
		}
	}
	text, err := os.ReadFile(d.Copy)
	if err != nil {
		return err
	}
	if err := durable.ReplaceFile(d.Path, text, 0o644); err != nil {
		return &loop.Fault{Exit: loop.ExitError, What: "save " + d.Shown, Why: err.Error(), Err: err, Fix: "your version is kept in " + d.Copy}
	}
	return nil
}

// Remove deletes the copy.
func (d Draft) Remove() error { return os.RemoveAll(filepath.Dir(d.Copy)) }
