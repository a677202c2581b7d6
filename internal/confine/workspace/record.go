package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pawl-run/pawl/internal/ground/dirglob"
)

// suffixRecord ends the name of the file with the record of a tree. It is where no program
// in a tree can write, and is removed after the tree. The record of layers is written
// before the tree.
const suffixRecord = ".layers"

// record is what a later process has to know about a tree.
type record struct {
	From   string   `json:"from"`             // tree
	Rev    string   `json:"rev"`              // commit or tree it was made from
	Lower  []string `json:"lower"`            // names of the layers in the cache, topmost first
	Pushed []string `json:"pushed,omitempty"` // directories above them, topmost first
	Filled string   `json:"filled,omitempty"` // the one of Pushed from which the tree was filled
	Whole  bool     `json:"whole,omitempty"`  // the tree is a directory into which Pushed was copied
}

// writeRecord replaces the record atomically.
func (t *Trees) writeRecord(name string, r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	to := t.hiddenPath(name, suffixRecord)
	next := t.hiddenPath(name, suffixNew+suffixRecord)
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, to)
}

// readRecord returns the record of a tree. A tree without a record is a directory into
// which nothing was copied.
func (t *Trees) readRecord(name string) (r record, layered bool, err error) {
	text, err := os.ReadFile(t.hiddenPath(name, suffixRecord))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return record{}, false, fmt.Errorf("read what tree %s is made of: %w", name, err)
	}
	return r, !r.Whole, nil
}

func (t *Trees) dropRecord(name string) error {
	for _, suffix := range []string{suffixNew + suffixRecord, suffixRecord} {
		if err := os.Remove(t.hiddenPath(name, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readRecords returns the records of all layered trees below the root. One that cannot be
// read is left out: its layers can be made again.
func (t *Trees) readRecords() []record {
	var list []record
	for _, name := range dirglob.Find(t.root, ".*"+suffixRecord) {
		var r record
		if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &r) == nil {
			list = append(list, r)
		}
	}
	return list
}
