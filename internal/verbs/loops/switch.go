package loops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// All as a name means every loop of the workspace.
const All = ""

// Switched says which switch was set or cleared, schema pawl.switch/v1.
type Switched struct {
	Schema   string           `json:"schema"`
	Loop     string           `json:"loop,omitempty"` // empty: all loops
	Paused   bool             `json:"paused"`
	Switch   string           `json:"switch"`
	PausedBy loop.KillSwitch  `json:"paused_by,omitzero"` // the switch that still pauses what was resumed
	Scope    loop.SwitchScope `json:"scope"`
	Why      string           `json:"why,omitempty"`
	Was      bool             `json:"was"`             // it had this state before
	Below    []string         `json:"below,omitempty"` // names of the loops below it that were paused or resumed with it
	Stopped  []string         `json:"stopped,omitempty"`
	Silent   []Silent         `json:"silent,omitempty"` // runs whose holders did not answer
	Holds    []string         `json:"holds,omitempty"`  // holds that were cleared, in words
}

// Silent is a run whose holder did not answer a kill switch.
type Silent struct {
	Run       string      `json:"run"` // LOOP#N
	ID        string      `json:"id"`
	Workspace string      `json:"workspace"`
	Phase     loop.Phase  `json:"phase"`
	Node      string      `json:"node,omitempty"`
	Holder    loop.Holder `json:"holder"`
	Since     time.Time   `json:"since"` // when it was last heard of
}

// add notes what became of runs that the switch stops. The error names those whose holders
// did not answer.
func (sw *Switched) add(h runs.Halted) error {
	for _, r := range h.Stopped {
		sw.Stopped = append(sw.Stopped, fmt.Sprintf("%s#%d", r.Loop, r.N))
	}
	for _, r := range h.Silent {
		sw.Silent = append(sw.Silent, Silent{fmt.Sprintf("%s#%d", r.Loop, r.N), r.ID, r.Workspace, r.Phase, r.Node, r.Holder, r.Heard})
	}
	return runs.SilentFault(h.Silent)
}

// Pause sets the kill switch of one loop, or of all. It makes the file first, which
// works without a store, and which every engine of this node watches; then it sets that
// of the store, which those of all nodes watch, and pauses the loops that its runs have made.
// For all loops it waits like Kill.
func (s *Service) Pause(ctx context.Context, by loop.Actor, name, why string) (Switched, error) {
	if name == All {
		return s.Kill(ctx, by, name, why)
	}
	return s.pause(ctx, by, name, why)
}

func (s *Service) pause(ctx context.Context, by loop.Actor, name, why string) (Switched, error) {
	sw, err := s.switchFor(ctx, name)
	if err != nil {
		return sw, err
	}
	sw.Paused, sw.Why = true, why
	if sw.Was, err = s.setSwitch(sw.Switch); err != nil {
		return sw, err
	}
	set, err := s.recordPause(ctx, by, sw)
	sw.Was = sw.Was && !set
	if err != nil {
		return sw, err
	}
	below, err := s.below(ctx, sw.Loop)
	if err != nil {
		return sw, err
	}
	sw.Below, err = s.pauseBelow(ctx, by, sw, below)
	return sw, err
}

// setSwitch makes the file of a switch, and reports whether it existed before. It
// never writes through a link out of the workspace.
func (s *Service) setSwitch(rel string) (was bool, err error) {
	if _, err := os.Lstat(filepath.Join(s.ws.Root, rel)); err == nil {
		return true, nil
	}
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return false, switchFault("pause", rel, err)
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return false, switchFault("pause", rel, err)
	}
	file, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	if err != nil {
		return false, switchFault("pause", rel, err)
	}
	// Only the existence of the file counts: a full disk does not prevent a pause.
	_, _ = fmt.Fprintf(file, "paused by `pawl pause` at %s\n", s.ws.Now().UTC().Format(time.RFC3339))
	_ = file.Close()
	return false, nil
}

// switchFault is the error if a switch cannot be set or cleared.
func switchFault(verb, rel string, err error) error {
	return &loop.Fault{
		Exit: loop.ExitError, What: verb + " by " + rel, Why: err.Error(), Err: err,
		Fix: "see that .loops is a folder of this workspace and no link out of it, and that you may write there",
	}
}

