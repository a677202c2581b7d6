package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// All names every loop of the workspace.
const All = ""

// Switched says which switch was set or cleared, schema pawl.switch/v1.
type Switched struct {
	Schema  string   `json:"schema"`
	Loop    string   `json:"loop,omitempty"` // empty: all loops
	Paused  bool     `json:"paused"`
	Switch  string   `json:"switch"`
	Was     bool     `json:"was"` // it stood so before
	Stopped []string `json:"stopped,omitempty"`
}

// Pause sets the kill switch of one loop, or of all. The file comes first: it
// works without a store, and every engine watches it.
func (s *Service) Pause(ctx context.Context, name string) (Switched, error) {
	sw, err := s.switchFor(ctx, name)
	if err != nil {
		return sw, err
	}
	sw.Paused = true
	path := filepath.Join(s.ws.Root, sw.Switch)
	if _, err := os.Lstat(path); err == nil {
		sw.Was = true
		return sw, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return sw, fmt.Errorf("pause: %w", err)
	}
	text := "paused by `pawl pause` at " + s.Now().UTC().Format(time.RFC3339) + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return sw, fmt.Errorf("pause: %w", err)
	}
	return sw, s.record(ctx, name, true)
}

// Resume clears the kill switch of one loop, or of all: the one in .loops and
// those of each loop.
func (s *Service) Resume(ctx context.Context, name string) (Switched, error) {
	sw, err := s.switchFor(ctx, name)
	if err != nil {
		return sw, err
	}
	paths := []string{sw.Switch}
	if name == All {
		names, err := s.defined()
		if err != nil {
			return sw, err
		}
		for _, n := range names {
			paths = append(paths, filepath.Join(".loops", n, engine.PausedFile))
		}
	}
	sw.Was = true
	for _, p := range paths {
		err := os.RemoveAll(filepath.Join(s.ws.Root, p))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return sw, fmt.Errorf("resume: %w", err)
		}
	}
	if err := s.record(ctx, name, false); err != nil {
		return sw, err
	}
	if still := engine.Switch(s.ws.Root, name); still != "" {
		sw.Paused, sw.Switch = true, still
	}
	return sw, nil
}

func (s *Service) switchFor(ctx context.Context, name string) (Switched, error) {
	sw := Switched{Schema: "pawl.switch/v1", Loop: name, Switch: filepath.Join(".loops", engine.PausedFile)}
	if name == All {
		return sw, nil
	}
	row, err := s.find(ctx, name)
	if err != nil {
		return sw, err
	}
	sw.Loop = row.Name
	sw.Switch = filepath.Join(".loops", row.Name, engine.PausedFile)
	return sw, nil
}

// record keeps the store's switch in step with the file, and makes a link of
// it in each loop's audit chain.
func (s *Service) record(ctx context.Context, name string, paused bool) error {
	if s.Store == nil {
		return nil // The file stands, and every engine obeys it.
	}
	rows, err := s.Loops(ctx)
	if err != nil {
		return err
	}
	kind := map[bool]string{true: "pause", false: "resume"}[paused]
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		for _, row := range rows {
			if row.LastN == 0 || name != All && row.Name != name {
				continue
			}
			id := loopID(s.ws.ID, row.Protocol, row.Name)
			// The switch for all lives in its file alone: clearing it must not
			// start loops that were paused one by one.
			if name != All || !paused {
				if err := tx.Pause(ctx, id, paused); err != nil {
					return err
				}
			}
			if err := tx.Link(ctx, id, "kill", "", map[string]string{"verb": kind, "loop": name}); err != nil {
				return err
			}
		}
		return nil
	})
}

// stopWait is how long Kill and Stop wait for holders to end their runs.
const stopWait = 10 * time.Second

// Kill pauses a loop, or all, and waits until no run of it is live.
func (s *Service) Kill(ctx context.Context, name string) (Switched, error) {
	sw, err := s.Pause(ctx, name)
	if err != nil {
		return sw, err
	}
	rows, err := s.Loops(ctx)
	if err != nil {
		return sw, err
	}
	for _, row := range rows {
		if row.State != "running" || name != All && row.Name != sw.Loop {
			continue
		}
		if err := s.waitEnded(ctx, row.last.ID); err != nil {
			return sw, err
		}
		sw.Stopped = append(sw.Stopped, fmt.Sprintf("%s#%d", row.Name, row.LastN))
	}
	return sw, nil
}

// Stop asks the holder of a run to end it, and waits until it has. A run that
// has ended already is returned as it is.
func (s *Service) Stop(ctx context.Context, ref, why string) (RunView, error) {
	run, err := s.runOf(ctx, ref)
	if err != nil {
		return RunView{}, err
	}
	if run.State != loop.RunEnded {
		err := s.Store.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Cancel(ctx, run.ID, why)
			return err
		})
		if err != nil {
			return RunView{}, err
		}
		if err := s.waitEnded(ctx, run.ID); err != nil {
			return RunView{}, err
		}
	}
	return s.Run(ctx, run.ID)
}

// waitEnded polls until a run has ended. A holder on this host that dies
// meanwhile leaves the run to Recover, which the caller has run before.
func (s *Service) waitEnded(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var run loop.Run
		err := s.view(ctx, func(r *store.Reader) (err error) {
			run, err = r.Run(ctx, id)
			return err
		})
		if err == nil && (run.State == loop.RunEnded || s.liveness(run) == "dead") {
			return nil
		}
		select {
		case <-ctx.Done():
			return &loop.HeldError{What: fmt.Sprintf("run #%d did not stop within %s and", run.N, stopWait), Holder: run.Holder}
		case <-tick.C:
		}
	}
}
