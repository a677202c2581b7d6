package runs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// List returns the newest runs of a loop, newest first; of all loops if name is
// empty.
func (s *Service) List(ctx context.Context, name string, limit int) ([]View, error) {
	list := func(r *store.Reader) ([]loop.Run, error) { return s.newestRuns(ctx, r, limit) }
	if name != "" {
		e, err := s.ws.Loops.Resolve(ctx, name)
		if err != nil {
			return nil, err
		}
		list = func(r *store.Reader) ([]loop.Run, error) { return r.Runs(ctx, e.LoopID(), limit) }
	}
	var runs []loop.Run
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		runs, err = list(r)
		return err
	})
	if err != nil && !lookup.Absent(err) {
		return nil, err
	}
	views := []View{}
	for _, run := range runs {
		v, err := s.ViewOf(ctx, run)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// newestRuns lists the newest runs of the workspace, in the order in which they were
// fired: the clock may have been set back between two of them. Those of loops that
// were forgotten are left out.
func (s *Service) newestRuns(ctx context.Context, r *store.Reader, limit int) (list []loop.Run, err error) {
	forgotten := map[string]bool{}
	for before := int64(0); ; {
		page, err := r.WorkspaceRuns(ctx, s.ws.ID, before, limit)
		if err != nil {
			return nil, err
		}
		for _, run := range page {
			before = run.Seq
			if _, known := forgotten[run.LoopID]; !known {
				l, err := r.Loop(ctx, run.LoopID)
				if err != nil {
					return nil, err
				}
				forgotten[run.LoopID] = l.Forgotten && !s.ws.Formats.Defines(s.ws.Root, l.Name, l.Protocol)
			}
			if !forgotten[run.LoopID] {
				list = append(list, run)
			}
			if len(list) == limit {
				return list, nil
			}
		}
		if len(page) < limit {
			return list, nil
		}
	}
}

// Show finds a RUN: a run id, LOOP#N, or LOOP for its newest.
func (s *Service) Show(ctx context.Context, ref string) (View, error) {
	run, err := s.ws.Run(ctx, ref)
	if err != nil {
		return View{}, err
	}
	v, err := s.ViewOf(ctx, run)
	if err != nil {
		return v, err
	}
	called := false
	err = s.ws.View(ctx, func(r *store.Reader) error {
		if v.Family, err = lookup.FamilyOf(ctx, r, run.LoopID); err != nil {
			return err
		}
		_, err = r.LastOf(ctx, run.ID, loop.EventPawlTool)
		if called = err == nil; errors.Is(err, loop.ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil || !called {
		return v, err
	}
	const page = 500
	for after, full := int64(0), true; full; {
		events, _, err := s.Events(ctx, run.ID, after, page)
		if err != nil {
			return v, err
		}
		for _, e := range events {
			if after = e.Seq; e.Kind == loop.EventPawlTool {
				v.Calls = append(v.Calls, e.Text)
			}
		}
		full = len(events) == page // A live run may get more, for which nobody waits here.
	}
	return v, nil
}

// Keyed finds the run of the workspace that was fired with a key, or loop.ErrNotFound.
func (s *Service) Keyed(ctx context.Context, key string) (run loop.Run, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) error {
		if run, err = r.RunByKey(ctx, key); err == nil {
			run, err = s.ws.RunByID(ctx, r, run.ID)
		}
		return err
	})
	return run, err
}

// Events lists events of a run after a sequence number, oldest first, and says
// whether the run can still get more.
func (s *Service) Events(ctx context.Context, runID string, after int64, limit int) (events []loop.Event, more bool, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) error {
		// The state is read first: what an ended run wrote is then all there.
		run, err := s.ws.RunByID(ctx, r, runID)
		if err != nil {
			return err
		}
		events, err = r.Events(ctx, runID, after, limit)
		more = run.State != loop.RunEnded && !lookup.IsLeft(s.ws.Liveness(run)) || len(events) == limit
		return err
	})
	return events, more, lookup.OrNoRun(err, runID)
}

// FeedHead is the newest place in the store's feed.
func (s *Service) FeedHead(ctx context.Context) (loop.Cursor, error) {
	return s.feed().Head(ctx)
}

// WaitForRun returns when the feed says after a cursor that a run has changed, and
// from where to wait for its next change. It also returns now and then without a
// change: the process of a run may have died, which no row says.
func (s *Service) WaitForRun(ctx context.Context, runID string, after loop.Cursor) (loop.Cursor, error) {
	err := s.ws.View(ctx, func(r *store.Reader) error {
		_, err := s.ws.RunByID(ctx, r, runID)
		return err
	})
	if err != nil {
		return after, lookup.OrNoRun(err, runID)
	}
	_, after, err = s.feed().Next(ctx, after, 2*time.Second, func(e loop.FeedEntry) bool { return e.Kind == loop.FeedRun && e.ID == runID })
	if errors.Is(err, store.ErrFeedPruned) { // It was followed too slowly: the rows say how it is now.
		return s.FeedHead(ctx)
	}
	return after, err
}

func (s *Service) feed() event.Feed { return event.Feed{Store: s.ws.Store} }

// Diff is what a run changed, as a patch. It is empty for a run that changed
// nothing. Of work that lies in pawl's home, and in no commit, the error says
// where.
func (s *Service) Diff(ctx context.Context, ref string) (Patch, error) {
	run, err := s.ws.ChangingRun(ctx, ref)
	if err != nil {
		return Patch{}, err
	}
	v, err := s.ViewOf(ctx, run)
	if err != nil {
		return Patch{}, err
	}
	to := v.Commit
	if to == "" && v.Snapshot != "" {
		if id, ok, err := s.ws.Repo.Ref(ctx, v.Snapshot); err != nil || ok {
			if to = id; err != nil {
				return Patch{}, err
			}
		}
	}
	if to == "" {
		err := s.ws.View(ctx, func(r *store.Reader) error {
			kept, err := keptCopies(ctx, s.ws, r, s.Home)
			if i := slices.IndexFunc(kept, func(k Snapshot) bool { return k.RunID == v.ID }); i >= 0 {
				return keptFault("diff", kept[i], nil)
			}
			return err
		})
		if err != nil && !lookup.Absent(err) {
			return Patch{}, err
		}
	}
	node, path, err := s.ws.Elsewhere(ctx, run)
	if err != nil {
		return Patch{}, err
	}
	elsewhere := lookup.ElsewhereFault("diff "+ref, s.ws.RunName(ctx, run), node, path)
	if node != "" && to == "" && v.Snapshot != "" {
		return Patch{}, elsewhere
	}
	if to == "" || v.Base == "" {
		return newPatch(ref, nil), nil
	}
	patch, err := s.ws.Repo.Diff(ctx, v.Base, to)
	if err != nil && node != "" {
		return Patch{}, elsewhere // Nobody has fetched it.
	}
	if err != nil {
		return Patch{}, err
	}
	return newPatch(ref, patch), nil
}
