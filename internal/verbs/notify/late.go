package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

const (
	lateGrace  = 2 * time.Minute  // a loop is not looked at before
	queueGrace = 15 * time.Minute // a queued run is not looked at before
	mostLate   = 1000             // loops that one look finds
)

// TellLate tells people of the loops of the store, on whatever node, that have stopped
// coming, and of those that come again. It writes nothing if nothing has changed. Those that
// wait because the clock was set back are found only if setBack says that it may have been,
// since nobody has looked for them, which reads all loops.
func TellLate(ctx context.Context, s *store.Store, setBack bool) error {
	var late map[string]lateLoop
	var over []string
	err := s.View(ctx, func(r *store.Reader) error {
		lasting, err := r.LastingNotices(ctx)
		if err != nil {
			return err
		}
		lasting = slices.DeleteFunc(lasting, func(n loop.Notice) bool { return n.Event != loop.NoticeLate })
		if late, err = findLate(ctx, r, s.Now(), lasting, setBack); err != nil {
			return err
		}
		over = nil
		for _, n := range lasting {
			if _, still := late[n.LoopID]; !still {
				over = append(over, n.Key)
			}
			delete(late, n.LoopID)
		}
		return nil
	})
	if err != nil || len(late)+len(over) == 0 {
		return err
	}
	return s.Update(ctx, func(tx *store.Tx) error {
		for _, l := range late {
			if _, err := RaiseLate(ctx, tx, l.Loop, l.why); err != nil {
				return err
			}
		}
		for _, key := range over {
			if _, err := Over(ctx, tx, key, "It comes again."); err != nil {
				return err
			}
		}
		return nil
	})
}

// lateLoop is a loop that has stopped coming, and what one sees of that.
type lateLoop struct {
	loop.Loop

	why string
}

// findLate finds, by id, the loops that are late. Told are notices of some that were.
func findLate(ctx context.Context, r *store.Reader, now time.Time, told []loop.Notice, setBack bool) (map[string]lateLoop, error) {
	loops, err := r.OverdueLoops(ctx, now.Add(-lateGrace), mostLate)
	if err != nil {
		return nil, err
	}
	ahead, err := loopsAhead(ctx, r, now, told, setBack)
	if err != nil {
		return nil, err
	}
	queued, err := r.ForgottenRuns(ctx, now.Add(-queueGrace), mostLate)
	if err != nil {
		return nil, err
	}
	var ids, digests []string
	for _, l := range loops {
		ids, digests = append(ids, l.ID), append(digests, l.Registered.Good)
	}
	for _, l := range ahead {
		digests = append(digests, l.Registered.Good)
	}
	var waiting []string
	for _, run := range queued {
		waiting, digests = append(waiting, run.ID), append(digests, run.Definition)
	}
	newest, err := r.NewestRuns(ctx, ids...)
	if err != nil {
		return nil, err
	}
	slices.Sort(digests)
	defs, err := r.Definitions(ctx, slices.Compact(digests)...)
	if err != nil {
		return nil, err
	}
	found := map[string]lateLoop{}
	for _, l := range loops {
		came := []time.Time{l.Ticked}
		if i := slices.IndexFunc(newest, func(run loop.Run) bool { return run.LoopID == l.ID }); i >= 0 {
			came = append(came, newest[i].Created)
		}
		since := schedule.LastCame(l.Created, now, came...)
		if planned, late := schedule.Late(defs[l.Registered.Good], l.Created, since, now); late {
			why := "no daemon of a node where it lies is at work."
			if l.Registered.Broken != "" {
				why = "its definition broke. " + l.Registered.Broken
			}
			found[l.ID] = lateLoop{l, "It should have come at " + planned.UTC().Format(time.RFC3339) + " and did not: " + why}
		}
	}
	for _, l := range ahead {
		if next, yes := schedule.SetBack(defs[l.Registered.Good], l, now); yes {
			found[l.ID] = lateLoop{l, fmt.Sprintf("The clock of the store was set back: it comes at %s, which was planned before, and not at %s. If the clock is wrong now, set it right.",
				l.Registered.Planned.UTC().Format(time.RFC3339), next.UTC().Format(time.RFC3339))}
		}
	}
	served, err := r.NodesFor(ctx, loop.SeenLately, waiting...)
	if err != nil {
		return nil, err
	}
	for _, run := range queued {
		l, err := r.Loop(ctx, run.LoopID)
		if err != nil {
			return nil, err
		}
		if !l.Paused {
			why := fmt.Sprintf("Its run #%d is queued since %s and nobody takes it up", run.N, run.Created.UTC().Format(time.RFC3339))
			if labels := defs[run.Definition].NodeLabels; len(labels) > 0 && len(served[run.ID]) == 0 {
				why += ": no machine that is there has the labels " + strings.Join(labels, ", ")
			}
			found[l.ID] = lateLoop{l, why + "."}
		}
	}
	switched := map[string]bool{}
	for id, l := range found {
		set, asked := switched[l.WorkspaceID]
		if !asked {
			list, err := r.Switches(ctx, l.WorkspaceID)
			if err != nil {
				return nil, err
			}
			set = len(list) > 0
			switched[l.WorkspaceID] = set
		}
		if set {
			delete(found, id)
		}
	}
	return found, nil
}

// loopsAhead lists loops that may wait because the clock was set back: those of which
// something was told, and with setBack all.
func loopsAhead(ctx context.Context, r *store.Reader, now time.Time, told []loop.Notice, setBack bool) (list []loop.Loop, err error) {
	if setBack {
		if list, err = r.LoopsSetBack(ctx, now, mostLate); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(l loop.Loop) bool { return l.Paused })
	}
	for _, n := range told {
		l, err := r.Loop(ctx, n.LoopID)
		if err != nil && !errors.Is(err, loop.ErrNotFound) {
			return nil, err
		}
		if err == nil && !l.Paused && l.Registered.Due.After(now) {
			list = append(list, l)
		}
	}
	return list, nil
}
