package loops

import (
	"context"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// below lists the loops that runs of a loop have made, and what those have made. All loops have
// none: the switch for all stops every loop anyway.
func (s *Service) below(ctx context.Context, name string) (list []loop.Loop, err error) {
	if name == All || s.ws.Store == nil {
		return nil, nil
	}
	entries, err := s.entriesOf(ctx, name)
	if err != nil {
		return nil, err
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		list = nil
		for _, e := range entries {
			more, err := r.Descendants(ctx, e.LoopID())
			if err != nil {
				return err
			}
			list = append(list, more...)
		}
		return nil
	})
	return list, err
}

func switchFile(name string) string { return filepath.Join(".loops", name, loop.PausedFile) }

// pauseBelow sets the switches of the loops below one, of those that are not paused yet, and returns
// their names. Each has a link that names the one that they were paused with.
func (s *Service) pauseBelow(ctx context.Context, by loop.Actor, sw Switched, below []loop.Loop) (names []string, err error) {
	for _, l := range below {
		if _, err := s.setSwitch(switchFile(l.Name)); err != nil {
			return nil, err
		}
	}
	if len(below) == 0 {
		return nil, nil
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		names = nil
		for _, l := range below {
			now, err := tx.LockLoop(ctx, l.ID)
			if err != nil {
				return err
			}
			if now.Paused {
				again, err := takesOver(ctx, tx, by, l.ID)
				if err == nil && again {
					err = tx.LinkBy(ctx, by, l.ID, loop.LinkKill, "", map[string]any{"verb": "pause", "loop": l.Name})
				}
				if err != nil {
					return err
				}
				continue
			}
			if err := tx.Pause(ctx, l.ID, true); err != nil {
				return err
			}
			body := map[string]any{"verb": "pause", "loop": l.Name, "with": sw.Loop}
			if sw.Why != "" {
				body["why"] = sw.Why
			}
			if err := tx.LinkBy(ctx, by, l.ID, loop.LinkKill, "", body); err != nil {
				return err
			}
			names = append(names, l.Name)
		}
		return nil
	})
	return names, err
}

// resumeBelow clears the switches of the loops that were paused with one, and not those that were
// paused by themselves before or after. It returns their names.
func (s *Service) resumeBelow(ctx context.Context, by loop.Actor, sw Switched) (names []string, err error) {
	below, err := s.below(ctx, sw.Loop)
	if err != nil || len(below) == 0 {
		return nil, err
	}
	var with []loop.Loop
	err = s.ws.View(ctx, func(r *store.Reader) error {
		with = nil
		for _, l := range below {
			last, err := lastPausing(ctx, r, l.ID)
			if err != nil {
				return err
			}
			if l.Paused && last.Verb == "pause" && last.With == sw.Loop {
				with = append(with, l)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, l := range with {
		if err := s.clearSwitch(switchFile(l.Name)); err != nil {
			return nil, err
		}
		names = append(names, l.Name)
	}
	if len(with) == 0 {
		return nil, nil
	}
	return names, s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		for _, l := range with {
			if err := tx.Pause(ctx, l.ID, false); err != nil {
				return err
			}
			if err := tx.LinkBy(ctx, by, l.ID, loop.LinkKill, "", map[string]any{"verb": "resume", "loop": l.Name, "with": sw.Loop}); err != nil {
				return err
			}
		}
		return nil
	})
}
