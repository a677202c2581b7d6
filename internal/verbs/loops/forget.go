package loops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Forgotten is the result of Forget, schema pawl.forgotten/v1.
type Forgotten struct {
	Schema   string   `json:"schema"`
	Loop     string   `json:"loop"`
	Protocol string   `json:"protocol"`
	Closed   []string `json:"closed"`           // ids of approvals that were open and are void now
	Folder   string   `json:"folder,omitempty"` // of the loop's files, which stay; empty if missing
}

// Forget removes a loop from listings until it runs again. Branches, snapshots, files,
// rows of runs and the audit chain stay. If the loop has a live run, the error is a
// *loop.HeldError.
func (s *Service) Forget(ctx context.Context, by loop.Actor, name string) (Forgotten, error) {
	e, err := s.ws.Loops.Resolve(ctx, name)
	if err != nil {
		return Forgotten{}, err
	}
	f := Forgotten{Schema: "pawl.forgotten/v1", Loop: e.Name, Protocol: e.Protocol, Closed: []string{}}
	if _, err := os.Lstat(filepath.Join(s.ws.Root, filepath.FromSlash(definition.Dir(e.Name)))); err == nil {
		f.Folder = definition.Dir(e.Name)
	}
	id := e.LoopID()
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		f.Closed = []string{}
		// A run that starts now waits for the row, and makes the loop known again.
		switch _, err := tx.LockLoop(ctx, id); {
		case lookup.Absent(err):
			return nil // The store does not have the loop.
		case err != nil:
			return err
		}
		switch live, err := tx.Live(ctx, id); {
		case err == nil:
			return s.Engine.Held(e.Name, live)
		case !lookup.Absent(err):
			return fmt.Errorf("forget %s: %w", e.Name, err)
		}
		if err := tx.Forget(ctx, by, id); err != nil {
			return err
		}
		open, err := tx.Approvals(ctx, id, loop.PendingStates()...)
		if err != nil {
			return err
		}
		for _, a := range open {
			if _, err := tx.VoidApproval(ctx, a.ID, "the loop was forgotten"); err != nil {
				return err
			}
			f.Closed = append(f.Closed, a.ID)
		}
		return nil
	})
	return f, err
}
