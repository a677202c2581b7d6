package compose

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/notify"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Verbs returns the verbs for the repository that contains dir.
func (d *Parts) Verbs(ctx context.Context, dir string) (*api.Workspace, error) {
	v, _, err := d.open(ctx, dir, true)
	return v, err
}

// Open returns the verbs for the repository that contains dir. With register the store learns,
// if need be, that it lies here.
func (d *Parts) Open(ctx context.Context, dir string, register bool) (*api.Workspace, error) {
	v, _, err := d.open(ctx, dir, register)
	return v, err
}

// open opens the workspace of the repository that contains dir. Registering it makes the
// store know that it lies on this node.
func (d *Parts) open(ctx context.Context, dir string, register bool) (*api.Workspace, *lookup.Workspace, error) {
	repo, err := d.openGit(ctx, dir)
	deps, replaced := d.lookup, ""
	if err == nil && register && d.registry != nil {
		now := *d.registry
		if kept, err := node.Read(d.home); err == nil { // A process that lives long must not undo what others have set.
			now.Node.Name, now.Node.Labels = kept.Name, kept.Labels
		}
		var reg node.Registered
		reg, err = now.Register(ctx, repo.Dirs, lookup.Origin(repo))
		deps.Node, replaced = reg.Node, reg.Before
	}
	if err != nil {
		return nil, nil, err
	}
	v, ws, err := d.openRepo(ctx, deps, repo)
	if err == nil {
		v.Replaced = replaced
	}
	return v, ws, err
}

// openGit opens the repository that contains dir. One that belongs to another user is refused
// before git is started in it, unless a person has accepted it. Without a home, nothing but
// files of the kill switch is written, whoever owns them.
func (d *Parts) openGit(ctx context.Context, dir string) (*git.Repo, error) {
	if d.home != "" {
		dirs, err := gitdir.Find(dir)
		if err == nil {
			err = node.CheckOwner(d.home, dirs, node.Users(d.environ))
		}
		if err != nil {
			return nil, err
		}
	}
	return git.Open(ctx, dir)
}

// AcceptOwner records in pawl's home that a person trusts the owners of the repository that
// contains dir, and returns the top of its checkout. It reports false if there is nothing to
// accept.
func AcceptOwner(home, dir string, environ []string) (root string, accepted bool, err error) {
	dirs, err := gitdir.Find(dir)
	if err != nil {
		return "", false, err
	}
	accepted, err = node.AcceptOwner(home, dirs, node.Users(environ))
	return dirs.Root, accepted, err
}

// openRepo opens the workspace of a repository with what its verbs are made of.
func (d *Parts) openRepo(ctx context.Context, deps lookup.Deps, repo *git.Repo) (*api.Workspace, *lookup.Workspace, error) {
	ws, err := lookup.OpenRepo(ctx, deps, repo)
	if err != nil {
		return nil, nil, err
	}
	v := &api.Workspace{Place: verb.Place{Root: ws.Root, Lookup: ws}, Budgets: budgets.New(ws), Snapshots: runs.NewSnapshots(ws, d.engine, d.home)}
	v.Setup = setup.New(ws, d.engine, v.Budgets.Show)
	v.Audit = audit.New(ws, d.engine.Held)
	v.Memories = memories.New(ws, d.engine.Hide)
	v.Runs = runs.New(ws, runs.Deps{Engine: d.engine, Environ: d.environ, Home: d.home, EndHolder: node.EndHolder, Hint: d.hint, Plain: proc.Plain{}})
	v.Recover = v.Runs.Recover
	v.Specs = specs.New(ws, specs.Deps{Environ: d.environ, Critic: d.critic, Engine: d.engine, Lives: d.engine})
	v.Boots = boots.New(ws, boots.Deps{
		Contracts: d.contracts, Exec: proc.Plain{},
		FindTests: func(ctx context.Context) (string, error) { return v.Setup.FindTests(ctx, Prober(d.environ, ws.Now())) },
	})
	v.Orgs = orgs.New(ws)
	known := sync.OnceValue(func() *redact.Redactor { return redact.New(redact.FromEnviron(d.environ)...) })
	v.Boards = boards.New(ws, boards.Deps{Roster: d.Roster(), NewID: d.newID, Hide: func(text string) string { return known().String(text) }})
	v.Doctor = setup.Doctor{Service: v.Setup, Profiles: Profiles(), Dir: ws.Root, Home: d.home}
	v.Approvals = approvals.New(ws, d.engine, v.Runs, d.newID)
	v.Loops = loops.New(ws, loops.Deps{Engine: d.engine, Environ: d.environ, Budgets: v.Budgets.OfLoop, WaitHalted: v.Runs.WaitHalted})
	return v, ws, nil
}

// StoreVerbs returns the verbs that need no repository.
func (d *Parts) StoreVerbs() *api.Store {
	return &api.Store{
		Claims: verb.Claims{Rows: d.lookup.Store, Self: d.Self(), HolderState: d.lookup.HolderState},
		Roster: d.Roster(), Nodes: d.Nodes(), Notices: d.Notices(), Everywhere: d.Everywhere(), Gone: d.Gone,
	}
}

