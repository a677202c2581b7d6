// Package node is this machine as one of those that share a store: which node it
// is, which processes of it hold runs, and which workspace a checkout is.
//
// A node has an id in pawl's home, a workspace one in the git directory of its
// checkout. The package never decides about a run and touches no file of a checkout.
package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// fileName is the file of pawl's home that holds the id of the node.
const fileName = "node.json"

// identity is the content of that file.
type identity struct {
	ID     string   `json:"id"`
	Name   string   `json:"name,omitempty"` // empty: nobody named it, and the host's name serves
	Labels []string `json:"labels,omitempty"`
}

// Read returns the node of a home, or the zero Node if the home has none yet.
func Read(home string) (loop.Node, error) {
	path := filepath.Join(home, fileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // A home that cannot be made is said by whoever makes it.
		return loop.Node{}, nil
	}
	var kept identity
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err == nil && kept.ID == "" {
		err = errors.New("it has no id")
	}
	if err != nil {
		return loop.Node{}, &loop.Fault{
			Exit: loop.ExitUnreadable, What: "read which node this is from " + path, Why: err.Error(), Err: err,
			Fix:     "restore the file; if you remove it, this machine becomes a new node, and {1} gives up what the old one has",
			Actions: []loop.Command{loop.PawlCommand("nodes forget")},
		}
	}
	return loop.Node{ID: kept.ID, Name: kept.Name, Labels: kept.Labels}, nil
}

// Identify returns the node of a home. If the home has none yet, it becomes one with
// a new id. Of several processes that do so at the same time one makes it.
func Identify(home string, newID func(prefix string) string) (loop.Node, error) {
	n, err := Read(home)
	if err != nil || n.ID != "" {
		return n, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return n, err
	}
	if err := writeOnce(filepath.Join(home, fileName), identity{ID: newID("node")}); err != nil {
		return n, fmt.Errorf("make this machine a node: %w", err)
	}
	return Read(home)
}

// Keep keeps the name and the labels of the node of a home.
func Keep(home string, n loop.Node) error {
	return replace(filepath.Join(home, fileName), identity{ID: n.ID, Name: n.Name, Labels: n.Labels})
}

// writeOnce makes a file with JSON unless it exists.
func writeOnce(path string, content any) error {
	return writeJSON(path, content, func(made string) error { return linkNew(made, path) })
}

// replace writes a file with JSON in place of another.
func replace(path string, content any) error {
	return writeJSON(path, content, func(made string) error { return os.Rename(made, path) })
}

func writeJSON(path string, content any, name func(made string) error) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'), name)
}

// linkNew gives a file that was made its name, unless there is one.
func linkNew(made, path string) error {
	err := os.Link(made, path)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return err
}

// writeFile writes a file beside path, which name then puts there. Nobody ever sees a
// part of it.
func writeFile(path string, text []byte, name func(made string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, durable.SyncFile(f), f.Close())
	if err == nil {
		err = name(f.Name())
	}
	if rm := os.Remove(f.Name()); !errors.Is(rm, fs.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return errors.Join(err, durable.SyncFolder(filepath.Dir(path)))
}
