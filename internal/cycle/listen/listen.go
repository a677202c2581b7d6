// Package listen notices the events that fire loops, and records them in the ledger of the
// store: files that change, refs that move, runs of other loops that end, commands that
// succeed, and signed deliveries to a webhook.
//
// It decides nothing about an event and fires no loop: package trigger does. It changes no
// repository. A command is asked by the engine, confined as one of a run.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeRecord = fault.New("listen.record.commit.before")
	afterRecord  = fault.New("listen.record.commit.after")
)

// How often a listener looks at what nothing tells it.
const (
	refGap     = 2 * time.Second  // at refs
	rescanGap  = 30 * time.Second // at files, and at which loops listen
	commandGap = time.Minute      // a command is asked
)

// mostPayload is how many bytes of what is known of an event are kept.
const mostPayload = 16 << 10

// Place is where a workspace lies on this node.
type Place struct {
	ID   string // of the workspace
	Root string // of the checkout
	Repo *git.Repo
}

// Answer is what a command said.
type Answer struct {
	Text string // what it printed, without secrets, bounded
	Exit int
}

// ErrPaused is the error of Deps.Ask for a loop that a kill switch stops.
var ErrPaused = errors.New("a kill switch is set")

// Deps are what a listener needs. All are required.
type Deps struct {
	Formats format.List
	Store   *store.Store
	Pulse   *event.Pulse // of the store's feed, which has the ends of runs
	Node    string       // id of this node
	Now     func() time.Time
	NewID   func(prefix string) string
	Log     *slog.Logger
	// Hide takes known secrets out of a text that is stored.
	Hide func(text string) string
	// Places lists the workspaces that lie on this node.
	Places func() []Place
	// Ask runs the command of a loop on its base, confined as a command of a run. The error is
	// ErrPaused if the loop is paused: then nothing was started.
	Ask func(ctx context.Context, l loop.Loop, command string) (Answer, error)
	// Wake is called when an event was recorded, or when something is not in its way any more.
	Wake func()
	// Reload is called when the file of a definition has changed.
	Reload func()
	// Tell is called with a loop to whose events it cannot listen, and again when it can, with
	// nil. Subject tells apart what can be wrong with one loop.
	Tell func(l loop.Loop, subject string, why error)
}

// listening is a loop and an event that fires it.
type listening struct {
	loop.Loop

	on loop.EventSource
}

func (s listening) subject() string { return s.ID + " " + s.on.String() }

// Listener listens for the loops of one node. Make it with New.
type Listener struct {
	Deps

	Receives bool // deliveries to webhooks are received; see Handler. It is set before Run

	poke chan struct{} // the definitions were read; has room for one
	asks signal        // a loop listens to a command that was not asked yet
	refs signal        // a loop listens to a ref that was not looked at yet

	mu   sync.Mutex
	list []listening
}

// New makes a listener.
func New(d Deps) *Listener {
	return &Listener{Deps: d, poke: make(chan struct{}, 1), asks: newSignal(), refs: newSignal()}
}

// Refresh says that the rows of loops may name other events than before.
func (n *Listener) Refresh() {
	select {
	case n.poke <- struct{}{}:
	default:
	}
}