// WithoutStore returns the verbs that files are enough for, for the repository
// that contains dir: pause and kill set the kill switch by its file.
func WithoutStore(ctx context.Context, dir string, environ []string, now func() time.Time) (*api.Workspace, error) {
	elsewhere := func(loop.Holder) loop.HolderState { return loop.HolderElsewhere }
	bare := &Parts{lookup: lookup.Deps{Formats: Formats(now), Now: now, HolderState: elsewhere}, environ: environ}
	return bare.Verbs(ctx, dir)
}

// Roster returns the verbs for who acts, which need no repository.
func (d *Parts) Roster() roster.Roster {
	return roster.Roster{Store: d.lookup.Store, Profiles: Profiles(), Now: d.lookup.Now, NewID: d.newID, Accepted: d.lookup.Accepted}
}

// Logins returns the verbs for logins that are kept, which need no repository.
func (d *Parts) Logins() roster.Logins {
	lender := turn.Lender(d.home)
	lender.Holder = node.Self(d.lookup.Node.ID)
	return roster.Logins{Store: d.lookup.Store, Lender: lender}
}

// Nodes returns the verbs for the machines that share the store, which need no
// repository.
func (d *Parts) Nodes() *nodes.Service {
	return &nodes.Service{Store: d.lookup.Store, Registry: d.registry, Engine: d.engine, Here: d.lookup.Node.ID, Home: d.home, Accepted: d.lookup.Accepted, OfFile: d.lookup.Formats.LoadAs}
}

// Notices returns the verbs for notices, which need no repository.
func (d *Parts) Notices() *notices.Service {
	return &notices.Service{Store: d.lookup.Store, Registry: d.registry, Sender: d.sender(), Here: d.lookup.Node.ID, Now: d.lookup.Now}
}

// Notifying returns what tells people what happens, as long as their Run is called: of a
// composition that may write.
func (d *Parts) Notifying(log *slog.Logger) (*notify.Watcher, *notify.Deliverer) {
	sleep := clock.System{}.Sleep
	return &notify.Watcher{Store: d.lookup.Store, Log: log, Sleep: sleep},
		&notify.Deliverer{Store: d.lookup.Store, Sender: d.sender(), Node: d.lookup.Node.ID, Log: log, Sleep: sleep}
}

func (d *Parts) sender() *notify.Sender {
	proxy := runenv.Host{Environ: d.environ}.Upstream()
	return &notify.Sender{
		Environ: d.environ, Dir: d.home, System: runtime.GOOS, Exec: proc.Tree{}, Now: d.lookup.Now, Accepted: d.lookup.Accepted,
		Proxy: func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
	}
}

// Everywhere returns the kill switch of all workspaces, which needs no repository.
func (d *Parts) Everywhere() loops.Everywhere {
	halting := runs.Halting{
		Held:        func(ctx context.Context) ([]loop.HeldRun, error) { return d.lookup.Store.HeldRuns(ctx, "", "") },
		HolderState: d.lookup.HolderState, Conclude: d.concludeHeld, Now: d.lookup.Now,
	}
	return loops.Everywhere{Store: d.lookup.Store, WaitHalted: halting.Run}
}

// concludeHeld concludes a run of any workspace of this node whose holder never will.
func (d *Parts) concludeHeld(ctx context.Context, r loop.HeldRun) error {
	var places []loop.Placement
	err := d.lookup.Store.View(ctx, func(rd *store.Reader) (err error) {
		places, err = rd.Placements(ctx, r.Workspace)
		return err
	})
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.NodeID != d.lookup.Node.ID {
			continue
		}
		if err := d.lookup.Accepted.Check(accepted.Place(p)); err != nil {
			return err
		}
		v, err := d.Verbs(ctx, p.Path)
		if err != nil {
			return err
		}
		return v.Runs.ConcludeHeld(ctx, r)
	}
	return nil // It stays silent: it is of a home that is gone.
}

// Join makes the repository that contains dir a place of the workspace with that id.
// It returns the id of the workspace that it was before, which may be empty.
func (d *Parts) Join(ctx context.Context, dir, id string) (before string, err error) {
	repo, err := d.openGit(ctx, dir)
	if err != nil {
		return "", err
	}
	return d.registry.Join(ctx, repo.Dirs, id, lookup.Origin(repo))
}

// Separate makes the repository that contains dir a workspace of its own, with a new id.
func (d *Parts) Separate(ctx context.Context, dir string) (loop.Workspace, error) {
	repo, err := d.openGit(ctx, dir)
	if err != nil {
		return loop.Workspace{}, err
	}
	reg, err := d.registry.Separate(ctx, repo.Dirs, lookup.Origin(repo))
	return reg.Workspace, err
}

// Gone lists the checkouts that are gone, with what is open of them.
func (d *Parts) Gone(ctx context.Context) ([]runs.GoneRepository, error) {
	return runs.Gone(ctx, d.lookup.Store, d.lookup.Node.ID, d.home, node.HolderState)
}

// Engine runs targets that no definition in a workspace names; nil if read-only.
func (d *Parts) Engine() *engine.Engine { return d.engine }
