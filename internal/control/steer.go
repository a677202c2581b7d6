package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/waiting"
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
	Holds   []string `json:"holds,omitempty"` // what kept loops from acting and was cleared, in words
}

// Pause sets the kill switch of one loop, or of all. The file comes first: it
// works without a store, and every engine watches it.
func (s *Service) Pause(ctx context.Context, by loop.Actor, name string) (Switched, error) {
	sw, err := s.switchFor(ctx, name)
	if err != nil {
		return sw, err
	}
	sw.Paused = true
	if sw.Was, err = s.set(sw.Switch); err != nil || sw.Was {
		return sw, err
	}
	return sw, s.record(ctx, by, sw.Loop, true)
}

// set makes the file of a switch, and reports whether it stood before. It
// never writes through a link that leads out of the workspace.
func (s *Service) set(rel string) (was bool, err error) {
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
	// Existence is all that counts: a disk that is full keeps no switch from being set.
	_, _ = fmt.Fprintf(file, "paused by `pawl pause` at %s\n", s.Now().UTC().Format(time.RFC3339))
	_ = file.Close()
	return false, nil
}

// switchFault says how a person can help where a switch cannot be moved.
func switchFault(verb, rel string, err error) error {
	return &loop.Fault{
		Exit: loop.ExitError, What: verb + " by " + rel, Why: err.Error(), Err: err,
		Fix: "see that .loops is a folder of this workspace and no link out of it, and that you may write there",
	}
}

// Resume clears the kill switch of one loop, or of all: the one in .loops and
// those of each loop. It also clears what keeps a loop from acting after
// failures: its own rest, and that of the account that it would act with now.
func (s *Service) Resume(ctx context.Context, by loop.Actor, name string) (Switched, error) {
	sw, err := s.switchFor(ctx, name)
	if err != nil {
		return sw, err
	}
	list, err := s.namedOrAll(ctx, sw.Loop)
	if err == nil {
		err = s.loops.Load(ctx, list)
	}
	if err != nil {
		return sw, err
	}
	before := s.anyPaused(sw.Loop, list)
	paths := []string{sw.Switch}
	if name == All {
		if paths, err = s.switchFiles(); err != nil {
			return sw, err
		}
	}
	for _, p := range paths {
		if err := s.clear(p); err != nil {
			return sw, err
		}
	}
	if err := s.record(ctx, by, sw.Loop, false); err != nil {
		return sw, err
	}
	if sw.Holds, err = s.clearHolds(ctx, list); err != nil {
		return sw, err
	}
	still := engine.Switch(s.ws.Root, sw.Loop)
	for _, e := range list {
		if still == "" && name != All {
			still = engine.Switch(s.ws.Root, sw.Loop, e.Definition.SwitchPaths()...)
		}
	}
	if still != "" {
		sw.Paused, sw.Switch = true, still
	}
	sw.Was = before == sw.Paused
	return sw, nil
}

// clearHolds forgets why loops rest, and says what that was. Loops rest by
// themselves until a time, or until somebody does this.
func (s *Service) clearHolds(ctx context.Context, list []catalog.Entry) (words []string, err error) {
	if s.Store == nil || s.Engine == nil {
		return nil, nil
	}
	var subjects []string
	for _, e := range list {
		subjects = append(subjects, s.Engine.HoldSubjects(ctx, e.LoopID(), loopState{Entry: e}.usable())...)
	}
	if len(subjects) == 0 {
		return nil, nil
	}
	slices.Sort(subjects)
	subjects = slices.Compact(subjects)
	err = s.Store.Update(ctx, func(tx *store.Tx) error {
		words = nil
		holds, err := tx.Holds(ctx, subjects...)
		for _, h := range holds {
			if _, clearErr := tx.ClearHold(ctx, h.Subject); clearErr != nil {
				return clearErr
			}
			if h.Reason != "" && (h.Until.IsZero() || s.Now().Before(h.Until)) {
				words = append(words, string(h.Reason)+" "+plan.HoldWords(h))
			}
		}
		return err
	})
	return words, err
}

// StopsAll reports whether a switch, as LoopRow and Switched name it, is the one
// of all loops.
func StopsAll(sw string) bool { return engine.StopsAll(sw) }

// ResumeCommand is the command that clears what a loop is paused by.
func ResumeCommand(name, sw string) loop.Advice { return engine.ClearedBy(name, sw) }