// Run listens until ctx ends, and returns its cause. Errors of the store are logged, and
// what failed is tried again.
func (n *Listener) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	fresh := newSignal()
	all.Go(func() { n.watchFiles(ctx, fresh) })
	all.Go(func() { n.every(ctx, loop.OnRef, refGap, n.refs, n.lookAtRefs) })
	all.Go(func() { n.every(ctx, loop.OnCommand, commandGap, n.asks, n.askCommands) })
	all.Go(func() { n.followEnds(ctx) })
	for {
		err := n.readLoops(ctx)
		n.logError(ctx, "read which loops listen", err)
		fresh.set()
		timer := time.NewTimer(rescanGap)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-n.poke:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// every calls look again and again until ctx ends: after each gap while a loop listens to
// events of the kind, and when sooner is set.
func (n *Listener) every(ctx context.Context, kind loop.OnKind, gap time.Duration, sooner signal, look func(context.Context)) {
	ticker := time.NewTicker(gap)
	defer ticker.Stop()
	for {
		look(ctx)
		var again <-chan time.Time
		if len(n.listens(kind)) > 0 {
			again = ticker.C
		}
		select {
		case <-ctx.Done():
			return
		case <-sooner:
		case <-again:
		}
	}
}

func (n *Listener) logError(ctx context.Context, doing string, err error) {
	if err != nil && ctx.Err() == nil {
		n.Log.WarnContext(ctx, "events are not noticed", slog.String("doing", doing), slog.String("error", err.Error()))
	}
}

// readLoops reads which loops listen to what.
func (n *Listener) readLoops(ctx context.Context) error {
	var loops []loop.Loop
	err := n.Store.View(ctx, func(r *store.Reader) (err error) {
		loops, err = r.ListeningLoops(ctx, n.Node)
		return err
	})
	if err != nil {
		return err
	}
	var list []listening
	for _, l := range loops {
		for text := range strings.SplitSeq(l.Registered.Listens, "\n") {
			if s, err := loop.ParseEventSource(text); err == nil { // A newer pawl may know more.
				list = append(list, listening{l, s})
			}
		}
	}
	for _, s := range list {
		if s.on.Kind == loop.OnWebhook && !n.Receives {
			n.Tell(s.Loop, s.subject(), errNotReceived)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	had := n.list
	n.list = list
	for _, s := range list {
		if slices.ContainsFunc(had, func(h listening) bool { return h.subject() == s.subject() }) {
			continue
		}
		switch s.on.Kind {
		case loop.OnCommand:
			n.asks.set()
		case loop.OnRef:
			n.refs.set()
		case loop.OnFile, loop.OnWebhook, loop.OnLoop:
		}
	}
	return nil
}

// errNotReceived is what is wrong with a webhook that nobody can reach.
var errNotReceived = errors.New("no webhook is received without --listen 127.0.0.1:PORT")

// listens returns the loops that listen to a kind of events.
func (n *Listener) listens(kind loop.OnKind) []listening {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.list), func(s listening) bool { return s.on.Kind != kind })
}

// place finds the workspace of a loop on this node.
func (n *Listener) place(l loop.Loop) (Place, error) {
	for _, p := range n.Places() {
		if p.ID == l.WorkspaceID {
			return p, nil
		}
	}
	return Place{}, fmt.Errorf("workspace %s does not lie on this node", l.WorkspaceID)
}

// seen is how a source looked before and looks now. A source that nobody has looked at has
// looked like nothing before.
type seen struct {
	before  string
	known   bool
	now     string
	payload string // of the event that it looks otherwise; empty with quiet
	quiet   bool   // that it looks otherwise is not an event
}

// record records how a source looks, and the event that it looks otherwise, in one
// transaction: of several processes that see it one records it.
func (n *Listener) record(ctx context.Context, s listening, look func(before string, known bool) seen) error {
	var before string
	var known bool
	err := n.Store.View(ctx, func(r *store.Reader) (err error) {
		before, known, err = r.SourceState(ctx, s.ID, n.Node, s.on.String())
		return err
	})
	if err != nil {
		return err
	}
	now := look(before, known)
	if known && now.now == before {
		return nil
	}
	if err := beforeRecord.Hit(ctx); err != nil {
		return err
	}
	added := false
	err = n.Store.Update(ctx, func(tx *store.Tx) (err error) {
		added = false
		if !known {
			if err := tx.StartSource(ctx, s.ID, n.Node, s.on.String(), now.now); err != nil || now.quiet {
				return err
			}
		} else if moved, err := tx.MoveSource(ctx, s.ID, n.Node, s.on.String(), before, now.now); err != nil || !moved || now.quiet {
			return err
		}
		added, err = tx.AddEvent(ctx, loop.FiringEvent{LoopID: s.ID, ID: n.NewID("ev"), Source: s.on.String(), Payload: n.bound(now.payload)}, joinLines)
		return err
	})
	if err != nil {
		return err
	}
	if added {
		n.Wake()
	}
	return afterRecord.Hit(ctx)
}

// bound is the payload of an event as it is stored.
func (n *Listener) bound(text string) string { return bound(n.Hide(text)) }

// joinLines is the lines of two payloads, each once.
func joinLines(before, now string) string {
	if before == "" {
		return bound(now)
	}
	lines := strings.Split(before, "\n")
	for line := range strings.SplitSeq(now, "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return bound(strings.Join(lines, "\n"))
}

// cut is put where a payload was too long.
const cut = "\n[…]"

func bound(text string) string {
	if len(text) <= mostPayload {
		return text
	}
	text = strings.ToValidUTF8(text[:mostPayload], "")
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(text, cut) + cut
}

// signal can be waited for by one goroutine.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}
