// Package compose is the composition root: the one place where the parts are
// joined. A command of the foreground composes what it needs and closes it
// when it is through.
//
// It decides nothing and holds no state of its own.
package compose

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/cycle/queue"
	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/formats/boot"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/forge"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Options of a composition.
type Options struct {
	Settings config.Settings
	Environ  []string // of the process
	Log      *slog.Logger
	ReadOnly bool // for verbs that only read: nothing is created or migrated
	Gates    bool // gates can be tried, also if ReadOnly
	NoStore  bool // with ReadOnly: go without the store, which cannot be used

	Version string // of this pawl

	Lease time.Duration    // how long a claim lasts; zero: store.Lease
	Now   func() time.Time // the clock of this host, which decides only where there is no store; nil: the machine's
}

// LoadOptions returns the options of a process: its settings, with those of flags that are
// not empty instead.
func LoadOptions(flags config.Settings, environ []string) (Options, error) {
	settings, err := config.Load(flags, environ)
	return Options{Settings: settings, Environ: environ, Log: Log(environ)}, err
}

// Prober looks at this machine with the environment of a process.
func Prober(environ []string, now time.Time) probe.Prober {
	return probe.Prober{Exec: proc.Plain{}, Environ: environ, Home: proc.LookupVariable(environ, "HOME"), Now: now}
}

// CheckRepository returns the *loop.Fault that a verb would, if dir is not in a
// repository.
func CheckRepository(ctx context.Context, dir string) error {
	_, err := git.Open(ctx, dir)
	return err
}

// Parts is the joined parts. Close it.
type Parts struct {
	lookup lookup.Deps    // its store is nil if read-only and there is none yet
	engine *engine.Engine // nil if read-only
	guard  proc.Guard     // of the programs of runs

	registry *node.Registry // of a composition that may write; else nil
	environ  []string
	critic   loop.Reviewer // who reviews where a gate names nobody
	home     string        // pawl's own folder
	version  string
	newID    func(prefix string) string

	contracts bootrepo.Cache                                                 // of boot repositories
	hint      func(ctx context.Context, tx *store.Tx, runs []loop.Run) error // tells other nodes of queued runs; nil without a daemon
}