// anyPaused reports whether a switch keeps the loop, or any of the list, from running.
func (s *Service) anyPaused(name string, list []catalog.Entry) bool {
	return engine.Switch(s.ws.Root, name) != "" || slices.ContainsFunc(list, func(e catalog.Entry) bool {
		return e.Row.Paused || engine.Switch(s.ws.Root, e.Name, e.Definition.SwitchPaths()...) != ""
	})
}

// switchFiles lists where kill switches of the workspace may stand: also in
// folders that hold no definition, because pausing a loop of the store makes one.
func (s *Service) switchFiles() ([]string, error) {
	paths := []string{filepath.Join(".loops", engine.PausedFile)}
	entries, err := os.ReadDir(filepath.Join(s.ws.Root, ".loops"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, switchFault("resume", ".loops", err)
	}
	for _, e := range entries {
		rel := filepath.Join(".loops", e.Name(), engine.PausedFile)
		if _, err := os.Lstat(filepath.Join(s.ws.Root, rel)); err == nil || e.IsDir() {
			paths = append(paths, rel)
		}
	}
	return paths, nil
}

// clear removes a switch and nothing else: no content of a folder of that
// name, and nothing outside of the workspace.
func (s *Service) clear(rel string) error {
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
	sw := Switched{Schema: "pawl.switch/v1", Loop: name, Switch: filepath.Join(".loops", engine.PausedFile)}
	if name == All {
		return sw, nil
	}
	e, err := s.loops.Resolve(ctx, name)
	if err != nil {
		return sw, err
	}
	sw.Loop = e.Name
	sw.Switch = filepath.Join(".loops", e.Name, engine.PausedFile)
	return sw, nil
}

// record keeps the store's switch in step with the file, and makes a link of
// it in each loop's audit chain.
func (s *Service) record(ctx context.Context, by loop.Actor, name string, paused bool) error {
	if s.Store == nil {
		return nil // The file stands, and every engine obeys it.
	}
	list, err := s.namedOrAll(ctx, name)
	if err != nil {
		return err
	}
	kind := map[bool]string{true: "pause", false: "resume"}[paused]
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		for _, e := range list {
			if e.Row.LastN == 0 {
				continue
			}
			id := e.LoopID()
			// The switch for all lives in its file alone: clearing it must not
			// start loops that were paused one by one.
			if name != All || !paused {
				if err := tx.Pause(ctx, id, paused); err != nil {
					return err
				}
			}
			if err := tx.LinkBy(ctx, by, id, loop.LinkKill, "", map[string]any{"verb": kind, "loop": name}); err != nil {
				return err
			}
		}
		return nil
	})
}

// namedOrAll lists the loops of that name, whatever their protocol, or all loops,
// without their definitions.
func (s *Service) namedOrAll(ctx context.Context, name string) ([]catalog.Entry, error) {
	if name == All {
		return s.loops.List(ctx, catalog.Page{Bare: true})
	}
	return s.loops.Named(ctx, name)
}

// stopWait is how long Kill and Stop wait for holders to end their runs, unless
// Deps say another time.
const stopWait = 10 * time.Second

// Kill pauses a loop, or all, and waits until no run of it is live. It names
// the runs that ended by it.
func (s *Service) Kill(ctx context.Context, by loop.Actor, name string) (Switched, error) {
	since := s.Now().Truncate(time.Millisecond)
	sw, err := s.Pause(ctx, by, name)
	if err != nil {
		return sw, err
	}
	entries, err := s.namedOrAll(ctx, sw.Loop)
	if err != nil {
		return sw, err
	}
	list, err := s.statesOf(ctx, entries)
	for _, l := range list {
		if l.last == nil {
			continue
		}
		live := s.liveness(*l.last) == "running"
		if live {
			if err := s.waitEnded(ctx, *l.last); err != nil {
				return sw, err
			}
		}
		if live || l.last.Outcome == loop.OutcomePaused && !l.last.Ended.Before(since) {
			sw.Stopped = append(sw.Stopped, fmt.Sprintf("%s#%d", l.Name, l.Row.LastN))
		}
	}
	return sw, err
}

