// Package engine takes one run through the cycle: trigger, claim, kill switch,
// rehydrate, sense, decide, act, gather, verify, conclude, persist, effect,
// sleep. It owns the order; protocols own their memory, agents only what
// happens inside act.
//
// The engine never decides what to work on or what becomes of it (package plan
// does), and never lets an agent near the user's checkout. A process may die
// at any line: Recover finds what it left and concludes it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/confine/workspace/filled"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/gatecheck"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// Effect is one kind of effect.
type Effect interface {
	// Apply makes it happen. It calls confirm right before the step that cannot
	// be taken back, and returns its error without taking it. Any other error
	// leaves the outcome unknown until Look.
	Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error)
	// Look finds out whether it happened.
	Look(ctx context.Context, e loop.Effect) (effect.Found, error)
}

// Deps are the parts that an engine is made of. All but Optional are required to carry out
// runs; a simulation, which only claims them, needs Store, Now, NewID, Self and HolderState.
type Deps struct {
	Store *store.Store
	Now   func() time.Time
	NewID func(prefix string) string

	Exec    proc.Runner
	Drivers map[string]turn.Driver
	Effects func(*git.Repo) map[string]Effect
	Self    loop.Holder

	// HolderState looks at the process behind a holder, and EndHolder kills it and
	// waits for its end.
	HolderState func(loop.Holder) loop.HolderState
	EndHolder   func(context.Context, loop.Holder) error

	Survive func(ctx context.Context, tag string) (int, error)
	Home    string   // folder for trees and run files
	Environ []string // of this process; what a definition allows is taken from it
	Log     *slog.Logger

	// Pulls asks the code host behind a remote of a repository what became of pull
	// requests, by their addresses: a state of forge for each.
	Pulls func(ctx context.Context, r *git.Repo, remote string, addresses []string) (map[string]string, error)

	Optional
}

// Optional are the parts that an engine can do without. The zero value has none.
type Optional struct {
	Prices func() (price.Table, error) // read before a run starts; nil: the built-in ones

	// Gates lists the gates of a definition in the order in which they run; nil: those that
	// it has.
	Gates func(loop.Definition) []runenv.Gate

	// PawlTools serves pawl's own tools to the agent of a run, in a workspace at root. Told
	// hears of each call. Nil: no agent has them.
	PawlTools func(by loop.Actor, root string, told func(tool, outcome string)) turn.ToolServer

	Accepted *accepted.Folder // what a person has accepted on this machine; nil: no other machine shares the store, and all is
	Critic   loop.Reviewer    // who reviews where a gate names nobody; zero: nobody does
	Guard    *proc.Guard      // ends the programs of runs whose lease is over while this process is stopped; nil: nobody does

	Egress func(*meter.Egress)                        // changes a proxy before it serves; nil: nobody does
	Live   func(loop.Event)                           // sees every event of the runs that are fired without a Live of their own; nil: nobody does
	Sleep  func(context.Context, time.Duration) error // waits before a turn is tried again; nil: by the machine's clock

	WatchGap    time.Duration // between looks at the kill switch; 0: 100 ms
	CommandTime time.Duration // that a command may take which an agent has pawl run; 0: CommandTime
	DiskGap     time.Duration // between looks at how much disk a run takes up; 0: 5 s

	// Label asks the code host of a repository what carries loop.PauseLabel; empty:
	// nothing does. ErrNoCodeHost is the error of a repository without one. Nil: nobody asks.
	Label    func(context.Context, *git.Repo) (on string, err error)
	LabelGap time.Duration // between questions for it while a run works; 0: a minute
}

// Engine runs loops. Its methods may be called concurrently for different
// loops.
type Engine struct {
	Deps
	known   func() *redact.Redactor // of the environment; made when it is first needed
	driving sync.Map                // ids of the runs that this engine is carrying on
	stuck   sync.Map                // id of a run that Recover took and could not conclude → why
	seen    sync.Map                // workspace and git fingerprint that the store was seen to hold

	hosted sync.Map // id of a run whose agent has pawl's tools at this moment → *hostedTurn

	watching watching
}

// New makes an engine.
func New(d Deps) *Engine {
	if d.WatchGap == 0 {
		d.WatchGap = 100 * time.Millisecond
	}
	if d.CommandTime == 0 {
		d.CommandTime = CommandTime
	}
	if d.DiskGap == 0 {
		d.DiskGap = 5 * time.Second
	}
	if d.LabelGap == 0 {
		d.LabelGap = labelGap
	}
	if d.Sleep == nil {
		d.Sleep = clock.System{}.Sleep
	}
	return &Engine{
		Deps:  d,
		known: sync.OnceValue(func() *redact.Redactor { return redact.New(redact.FromEnviron(d.Environ)...) }),
	}
}