// Resume clears the kill switch of one loop with that of those that were paused with it, or of all:
// the one in .loops and those of each loop. It also clears the holds after failures: those of the loop, and of the
// account that it would use now.
func (s *Service) Resume(ctx context.Context, by loop.Actor, name string) (Switched, error) {
	sw, err := s.switchFor(ctx, name)
	if err != nil {
		return sw, err
	}
	list, err := s.entriesOf(ctx, sw.Loop)
	if err == nil {
		err = s.ws.Loops.LoadDefinitions(ctx, list)
	}
	if err != nil {
		return sw, err
	}
	if by.Role == loop.RoleAgent {
		if err := s.checkAgentResumes(ctx, by, sw, list); err != nil {
			return sw, err
		}
	}
	before, err := s.anyPaused(ctx, sw.Loop, list)
	if err != nil {
		return sw, err
	}
	paths := []string{sw.Switch}
	if name == All {
		if paths, err = s.switchFiles(); err != nil {
			return sw, err
		}
	}
	for _, p := range paths {
		if err := s.clearSwitch(p); err != nil {
			return sw, err
		}
	}
	if err := s.recordResume(ctx, by, sw); err != nil {
		return sw, err
	}
	if sw.Below, err = s.resumeBelow(ctx, by, sw); err != nil {
		return sw, err
	}
	if sw.Holds, err = s.clearHolds(ctx, list); err != nil {
		return sw, err
	}
	still := engine.Switch(s.ws.Root, sw.Loop)
	for _, e := range list {
		if still.IsZero() && name != All {
			still = engine.Switch(s.ws.Root, sw.Loop, e.Definition.SwitchPaths()...)
		}
	}
	if still.IsZero() {
		if still, err = s.ws.Paused(ctx); err != nil {
			return sw, err
		}
	}
	if !still.IsZero() {
		sw.Paused, sw.Switch, sw.PausedBy = true, still.String(), still
	}
	sw.Was = before == sw.Paused
	return sw, nil
}

// checkAgentResumes refuses an agent to resume what a person or a failure has stopped: only what
// an agent has paused it may resume.
func (s *Service) checkAgentResumes(ctx context.Context, by loop.Actor, sw Switched, list []catalog.Entry) error {
	refuse := func(why string) error {
		f := &loop.Fault{Exit: loop.ExitRefused, What: by.Who + " may not resume " + sw.Loop, Why: why, Err: loop.ErrRole}
		return f.WithAdvice(loop.Advise("let a person do it: {1}", loop.PawlCommand("resume", sw.Loop)))
	}
	if all, err := s.ws.Paused(ctx); err != nil || !all.IsZero() || sw.Loop == All {
		if err != nil {
			return err
		}
		return refuse("every loop is paused, which a person has done")
	}
	for _, e := range list {
		var last pausing
		var holds []loop.Hold
		subjects := s.Engine.HoldSubjects(ctx, e.LoopID(), lookup.Loop{Entry: e}.Usable())
		err := s.ws.View(ctx, func(r *store.Reader) (err error) {
			if last, err = lastPausing(ctx, r, e.LoopID()); err != nil || len(subjects) == 0 {
				return err
			}
			holds, err = r.Holds(ctx, subjects...)
			return err
		})
		switch {
		case err != nil:
			return err
		case slices.ContainsFunc(holds, s.isHeld):
			return refuse("it rests after failures")
		case e.Row.Paused && last.Actor.Role != loop.RoleAgent:
			return refuse("a person has paused it")
		case !e.Row.Paused && !engine.Switch(s.ws.Root, e.Name, e.Definition.SwitchPaths()...).IsZero():
			return refuse("somebody has set its switch by a file")
		}
	}
	return nil
}

// pausing is how a switch was set or cleared, as the audit chain has it.
type pausing struct {
	Verb  string     `json:"verb"`
	With  string     `json:"with"` // name of the loop above, whose switch was set or cleared; empty: it was this loop's
	Actor loop.Actor `json:"actor"`
}

// takesOver reports whether a person pauses what an agent has paused: from then on only a person
// resumes it.
func takesOver(ctx context.Context, tx *store.Tx, by loop.Actor, loopID string) (bool, error) {
	if by.Role == loop.RoleAgent {
		return false, nil
	}
	last, err := lastPausing(ctx, &tx.Reader, loopID)
	return last.Actor.Role == loop.RoleAgent, err
}

// lastPausing is how the switch of a loop was set or cleared the last time.
func lastPausing(ctx context.Context, r *store.Reader, loopID string) (last pausing, err error) {
	links, err := r.Chain(ctx, loopID)
	for _, l := range slices.Backward(links) {
		if l.Kind == loop.LinkKill && l.RunID == "" {
			return last, json.Unmarshal([]byte(l.Body), &last)
		}
	}
	return last, err
}

