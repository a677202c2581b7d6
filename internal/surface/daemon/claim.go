package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Running is the daemon of a store that is at work on this node.
type Running struct {
	Holder  loop.Holder `json:"holder"`
	Version string      `json:"version"`
	Since   time.Time   `json:"since"`
	Socket  string      `json:"socket,omitempty"` // where it answers; empty: it does not yet
}

// Answer is what came of asking for the daemon of this node, schema pawl.daemon/v1.
type Answer struct {
	Schema string `json:"schema"`
	State  string `json:"state"`         // absent, reloading or ended
	PID    int    `json:"pid,omitempty"` // of the daemon; 0: it is absent
}

// Answer says what has become of a daemon; the zero Running is an absent one.
func (r Running) Answer(state string) Answer { return Answer{"pawl.daemon/v1", state, r.Holder.PID} }

// Seat is where the one daemon of a store says on a node that it is at work.
type Seat struct{ settings config.Settings }

// SeatOf returns the seat of the store that the settings name.
func SeatOf(s config.Settings) Seat { return Seat{s} }

// name is that of the files of the seat. A home has more than one if its processes use
// different databases.
func (s Seat) name() string {
	if s.settings.Database == filepath.Join(s.settings.Home, "pawl.db") {
		return "daemon"
	}
	return "daemon-" + shortHash(s.settings.Database)
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// file returns the path of the file that a daemon locks and in which it says who it is.
func (s Seat) file() string { return filepath.Join(s.settings.Home, s.name()+".lock") }

// Claimed is a seat that this process has.
type Claimed struct {
	seat Seat
	file *os.File
}

// Claim takes the seat, until Leave is called or the process ends. The error is a
// *loop.Fault if another daemon has it.
func (s Seat) Claim(r Running) (*Claimed, error) {
	file, err := flock.Try(s.file())
	if errors.Is(err, flock.ErrHeld) {
		return nil, s.heldFault()
	}
	if err != nil {
		return nil, fmt.Errorf("claim the place of the daemon: %w", err)
	}
	c := &Claimed{s, file}
	if err := c.Announce(r); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return c, nil
}

// Announce says how the daemon is at work.
func (c *Claimed) Announce(r Running) error {
	body, err := json.Marshal(r)
	if err == nil {
		err = c.file.Truncate(0)
	}
	if err == nil {
		_, err = c.file.WriteAt(body, 0)
	}
	if err != nil {
		return fmt.Errorf("say that the daemon is at work: %w", err)
	}
	return nil
}

// Leave gives the seat up.
func (c *Claimed) Leave() error { return errors.Join(os.Remove(c.seat.file()), c.file.Close()) }

func (s Seat) heldFault() error {
	f := &loop.Fault{
		Exit: loop.ExitHeld, What: "a daemon is at work already", Why: "one process fires the loops of a store on this node",
		Fix: "end it: {1}", Actions: []loop.Command{loop.PawlCommand("down")},
	}
	if r, ok, err := s.Find(); err == nil && ok {
		f.Why = fmt.Sprintf("process %d has done so since %s", r.Holder.PID, r.Since.UTC().Format(time.RFC3339))
	}
	return f
}

// Find returns the daemon that has the seat. It reports false if no daemon is at work.
func (s Seat) Find() (r Running, ok bool, err error) {
	body, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("look for the daemon: %w", err)
	}
	if !json.Valid(body) { // It is about to start, or has died then.
		return r, false, nil
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, false, fmt.Errorf("look for the daemon: %s: %w", s.file(), err)
	}
	return r, node.HolderState(r.Holder) != loop.HolderDead, nil
}