// Target is a loop together with what is needed to run it.
type Target struct {
	Workspace  loop.Workspace
	Repo       *git.Repo
	Loop       loop.Loop // ID, Name and Protocol are enough; the row is created if it is missing
	Definition loop.Definition
	Protocol   Protocol

	// Register makes the row of the loop say what its file says, in the transaction that
	// fires a run and has locked the row; nil if no file is meant.
	Register func(context.Context, *store.Tx, loop.Loop) error

	// OfFile reads the definition that a file of the checkout has for the loop; false if none
	// has one that can be used. Nil: no file is asked.
	OfFile func() (loop.Definition, bool)

	// Said means that Definition and the overrides of the firing are what a person said on this
	// machine, by a command or a file of the checkout: whatever they make it do is accepted.
	Said bool

	introduced bool // Loop.LastN is known from git and the loop's memory
}

// Firing says why a run starts.
type Firing struct {
	Trigger   string    // manual, approval …
	Planned   time.Time // when the trigger planned the run for; zero: nobody planned it
	Event     string    // what triggered it; empty: a person or the time
	By        loop.Actor
	Key       string // what makes this firing unique; empty: the run's own id
	Request   string
	Overrides loop.Overrides
	Approval  string       // id of the approval whose answer fires the run
	Answer    *loop.Answer // given to Approval by the transaction that fires the run: both happen, or neither; nil: it was given before
	Landing   bool         // Approval was given before, and a person asks for its landing once more
	Rebase    string       // id of the void approval whose proposal is to be made again, because its base moved
	Tried     Tried        // the run does not do again what was tried before it
	Wait      bool         // Run waits for what is in its way, instead of returning its error

	Live func(loop.Event) // sees every event of the run; may be nil

	borrowed loop.Amount // of a run inside of another one: what it may use of that one's caps
}

// Tried is what the gates of the definition said of a commit before a run began.
// The zero Tried is about no commit.
type Tried struct {
	Commit string
	Gates  []loop.GateResult
}

// Run fires one run of the target and takes it through the cycle. It blocks
// until the run has ended; canceling ctx ends it as interrupted.
//
// The error is nil for every run that was concluded, whatever its outcome.
// Otherwise nothing was started (a *loop.Fault, *loop.HeldError or *loop.LockedError says why),
// or the run could not be carried to its end and waits for Recover.
func (e *Engine) Run(ctx context.Context, t Target, f Firing) (loop.Run, error) {
	settle, err := e.borrow(&f)
	if err != nil {
		return loop.Run{}, err
	}
	run, err := e.runClaimed(ctx, t, func() (*cycle, error) { return e.startRun(ctx, t, f) })
	settle(run, err)
	return run, err
}

// Execute claims a run of the target that Fire has queued, and takes it through the
// cycle as Run does. All that the run is to do comes from its row: its definition
// is the one that was fired, whatever the file says now.
//
// A run that is not queued any more is loop.ErrLeaseLost. While the switch of the
// loop is set, or another of its runs is live, the run stays queued and the error
// is that of Run. So it does while a run is live or due that may touch the same and
// goes first, a *loop.LockedError: it is to be executed again once that one has ended,
// and at least every five minutes, because others do not give way for ever. A run that
// comes again by itself does not wait for one that goes first: it ends quiet, with
// DeferredTo.
func (e *Engine) Execute(ctx context.Context, t Target, id string) (loop.Run, error) {
	return e.runClaimed(ctx, t, func() (*cycle, error) { return e.claimRun(ctx, t, id) })
}

// runClaimed takes the run that begin claims through the cycle.
func (e *Engine) runClaimed(ctx context.Context, t Target, begin func() (*cycle, error)) (loop.Run, error) {
	sw, warning := Switch(t.Workspace.Root, t.Loop.Name, t.Definition.SwitchPaths()...), ""
	if sw.IsZero() {
		sw, warning = e.askLabel(ctx, t)
	}
	if !sw.IsZero() {
		return loop.Run{}, PausedFault(t.Loop.Name, sw)
	}
	prices, err := e.readPrices()
	if err != nil {
		return loop.Run{}, err
	}
	c, err := begin()
	if err != nil {
		return loop.Run{}, err
	}
	if warning != "" {
		c.said.Note("%s", warning)
	}
	c.money.prices = prices.OnDay(e.Now().UTC().Format(time.DateOnly))
	run, err := c.runToEnd(ctx)
	return run, c.lostRunFault(ctx, err)
}