// Stop asks the holder of a run to end it, and waits until it has. A run that
// has ended already is returned as it is.
func (s *Service) Stop(ctx context.Context, by loop.Actor, ref, why string) (RunView, error) {
	run, err := s.runOf(ctx, ref)
	if err != nil {
		return RunView{}, err
	}
	if run.State != loop.RunEnded {
		err := s.Store.Update(ctx, func(tx *store.Tx) error {
			asked, err := tx.Cancel(ctx, run.ID, why)
			if err != nil || !asked {
				return err
			}
			return tx.LinkBy(ctx, by, run.LoopID, loop.LinkKill, run.ID, map[string]any{"verb": "stop", "why": why})
		})
		if err != nil {
			return RunView{}, err
		}
		if err := s.waitEnded(ctx, run); err != nil {
			return RunView{}, err
		}
	}
	return s.Run(ctx, run.ID)
}

// waitEnded polls until a run has ended. A holder of this host that died leaves
// the run to Recover; one that is stopped is ended first, because what it was
// about to do would happen when it is continued.
func (s *Service) waitEnded(ctx context.Context, seen loop.Run) error {
	by := ""
	if seen.Holder != (loop.Holder{}) {
		by = seen.Holder.String()
	}
	defer waiting.For(ctx, "run "+s.fullName(ctx, seen)+" to end", func() string { return by })()
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.StopWait, stopWait))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		run, err := s.endedRun(ctx, seen.ID)
		if err == nil && run.State == loop.RunEnded {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if run.ID != "" { // The last look is often the one that the end of the wait has cut short.
			seen = run
		}
		select {
		case <-ctx.Done():
			if err := context.Cause(caller); err != nil {
				return fmt.Errorf("wait for run %s: %w", s.fullName(caller, seen), err)
			}
			return s.stillRuns(context.WithoutCancel(caller), seen)
		case <-tick.C:
		}
	}
}

// stillRuns says of a run that did not end what is known of it, and what a person
// can do.
func (s *Service) stillRuns(ctx context.Context, run loop.Run) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // Only for the name.
	defer cancel()
	name, who := s.fullName(ctx, run), run.Holder
	held := &loop.HeldError{What: "run " + name, Holder: who}
	recovers, shows := loop.Pawl("recover"), loop.Pawl("show", name)
	f := &loop.Fault{Exit: loop.ExitHeld, What: fmt.Sprintf("run %s did not stop within %s", name, cmp.Or(s.StopWait, stopWait)), Err: held}
	if who == (loop.Holder{}) {
		f.Why = fmt.Sprintf("it is %s in phase %s, and no process holds it", run.State, run.Phase)
		return f.Advised(loop.Advise("run {1}, which concludes what nobody holds, and look at {2}", recovers, shows))
	}
	f.Why = fmt.Sprintf("%s holds it in phase %s and was asked to end it", who, run.Phase)
	end := fmt.Sprintf("kill -KILL %d on %s", who.PID, who.Node)
	if s.HolderState(who) == loop.HolderElsewhere {
		f.Why += "; that is another host, or this host before it was started again, so that nothing more is known here"
		return f.Advised(loop.Advise(fmt.Sprintf("wait for it, or end it there (%s), and then run {1}; a run whose holder is gone is free at %s at the latest",
			end, run.LeaseUntil.UTC().Format(time.RFC3339)), recovers))
	}
	f.Why += "; the process still runs"
	return f.Advised(loop.Advise("wait for it ({1}), or end the process ("+end+") and then run {2}, which concludes the run and keeps its work", shows, recovers))
}

// fullName is LOOP#N, or the id of a run whose loop cannot be read.
func (s *Service) fullName(ctx context.Context, run loop.Run) string {
	var l loop.Loop
	err := s.view(ctx, func(r *store.Reader) (err error) {
		l, err = r.Loop(ctx, run.LoopID)
		return err
	})
	if err != nil {
		return run.ID
	}
	return fmt.Sprintf("%s#%d", l.Name, run.N)
}

// endedRun reads a run, and concludes it if its holder will never do so.
func (s *Service) endedRun(ctx context.Context, id string) (run loop.Run, err error) {
	read := func() error {
		return s.view(ctx, func(r *store.Reader) (err error) {
			run, err = r.Run(ctx, id)
			return err
		})
	}
	if err := read(); err != nil || run.State == loop.RunEnded || run.State == loop.RunQueued {
		return run, err
	}
	switch s.HolderState(run.Holder) {
	case loop.HolderElsewhere, loop.HolderRunning:
		return run, nil
	case loop.HolderStopped:
		if err := s.EndHolder(ctx, run.Holder); err != nil {
			return run, err
		}
	case loop.HolderDead:
	}
	if _, err := s.Recover(ctx); err != nil {
		return run, err
	}
	return run, read()
}