// New opens the store and joins the parts.
func New(ctx context.Context, o Options) (*Parts, error) {
	now := o.Now
	if now == nil {
		now = clock.System{}.Now
	}
	contracts := bootrepo.Cache{
		Dir: filepath.Join(o.Settings.Home, "boot"), Mirror: o.Settings.BootMirror, Environ: o.Environ, Exec: proc.Plain{}, Now: now,
	}
	boots := boot.Protocol{Contracts: contracts}
	d := &Parts{
		contracts: contracts,
		home:      o.Settings.Home, version: o.Version, environ: o.Environ, critic: loop.Reviewer{Agent: o.Settings.ReviewerAgent, Model: o.Settings.ReviewerModel},
		lookup: lookup.Deps{
			Now: now, HolderState: node.HolderState, Drivers: drivers(),
			Formats: formats(contracts, now),
		},
	}
	if err := d.openStore(ctx, o, now); err != nil {
		return nil, err
	}
	if d.lookup.Store != nil { // No clock but the database's decides.
		d.lookup.Now = d.lookup.Store.Now
	}
	d.newID = func(prefix string) string { return newID(prefix, d.lookup.Now()) }
	if s := d.lookup.Store; s != nil && s.PostgresPool() != nil { // A SQLite file is the user's own, as the home is.
		d.lookup.Accepted = accepted.In(d.home)
	}
	if err := d.findNode(o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if o.ReadOnly && !o.Gates {
		return d, nil
	}
	gh := forge.GH{Exec: proc.Plain{}, Environ: o.Environ}
	d.engine = engine.New(engine.Deps{
		Store: d.lookup.Store, Now: d.lookup.Now, NewID: d.newID, Exec: proc.Tree{},
		Drivers: d.lookup.Drivers,
		Effects: func(r *git.Repo) map[string]engine.Effect {
			return map[string]engine.Effect{
				effect.KindPropose: effect.NewPropose(r), effect.KindLand: effect.NewLand(r), effect.KindPush: effect.NewPush(r, o.Environ),
				effect.KindPullRequest:  effect.NewPullRequest(r, gh),
				effect.KindMemoryCommit: effect.NewMemoryCommit(r, boots.MergeMemory, clock.System{}.Sleep),
				effect.KindMemoryPull:   effect.NewMemoryPull(r, boots.MergeMemory, clock.System{}.Sleep, o.Environ),
				effect.KindMemoryPush:   effect.NewMemoryPush(r, boots.MergeMemory, clock.System{}.Sleep, o.Environ),
				effect.KindBranchPush:   effect.NewBranchPush(r, clock.System{}.Sleep, o.Environ),
			}
		},
		Pulls: func(ctx context.Context, r *git.Repo, remote string, addresses []string) (map[string]string, error) {
			address, err := r.RemoteURL(remote)
			if err != nil {
				return nil, err
			}
			repo, err := forge.ParseRepository(address)
			if err != nil {
				return nil, err
			}
			return gh.PullRequestStates(ctx, repo, addresses)
		},
		Self: node.Self(d.lookup.Node.ID), HolderState: node.HolderState, EndHolder: node.EndHolder, Survive: proc.KillTagged, Home: o.Settings.Home, Environ: o.Environ, Log: o.Log,
		Optional: engine.Optional{
			Prices:   func() (price.Table, error) { return budgets.Prices(o.Settings.Home, "") },
			Accepted: d.lookup.Accepted, Critic: d.critic, PawlTools: d.insideTools, Guard: &d.guard,
			Label: func(ctx context.Context, r *git.Repo) (string, error) {
				address, err := r.RemoteURL("origin")
				if err != nil {
					return "", engine.ErrNoCodeHost
				}
				repo, err := forge.ParseRepository(address)
				if err != nil {
					return "", engine.ErrNoCodeHost
				}
				_, on, err := gh.FindPauseLabel(ctx, repo)
				return on, err
			},
		},
	})
	return d, nil
}

// openStore opens the store. A reader does without one that nobody has made
// yet.
func (d *Parts) openStore(ctx context.Context, o Options, now func() time.Time) error {
	if o.NoStore {
		return nil
	}
	self, _ := node.Read(o.Settings.Home) // findNode says what is wrong with a home that can be used otherwise.
	self.Version = o.Version
	s, err := store.Open(ctx, store.Options{Database: o.Settings.Database, ReadOnly: o.ReadOnly, Now: now, Node: self, Lease: o.Lease})
	if o.ReadOnly && errors.Is(err, loop.ErrNotFound) {
		return nil
	}
	d.lookup.Store = s
	return err
}

// findNode finds out which node this is. Who may write makes it one.
func (d *Parts) findNode(o Options) (err error) {
	if o.ReadOnly {
		d.lookup.Node, err = node.Read(d.home)
		return err
	}
	n, err := node.Identify(d.home, d.newID)
	if err != nil {
		return err
	}
	host := proc.Self()
	n.Boot, n.Version, n.Schema, n.Offers = host.Boot, o.Version, store.SchemaVersion, []string{runtime.GOOS, runtime.GOARCH}
	d.lookup.Node, d.registry = n, &node.Registry{Store: d.lookup.Store, Node: n, Host: host.Host, NewID: d.newID, Accepted: d.lookup.Accepted}
	return nil
}

// Now is the time by which everything is decided and dated: that of the database, or of
// this host where there is no store.
func (d *Parts) Now() time.Time { return d.lookup.Now() }

// Store is the open store, nil if there is none to read.
func (d *Parts) Store() *store.Store { return d.lookup.Store }

// Close ends the composition. Runs must have ended.
func (d *Parts) Close() error {
	var closing sync.WaitGroup
	defer closing.Wait()
	closing.Go(d.guard.Close)
	if d.lookup.Store == nil {
		return nil
	}
	return d.lookup.Store.Close()
}

// newID is sortable by time and unique: 48 bits of milliseconds, 80 random
// bits, in lower-case base 32.
func newID(prefix string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	if _, err := rand.Read(b[6:]); err != nil {
		panic("compose: no random numbers: " + err.Error()) // crypto/rand never fails on our platforms
	}
	return prefix + "_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// Log is where a foreground command writes what nobody has to act on: nowhere,
// unless PAWL_DEBUG asks for it.
func Log(environ []string) *slog.Logger {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "PAWL_DEBUG="); ok && v != "" {
			return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	}
	return slog.New(slog.DiscardHandler)
}

// DaemonOptions say what a daemon does.
type DaemonOptions struct {
	Workers int                   // runs that it executes at once
	Notices bool                  // whether it sends them to people
	Tell    func(daemon.Happened) // called by several goroutines

	Webhooks net.Listener // where it receives webhooks; nil: nowhere
}

// pulseGap is how often a daemon looks whether something has changed in its store.
const pulseGap = time.Second

// Daemon returns the daemon of this node. Stop it, also if it was never started.
func (d *Parts) Daemon(ctx context.Context, o DaemonOptions) (*daemon.Daemon, error) {
	pulse := event.NewPulse(d.lookup.Store, pulseGap)
	deps := daemon.Deps{
		Formats: d.lookup.Formats, Store: d.lookup.Store, Pulse: pulse, Engine: d.engine, Node: d.lookup.Node.ID, Now: d.lookup.Now, NewID: d.newID, Log: d.engine.Log, Workers: o.Workers, Tell: o.Tell, Accepted: d.lookup.Accepted,
		Open: func(ctx context.Context, path string) (*daemon.Place, error) {
			v, ws, err := d.open(ctx, path, true)
			if err != nil {
				return nil, err
			}
			return &daemon.Place{Workspace: ws, Recover: v.Runs.Recover}, nil
		},
	}
	if o.Notices {
		watcher, deliverer := d.Notifying(d.engine.Log)
		watcher.Pulse = pulse
		deps.Beside = []func(context.Context) error{watcher.Run, deliverer.Run}
	}
	if d.lookup.Store.PostgresPool() == nil {
		deps.Queue = queue.NewLocal(d.lookup.Store, d.lookup.Node.ID, clock.System{}.Now)
	} else {
		q, err := queue.NewRiver(ctx, queue.Options{Store: d.lookup.Store, Node: d.registry.Node, Now: clock.System{}.Now, Workers: o.Workers, Log: d.engine.Log})
		if err != nil {
			return nil, err
		}
		deps.Queue, deps.Hint, d.hint = q, q.Hint, q.Hint
	}
	of := daemon.New(deps)
	if o.Webhooks != nil {
		of.ReceiveWebhooks(o.Webhooks, listen.Secrets{Home: d.home, Environ: d.environ})
	}
	return of, nil
}

// Server returns what answers the requests of other processes for a daemon of these
// parts.
func (d *Parts) Server(of *daemon.Daemon, version, user string) *api.Server {
	since, log := d.Now(), d.engine.Log
	self := d.Self()
	return &api.Server{
		Store: d.StoreVerbs(), Feed: event.Feed{Store: d.lookup.Store}, User: user, Log: log, Do: of.Do, Carried: of.Carried, Metrics: of.WriteMetrics,
		Open: d.Open,
		Status: func() api.Status {
			workspaces, found := of.Loops()
			return api.Status{
				Schema: "pawl.status/v1", Version: version, PID: self.PID, Since: since, Node: self.Node, Workspaces: workspaces, Loops: found.Loops, Broken: found.Broken,
				Working: of.Working(), Ending: of.Ending(), Hangs: of.Hangs(), Now: d.Now(),
			}
		},
	}
}

// Self is this process as a holder of runs on this node.
func (d *Parts) Self() loop.Holder { return node.Self(d.lookup.Node.ID) }