// clearHolds clears the holds of loops and of their accounts, and describes them. Loops that
// were to come again at the end of their rest come now.
func (s *Service) clearHolds(ctx context.Context, list []catalog.Entry) (words []string, err error) {
	if s.ws.Store == nil || s.Engine == nil {
		return nil, nil
	}
	var subjects []string
	for _, e := range list {
		subjects = append(subjects, s.Engine.HoldSubjects(ctx, e.LoopID(), lookup.Loop{Entry: e}.Usable())...)
	}
	if len(subjects) == 0 {
		return nil, nil
	}
	slices.Sort(subjects)
	subjects = slices.Compact(subjects)
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		words = nil
		for _, e := range list {
			if err := tx.EndRest(ctx, e.LoopID()); err != nil {
				return err
			}
		}
		holds, err := tx.Holds(ctx, subjects...)
		for _, h := range holds {
			if _, clearErr := tx.ClearHold(ctx, h.Subject); clearErr != nil {
				return clearErr
			}
			if s.isHeld(h) {
				words = append(words, string(h.Reason)+" "+plan.HoldWords(h))
			}
		}
		return err
	})
	return words, err
}

// isHeld reports whether a hold keeps runs from starting now.
func (s *Service) isHeld(h loop.Hold) bool {
	return h.Reason != "" && (h.Until.IsZero() || s.ws.Now().Before(h.Until))
}

// Paused returns a kill switch that stops all loops of the workspace, or the zero KillSwitch.
func (s *Service) Paused(ctx context.Context) (loop.KillSwitch, error) { return s.ws.Paused(ctx) }

// anyPaused reports whether a switch keeps the loop, or any of the list, from running.
func (s *Service) anyPaused(ctx context.Context, name string, list []catalog.Entry) (bool, error) {
	all, err := s.ws.Paused(ctx)
	return !all.IsZero() || !engine.Switch(s.ws.Root, name).IsZero() || slices.ContainsFunc(list, func(e catalog.Entry) bool {
		return e.Row.Paused || !engine.Switch(s.ws.Root, e.Name, e.Definition.SwitchPaths()...).IsZero()
	}), err
}

// switchFiles lists the paths of kill switches, also in folders without a definition:
// pausing a loop that only the store has makes such a folder.
func (s *Service) switchFiles() ([]string, error) {
	paths := []string{filepath.Join(".loops", loop.PausedFile)}
	entries, err := os.ReadDir(filepath.Join(s.ws.Root, ".loops"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, switchFault("resume", ".loops", err)
	}
	for _, e := range entries {
		rel := filepath.Join(".loops", e.Name(), loop.PausedFile)
		if _, err := os.Lstat(filepath.Join(s.ws.Root, rel)); err == nil || e.IsDir() {
			paths = append(paths, rel)
		}
	}
	return paths, nil
}

// clearSwitch removes a switch. It removes neither the content of a folder of that
// name nor anything outside of the workspace.
func (s *Service) clearSwitch(rel string) error {
	if _, err := os.Lstat(filepath.Join(s.ws.Root, rel)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return switchFault("resume", rel, err)
	}
	defer func() { _ = root.Close() }()
	err = root.Remove(rel)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, statErr := root.Lstat(rel); statErr == nil && info.IsDir() {
		return &loop.Fault{
			Exit: loop.ExitError, What: "resume by " + rel, Why: "it is a folder that is not empty", Err: err,
			Fix: "move away what is in it; it is not removed with the switch",
		}
	}
	return switchFault("resume", rel, err)
}

func (s *Service) switchFor(ctx context.Context, name string) (Switched, error) {
	sw := Switched{Schema: "pawl.switch/v1", Scope: loop.SwitchWorkspace, Loop: name, Switch: filepath.Join(".loops", loop.PausedFile)}
	if name == All {
		return sw, nil
	}
	e, err := s.ws.Loops.Resolve(ctx, name)
	if err != nil {
		return sw, err
	}
	sw.Loop, sw.Scope = e.Name, loop.SwitchLoop
	sw.Switch = filepath.Join(".loops", e.Name, loop.PausedFile)
	return sw, nil
}

// recordPause sets the store's switch like the file, with a link in the audit chains of
// those that it stops. It reports false if it was set before. Without a store the file is
// enough: every engine of this node obeys it.
func (s *Service) recordPause(ctx context.Context, by loop.Actor, sw Switched) (set bool, err error) {
	if s.ws.Store == nil {
		return false, nil
	}
	list, err := s.entriesOf(ctx, sw.Loop)
	if err != nil {
		return false, err
	}
	body := map[string]any{"verb": "pause", "loop": sw.Loop}
	if sw.Why != "" {
		body["why"] = sw.Why
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		set = false
		if sw.Loop == All {
			if set, err = tx.SetSwitch(ctx, by, s.ws.ID, sw.Why); err != nil || !set && sw.Was {
				return err
			}
			if err := tx.LinkBy(ctx, by, s.ws.ID, loop.LinkKill, "", body); err != nil {
				return err
			}
		}
		for _, e := range list {
			// The switch for all loops is one of its own: clearing it must not start
			// loops that were paused one by one.
			id := e.LoopID()
			if onlyFile(e) || sw.Loop != All && e.Row.Paused && sw.Was {
				if again, err := takesOver(ctx, tx, by, id); err != nil || !again {
					if err != nil {
						return err
					}
					continue
				}
			}
			if sw.Loop != All {
				if err := tx.Pause(ctx, id, true); err != nil {
					return err
				}
				set = set || !e.Row.Paused
			}
			if err := tx.LinkBy(ctx, by, id, loop.LinkKill, "", body); err != nil {
				return err
			}
		}
		return nil
	})
	return set, err
}

