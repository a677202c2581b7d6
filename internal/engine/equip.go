package engine

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/workspace"
	"github.com/pawl-run/pawl/internal/workspace/kit"
)

// egressPort is where programs with a network of their own find the proxy.
const egressPort = 3128

// confined starts programs in a box, with what they need to be found there.
type confined struct {
	sandbox.Box
	env []string // over that of each program
}

// Run starts s in the box.
func (c confined) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	s.Env = proc.WithVariables(s.Env, c.env...)
	return c.Box.Run(ctx, s)
}

// tools remembers what the programs of one run need, so that all of them get the
// same.
type tools struct{ found *kit.Kit }

// Kit is what the programs of the target's definition need beside their tree.
// The error is a *loop.Fault that names a program which is not there.
func (e *Engine) Kit(ctx context.Context, t Target) (kit.Kit, error) {
	actor, err := e.Actor(ctx, t.Definition)
	if err != nil {
		return kit.Kit{}, err
	}
	return site{Engine: e, root: t.Workspace.Root, repo: t.Repo, def: t.Definition.WithDefaults(), agent: actor.Lines(), tools: &tools{}}.kit(ctx)
}

// kit is what the programs of the definition need beside their tree.
func (s site) kit(ctx context.Context) (kit.Kit, error) {
	lines := append([]string{s.def.Verify, s.def.Guard, s.def.Sense}, s.agent...)
	if s.def.Setup != kit.None {
		lines = append(lines, s.def.Setup)
	}
	if s.tools.found != nil {
		return *s.tools.found, nil
	}
	k, err := kit.Recall(ctx, s.Exec, kit.Needs{Root: s.root, Environ: s.Environ, Lines: lines}, filepath.Join(s.Home, "kits"))
	if err == nil {
		s.tools.found = &k
	}
	return k, err
}

// shelf is where the caches of the workspace lie.
func (s site) shelf() kit.Shelf {
	shelf := kit.Shelf{Dir: filepath.Join(s.Home, "caches", workspace.Key(s.repo)), UID: -1, GID: -1}
	if uid, gid := s.tier().Owner(); uid != os.Geteuid() {
		shelf.UID, shelf.GID = uid, gid
	}
	return shelf
}

// egress is the way out for programs of the site: to the hosts of the
// definition, and some more.
func (s site) egress(more []string) (sandbox.Port, error) {
	hosts, err := meter.ParseHosts(append(append([]string{}, s.def.Network...), more...))
	if err != nil {
		return sandbox.Port{}, err
	}
	proxy := &meter.Egress{Allow: hosts, Upstream: upstream(s.Environ), Denied: func(d meter.Denial) { s.say("network: " + d.String()) }}
	if s.Egress != nil {
		s.Egress(proxy)
	}
	return sandbox.Port{
		Number: egressPort,
		Serve: func(ctx context.Context, l net.Listener) {
			if err := proxy.Serve(ctx, l); err != nil {
				s.say("network: the proxy ended: " + err.Error())
			}
		},
		Env: proxyEnviron,
	}, nil
}

// upstream is the proxy through which this machine itself reaches the world.
func upstream(environ []string) *url.URL {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		if u, err := url.Parse(proc.Variable(environ, name)); err == nil && u.Host != "" {
			return u
		}
	}
	return nil
}

// proxyEnviron are the variables by which programs find the proxy at addr.
// Loopback is never asked for through it.
func proxyEnviron(addr string) []string {
	env := []string{"NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		env = append(env, name+"=http://"+addr, strings.ToLower(name)+"=http://"+addr)
	}
	const local = "127.0.0.1,localhost,::1"
	return append(env, "NO_PROXY="+local, "no_proxy="+local)
}

// setupError means that the dependencies of a tree could not be prepared, which
// says nothing about what an agent did.
type setupError struct {
	setup kit.Setup
	exit  int
	text  string
}

func (e *setupError) Error() string {
	return fmt.Sprintf("setup %q ended with exit status %d:\n%s", e.setup.Command, e.exit, e.text)
}