// readPrices are those that the runs count by which start now.
func (e *Engine) readPrices() (price.Table, error) {
	if e.Prices == nil {
		return price.BuiltIn(), nil
	}
	return e.Prices()
}

// Actor finds out who acts for a definition. The error is a *loop.Fault that
// names the fix.
func (e *Engine) Actor(ctx context.Context, d loop.Definition) (turn.Actor, error) {
	return e.resolveActor(ctx, d, e.Store.View)
}

func (e *Engine) resolveActor(ctx context.Context, d loop.Definition, view viewing) (turn.Actor, error) {
	return turn.ResolveActor(ctx, d, e.Drivers, func(ctx context.Context, handle string) (a loop.Agent, err error) {
		err = view(ctx, func(r *store.Reader) error {
			a, err = r.Agent(ctx, handle)
			return err
		})
		if err == nil {
			err = e.admitAgent(a)
		}
		return a, err
	})
}

// Toolset is what the programs of the target's definition need beside their tree.
// The error is a *loop.Fault that names a program which is not there.
func (e *Engine) Toolset(ctx context.Context, t Target) (toolset.Set, error) {
	actor, err := e.Actor(ctx, t.Definition)
	if err != nil {
		return toolset.Set{}, err
	}
	s := runenv.Env{
		Host: e.host(), Root: t.Workspace.Root, Repo: t.Repo, Definition: t.Definition.WithDefaults(), Agent: actor.CommandLines(), Tools: &runenv.Tools{},
	}
	return s.Toolset(ctx)
}

// TryGates tries the gates of the target's definition, which is not a run: see
// gatecheck.Tries. Deps.Store may be nil.
func (e *Engine) TryGates(ctx context.Context, t Target, out io.Writer) ([]loop.GateResult, error) {
	if err := e.Admit(t, loop.Overrides{}); err != nil {
		return nil, err
	}
	return e.gateChecker().Gates(ctx, gatecheck.Subject{Loop: t.Loop.Name, Root: t.Workspace.Root, Repo: t.Repo, Definition: t.Definition}, out)
}

// RunProgram runs a program on a copy of a commit, as confined as the gates of the
// target's definition, and returns its exit status. Nothing of what it writes is kept.
func (e *Engine) RunProgram(ctx context.Context, t Target, commit string, p proc.Spec) (exit int, err error) {
	if err := e.Admit(t, loop.Overrides{}); err != nil {
		return 0, err
	}
	return e.gateChecker().Program(ctx, gatecheck.Subject{Loop: t.Loop.Name, Root: t.Workspace.Root, Repo: t.Repo, Definition: t.Definition}, commit, p)
}

// Ask runs a command on the base of the target's definition, confined as the command of the
// key sense is, and returns what it said without known secrets: see gatecheck.Checker.Ask. It
// has to be among those by which the definition is fired.
// It looks at no kill switch.
func (e *Engine) Ask(ctx context.Context, t Target, command string) (gatecheck.Answer, error) {
	if err := e.admitCommand(t, command); err != nil {
		return gatecheck.Answer{}, err
	}
	a, err := e.gateChecker().Ask(ctx, gatecheck.Subject{Loop: t.Loop.Name, Root: t.Workspace.Root, Repo: t.Repo, Definition: t.Definition}, command)
	a.Text = e.Hide(a.Text)
	return a, err
}

// Hide takes the secrets of the environment out of a text.
func (e *Engine) Hide(text string) string { return e.known().String(text) }

func (e *Engine) gateChecker() gatecheck.Checker {
	return gatecheck.Checker{Host: e.host(), NewID: e.NewID, Survive: e.Survive}
}