// recordResume clears the store's switches like the files, with links in the audit
// chains.
func (s *Service) recordResume(ctx context.Context, by loop.Actor, sw Switched) error {
	if s.ws.Store == nil {
		return nil
	}
	list, err := s.entriesOf(ctx, sw.Loop)
	if err != nil {
		return err
	}
	body := map[string]any{"verb": "resume", "loop": sw.Loop}
	return s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		if sw.Loop == All {
			cleared, err := tx.ClearSwitch(ctx, s.ws.ID)
			if err == nil && cleared {
				err = tx.LinkBy(ctx, by, s.ws.ID, loop.LinkKill, "", body)
			}
			if err != nil {
				return err
			}
		}
		for _, e := range list {
			if onlyFile(e) {
				continue
			}
			if err := tx.Pause(ctx, e.LoopID(), false); err != nil {
				return err
			}
			if err := tx.LinkBy(ctx, by, e.LoopID(), loop.LinkKill, "", body); err != nil {
				return err
			}
		}
		return nil
	})
}

// onlyFile reports whether the store has nothing of a loop but what its file says: it never ran.
func onlyFile(e catalog.Entry) bool { return e.Row.LastN == 0 && e.File != "" }

// entriesOf lists the loops of that name, whatever their protocol, or all loops,
// without their definitions.
func (s *Service) entriesOf(ctx context.Context, name string) ([]catalog.Entry, error) {
	if name == All {
		return s.ws.Loops.List(ctx, catalog.Page{Bare: true})
	}
	return s.ws.Loops.FindNamed(ctx, name)
}

// Kill pauses a loop, or all, and blocks until every holder of their runs has answered:
// the run has ended, or no program of it is left. It names those runs; if a holder does not
// answer in time, the error does, and the result names it too.
func (s *Service) Kill(ctx context.Context, by loop.Actor, name, why string) (Switched, error) {
	since := s.ws.Now().Truncate(time.Millisecond)
	sw, err := s.pause(ctx, by, name, why)
	if err != nil || s.ws.Store == nil {
		return sw, err
	}
	entries, err := s.entriesOf(ctx, sw.Loop)
	if err != nil {
		return sw, err
	}
	list, err := s.ws.WithRuns(ctx, entries)
	if err != nil {
		return sw, err
	}
	var ids []string
	live := map[string]string{} // the names of runs, by id
	for _, l := range list {
		if sw.Loop != All {
			ids = append(ids, l.LoopID())
		}
		if l.Last != nil && (l.Last.State == loop.RunRunning || l.Last.State == loop.RunSettling) {
			live[l.Last.ID] = fmt.Sprintf("%s#%d", l.Name, l.Row.LastN)
		}
		if l.Last != nil && l.Last.State == loop.RunEnded && l.Last.Outcome == loop.OutcomePaused && !l.Last.Ended.Before(since) {
			sw.Stopped = append(sw.Stopped, fmt.Sprintf("%s#%d", l.Name, l.Row.LastN))
		}
	}
	below, err := s.below(ctx, sw.Loop)
	if err != nil {
		return sw, err
	}
	for _, l := range below {
		ids = append(ids, l.ID)
	}
	if sw.Loop != All && len(ids) == 0 {
		return sw, nil
	}
	halted, err := s.WaitHalted(ctx, ids...)
	if err != nil {
		return sw, err
	}
	for _, r := range slices.Concat(halted.Stopped, halted.Silent) {
		delete(live, r.ID)
	}
	sw.Stopped = append(sw.Stopped, slices.Sorted(maps.Values(live))...) // They have ended before anybody waited for them.
	return sw, sw.add(halted)
}
