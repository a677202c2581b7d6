// Package accepted is what a person has accepted on this machine: a folder in pawl's home
// with a file for each thing that a row of a shared store may make this machine do. Whoever
// can write to the database can write such a row; only who can write to the home can accept
// it.
//
// It never reads the store, and decides nothing about what is confined: a thing that needs
// nobody's acceptance has no Item.
package accepted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Folder is where a machine keeps what was accepted on it. A nil Folder belongs to a store
// that no other machine shares: there all is accepted. Its methods may be called
// concurrently, also by several processes.
type Folder struct{ dir string }

// In returns the folder of a home. It is made when something is accepted.
func In(home string) *Folder { return &Folder{filepath.Join(home, "accepted")} }

// Has reports whether a person has accepted the item here.
func (f *Folder) Has(i Item) (bool, error) {
	if f == nil {
		return true, nil
	}
	info, err := os.Lstat(f.path(i))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read what is accepted on this machine: %w", err)
	}
	return info.Mode().IsRegular(), nil
}

// Check is the *loop.Fault for an item that nobody has accepted here, with
// loop.ErrNotAcceptedHere; nil for any other.
func (f *Folder) Check(i Item) error {
	known, err := f.Has(i)
	if err != nil || known {
		return err
	}
	fault := &loop.Fault{
		Exit: loop.ExitRefused, What: i.What() + " is not accepted on this machine", Err: loop.ErrNotAcceptedHere,
		Why: "whoever can write to the database can have written it: " + strings.Join(i.Does, "; "),
	}
	if i.Kind == KindAnswer {
		return fault.WithAdvice(loop.Advise("let the loop ask again, and answer on this machine: {1}", loop.PawlCommand("approvals")))
	}
	return fault.WithAdvice(loop.Advise("look at it, and accept it here if you trust it: {1}", loop.PawlCommand("nodes accept", i.ID())))
}

// Accept keeps that a person has accepted the items here. Each lasts until its file is
// removed.
func (f *Folder) Accept(items ...Item) error {
	if f == nil {
		return nil
	}
	for _, i := range items {
		known, err := f.Has(i)
		if err == nil && !known {
			err = f.write(i)
		}
		if err != nil {
			return fmt.Errorf("accept %s on this machine: %w", i.What(), err)
		}
	}
	return nil
}

func (f *Folder) write(i Item) error {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if err := durable.ReplaceFile(f.path(i), append(text, '\n'), 0o600); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(f.dir))
}

func (f *Folder) path(i Item) string {
	return filepath.Join(f.dir, string(i.Kind)+"-"+i.digest()+".json")
}

// digest names the item by all that it may make a machine do.
func (i Item) digest() string {
	sum := sha256.Sum256(append([]byte(i.Kind+"\x00"), i.Body...))
	return hex.EncodeToString(sum[:])
}

// ID is how people call an item: its kind, and the beginning of its digest.
func (i Item) ID() string { return string(i.Kind) + "-" + i.digest()[:12] }