// runToEnd takes a claimed run to its end.
func (c *cycle) runToEnd(ctx context.Context) (loop.Run, error) {
	c.maker, c.nobody = c.resolveActor(ctx, c.def, c.Store.View) // Nobody has to act in a run that lands something or finds nothing to do.
	c.login.actor = c.maker
	c.driving.Store(c.run.ID, true)
	defer c.driving.Delete(c.run.ID)
	held, release := c.target.Repo.Hold()
	c.target.Repo = held
	defer release()
	ctx, watched := c.watch(ctx)
	defer watched.stop()
	ctx, stopLabel := c.watchLabel(ctx)
	defer stopLabel()
	ctx, stopDisk := c.watchDisk(ctx)
	defer func() { c.cleanUp(context.WithoutCancel(ctx)) }()
	end, err := c.runPhases(ctx)
	if ctx.Err() != nil {
		watched.stopped.Store(true) // Whoever has stopped it need not wait until its work is kept.
	}
	stopDisk() // A run that has ended may take as long as it needs to keep its work.
	if gone := context.Cause(ctx); errors.Is(gone, loop.ErrStoreGone) {
		err = gone // However the work ended: nothing of it can be recorded.
	}
	if err != nil {
		if end, err = c.endingOfError(ctx, err); err != nil {
			if errors.Is(err, loop.ErrStoreGone) {
				c.login.settle(ctx) // Nobody else will.
			}
			return c.run, c.tree.leaveGone(ctx, err)
		}
	}
	err = c.finish(ctx, c.outbox.sayLanded(end))
	return c.run, c.tree.leaveGone(ctx, err)
}

// runPhases goes through the phases from the kill switch to the last verdict.
func (c *cycle) runPhases(ctx context.Context) (ending, error) {
	c.enterPhase(loop.PhaseKillSwitch)
	if end := c.switchEnding(); end != nil { // Before any state is read.
		return *end, nil
	}
	if c.deferred != nil {
		return *c.deferred, nil
	}
	if end, err := c.checkHazards(ctx); err != nil || end != nil {
		return deref(end), err
	}
	if end, ours, err := c.landApproved(ctx); err != nil || ours {
		return end, err
	}
	if end, ours, err := c.findOwed(ctx); err != nil || ours {
		return end, err
	}
	if end, err := c.memory.rehydrate(ctx); err != nil || end != nil {
		return deref(end), err
	}
	if end, err := c.askFirst(ctx); err != nil || end != nil {
		return deref(end), err
	}
	if c.agent.hold == nil { // What may not act has nothing to look for.
		if end, err := c.sensed.readSources(ctx); err != nil || end != nil {
			return deref(end), err
		}
		if err := c.proposals.read(ctx, c.sensed.Nothing != ""); err != nil {
			return ending{}, err
		}
	}
	for {
		d, err := c.decide(ctx)
		if err != nil {
			return ending{}, err
		}
		if d.Choice == nil {
			return c.endWithoutChoice(d, c.agent.hold), c.giveUpSpent(ctx, d)
		}
		worth, end, err := c.sensed.beforeTurn(ctx, d.Choice.Step)
		if err == nil && end == nil && worth {
			end, err = c.runIteration(ctx, d)
		}
		if err != nil || end != nil {
			return deref(end), err
		}
	}
}

// endingOfError turns an error from inside the cycle into an ending. After a
// lost lease, or when the store is gone, it returns the error: this process may not
// write any more.
func (c *cycle) endingOfError(ctx context.Context, err error) (ending, error) {
	if cause := context.Cause(ctx); errors.Is(cause, loop.ErrLeaseLost) {
		return ending{}, fmt.Errorf("run %s: %w", c.run.ID, cause)
	}
	if errors.Is(err, loop.ErrLeaseLost) {
		return ending{}, fmt.Errorf("run %s: %w", c.run.ID, loop.ErrLeaseLost)
	}
	if errors.Is(err, loop.ErrStoreGone) {
		return ending{}, err
	}
	if end := stopEnding(ctx); end != nil {
		return *end, nil
	}
	c.Log.ErrorContext(ctx, "run failed", slog.String("run", c.run.ID), slog.String("phase", string(c.said.Phase())), slog.String("error", err.Error()))
	if broken, ok := errors.AsType[*runenv.SetupError](err); ok {
		return ending{outcome: loop.OutcomeFailed, reason: loop.ReasonSetupFailed, detail: c.said.Hide(broken.Error())}, nil
	}
	if missing, ok := errors.AsType[*filled.MissingError](err); ok {
		fetch := c.said.Hide(missing.Fix())
		return ending{outcome: loop.OutcomeFailed, reason: loop.ReasonUnfilled, detail: c.said.Hide(missing.Error()) + loop.FetchMark + fetch, cause: loop.Cause{Fetch: fetch}}, nil
	}
	end := ending{outcome: loop.OutcomeFailed, reason: loop.ReasonInternal, detail: fmt.Sprintf("%s: %s", c.said.Phase(), err)}
	if f, ok := errors.AsType[*loop.Fault](projection.DiskFault(err)); ok && f.Fix != "" {
		end.detail += "; " + f.Advice().String()
	}
	return end, nil
}

func deref[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// runDir holds the prompt and the report of a run while it lives.
func (e *Engine) runDir(runID string) string { return e.host().RunDir(runID) }