// prepare puts what the set-up of a copy prepares below it, and runs that first
// if nobody has for the same lockfiles. Copies that nothing mounts get a copy
// of it.
func (s site) prepare(ctx context.Context, k *copied) error {
	if s.def.Setup == kit.None || s.def.Setup == "" && !s.tier().Mounts() {
		return nil
	}
	tools, err := s.kit(ctx)
	if err != nil {
		return err
	}
	files, closeFiles, err := k.files()
	if err != nil {
		return err
	}
	defer closeFiles()
	setup, err := tools.Plan(files, s.def.Setup)
	if err != nil || setup.Command == "" {
		return err
	}
	layer, err := s.layer(ctx, setup, k)
	if err != nil {
		return err
	}
	for _, dir := range setup.PathDirs {
		k.path = append(k.path, filepath.Join(s.seen(k), dir))
	}
	k.layer = layer
	if k.Overlay() != nil {
		return k.Push(kit.Tree(layer))
	}
	return os.CopyFS(k.Dir, os.DirFS(kit.Tree(layer)))
}

// layer is what a set-up prepares for the tree of k.
func (s site) layer(ctx context.Context, setup kit.Setup, k *copied) (string, error) {
	prepared := kit.Prepared{Dir: filepath.Join(s.Home, "setups")}
	if dir, ok := prepared.Layer(setup.Digest); ok {
		return dir, nil
	}
	unlock, err := prepared.Lock(ctx, setup.Digest)
	if err != nil {
		return "", err
	}
	defer unlock()
	if dir, ok := prepared.Layer(setup.Digest); ok {
		return dir, nil // Somebody else was quicker.
	}
	s.say("setup: " + setup.Command + " (once for these lockfiles)")
	copied, err := s.bare(ctx, purposeSetup, k.From)
	if err != nil {
		return "", err
	}
	defer func() { _ = copied.remove(context.WithoutCancel(ctx)) }()
	if err := s.runSetup(ctx, setup, copied); err != nil {
		return "", err
	}
	tools, err := s.kit(ctx)
	if err != nil {
		return "", err
	}
	w := kit.Written{Upper: copied.where(), Caches: copied.caches()}
	if w.Tracked, err = s.tracked(ctx, copied); err != nil {
		return "", err
	}
	return prepared.Keep(tools, setup.Digest, w)
}

// tracked lists what a directory with a copy's own content has of the tree that
// the copy was made from.
func (s site) tracked(ctx context.Context, k *copied) ([]string, error) {
	var paths []string
	if k.Overlay() == nil {
		entries, err := s.repo.List(ctx, k.From)
		for _, e := range entries {
			paths = append(paths, e.Path)
		}
		return paths, err
	}
	changes, _, err := k.Changes(ctx)
	if err != nil {
		return nil, err
	}
	for _, ch := range changes {
		held, err := k.Holds(ch.Path)
		if err != nil {
			return nil, err
		}
		if held {
			paths = append(paths, ch.Path)
		}
	}
	return paths, nil
}

// setupTimeout bounds a set-up, which may have a lot to fetch.
const setupTimeout = loop.DefaultWallClock

// runSetup runs a set-up on a copy of its own.
func (s site) runSetup(ctx context.Context, setup kit.Setup, k *copied) error {
	at, err := s.place(ctx, k, use{setup: true, hosts: setup.Hosts})
	if err != nil {
		return err
	}
	defer at.done()
	tail := proc.NewRing(senseHead, senseTail)
	res, err := at.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", setup.Command}, Dir: at.dir, Env: s.environ(nil), Stdout: tail, Stderr: tail, Timeout: setupTimeout, Tag: Tag(s.id),
	})
	if err != nil {
		return fmt.Errorf("start setup %q: %w", setup.Command, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if res.Exit != 0 || res.Ended != proc.Exited {
		return &setupError{setup, res.Exit, strings.TrimSpace(tail.String())}
	}
	return nil
}

// commandLines are the lines of a definition's own agent, for whoever tries its
// gates without one.
func commandLines(d loop.Definition) []string {
	if d.AgentCommand == "" {
		return nil
	}
	return []string{d.AgentCommand}
}
