package runenv

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/net/http/httpproxy"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/confine/workspace/filled"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
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

// Tools remembers what the programs of one run need, so that all of them get the
// same. The zero value is ready for use, by several goroutines.
type Tools struct {
	mu       sync.Mutex
	found    *toolset.Set
	judges   map[string]gate.Judges      // by the base that they were read from
	fillings map[string]filled.Filling   // by the tree that they fill
	setups   map[[2]string]toolset.Setup // by the tree that they prepare and the line that the definition has for it
}

// knownFilling is what a tree is filled with, if it is known.
func (t *Tools) knownFilling(tree string) (filled.Filling, bool) {
	if t == nil {
		return filled.Filling{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.fillings[tree]
	return f, known
}

func (t *Tools) rememberFilling(tree string, f filled.Filling) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fillings == nil {
		t.fillings = map[string]filled.Filling{}
	}
	t.fillings[tree] = f
}

// findSetup is what prepares a tree. To find it every folder of the tree is looked at,
// and a run has several copies of one.
func (s Env) findSetup(ctx context.Context, k *Copy) (toolset.Setup, error) {
	t, key := s.Tools, [2]string{k.From, s.Definition.Setup}
	t.mu.Lock()
	setup, known := t.setups[key]
	t.mu.Unlock()
	if known {
		return setup, nil
	}
	tools, err := s.Toolset(ctx)
	if err != nil {
		return toolset.Setup{}, err
	}
	files, closeFiles, err := k.openFiles()
	if err != nil {
		return toolset.Setup{}, err
	}
	defer closeFiles()
	if setup, err = tools.PlanSetup(files, s.Definition.Setup); err != nil {
		return toolset.Setup{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.setups == nil {
		t.setups = map[[2]string]toolset.Setup{}
	}
	t.setups[key] = setup
	return setup, nil
}

// Toolset finds what the programs of the definition need besides their tree.
func (s Env) Toolset(ctx context.Context) (toolset.Set, error) {
	lines := append([]string{s.Definition.SenseCommand()}, s.Agent...)
	for _, c := range gate.Commands(s.Definition) {
		lines = append(lines, c.Line)
	}
	if s.Definition.Setup != toolset.None {
		lines = append(lines, s.Definition.Setup)
	}
	s.Tools.mu.Lock()
	defer s.Tools.mu.Unlock()
	if s.Tools.found != nil {
		return *s.Tools.found, nil
	}
	k, err := toolset.Recall(ctx, s.Exec, toolset.Needs{Root: s.Root, Environ: s.Environ, Lines: lines}, filepath.Join(s.Home, "toolsets"))
	if err == nil {
		s.Tools.found = &k
	}
	return k, err
}

// toolCache is where the caches of the workspace lie.
func (s Env) toolCache() toolset.Cache {
	uid, gid := s.Owner()
	return toolset.Cache{Dir: filepath.Join(s.Home, "caches", workspace.RepositoryKey(s.Repo)), UID: uid, GID: gid}
}

// openEgress makes the proxy through which programs reach the network: the hosts of the
// definition and those of the use.
func (s Env) openEgress(u Use) (sandbox.Port, error) {
	hosts, err := meter.ParseHosts(append(append([]string{}, s.Definition.Network...), u.Hosts...))
	if err != nil {
		return sandbox.Port{}, err
	}
	proxy := &meter.Egress{Allow: hosts, Answered: u.Answered, Upstream: s.Upstream(), Denied: func(d meter.Denial) { s.Say("network: " + d.String()) }}
	if s.Egress != nil {
		s.Egress(proxy)
	}
	return sandbox.Port{
		Number: egressPort,
		Serve: func(ctx context.Context, l net.Listener) {
			if err := proxy.Serve(ctx, l); err != nil {
				s.Say("network: the proxy ended: " + err.Error())
			}
		},
		Env: proxyEnviron,
	}, nil
}

// Upstream returns the proxy through which this machine itself reaches an address, from
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY in upper or lower case. It is nil for a direct
// connection, as always to this machine's own addresses.
func (h Host) Upstream() func(*url.URL) (*url.URL, error) {
	variable := func(name string) string {
		return cmp.Or(proc.LookupVariable(h.Environ, name), proc.LookupVariable(h.Environ, strings.ToLower(name)))
	}
	c := httpproxy.Config{HTTPSProxy: variable("HTTPS_PROXY"), HTTPProxy: variable("HTTP_PROXY"), NoProxy: variable("NO_PROXY")}
	return c.ProxyFunc()
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

// SetupError means that the dependencies of a tree could not be prepared, which
// says nothing about what an agent did.
type SetupError struct {
	command string
	exit    int
	text    string
}

func (e *SetupError) Error() string {
	return fmt.Sprintf("setup %q ended with exit status %d:\n%s", e.command, e.exit, e.text)
}

// prepareCopy puts the result of the set-up below a copy. The set-up runs first, unless
// it ran before for the same lockfiles.
func (s Env) prepareCopy(ctx context.Context, k *Copy) error {
	if s.Definition.Setup == toolset.None || s.Definition.Setup == "" && !s.Tier().HasOwnRoot() {
		return nil
	}
	setup, err := s.findSetup(ctx, k)
	if err != nil || setup.Command == "" {
		return err
	}
	layer, err := s.setupLayer(ctx, setup, k)
	if err != nil {
		return err
	}
	for _, dir := range setup.PathDirs {
		k.path = append(k.path, filepath.Join(s.seenDir(k), dir))
	}
	k.layer = layer
	return k.Push(ctx, toolset.LayerTree(layer))
}

// setupLayer returns the folder with what a set-up prepared for the tree of k.
func (s Env) setupLayer(ctx context.Context, setup toolset.Setup, k *Copy) (string, error) {
	prepared := toolset.Prepared{Dir: filepath.Join(s.Home, "setups")}
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
	s.Say("setup: " + setup.Command + " (once for these lockfiles)")
	s.Base = cmp.Or(s.Base, k.Base)
	copied, err := s.copyWithoutSetup(ctx, forSetup, k.From)
	if err != nil {
		return "", err
	}
	defer func() { _ = copied.Remove(context.WithoutCancel(ctx)) }()
	if err := s.Disk.startCounting(ctx, copied); err != nil {
		return "", err
	}
	if err := s.runSetup(ctx, setup, copied); err != nil {
		return "", err
	}
	tools, err := s.Toolset(ctx)
	if err != nil {
		return "", err
	}
	w := toolset.Written{Upper: copied.Where(), Caches: copied.cacheDir()}
	if w.Tracked, err = s.trackedPaths(ctx, copied); err != nil {
		return "", err
	}
	return prepared.KeepLayer(tools, setup.Digest, w)
}

// trackedPaths lists what a directory with a copy's own content has of the tree that
// the copy was made from, and of what that was filled with.
func (s Env) trackedPaths(ctx context.Context, k *Copy) ([]string, error) {
	var paths []string
	if k.Overlay() == nil {
		entries, err := s.Repo.List(ctx, k.From)
		for _, e := range entries {
			if e.Mode != object.ModeGitlink { // What a set-up builds in a submodule stays.
				paths = append(paths, e.Path)
			}
		}
		if err != nil || k.filling.Dir == "" {
			return paths, err
		}
		err = fs.WalkDir(os.DirFS(k.filling.Dir), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				paths = append(paths, name)
			}
			return err
		})
		return paths, err
	}
	changes, problems, err := k.Changes(ctx)
	if err != nil {
		return nil, err
	}
	for _, ch := range changes {
		held, err := k.HoldsFile(ch.Path)
		if err != nil {
			return nil, err
		}
		if held {
			paths = append(paths, ch.Path)
		}
	}
	for _, p := range problems {
		if k.filling.Dir == "" {
			break
		}
		if _, err := os.Lstat(filepath.Join(k.filling.Dir, filepath.FromSlash(p.Path))); err == nil {
			paths = append(paths, p.Path)
		}
	}
	return paths, nil
}

const (
	setupTimeout = loop.DefaultWallClock // it may have a lot to fetch
	setupHead    = 24 << 10              // bytes kept of what it prints: the beginning
	setupTail    = 8 << 10               // and the end
)

// runSetup runs a set-up on a copy of its own.
func (s Env) runSetup(ctx context.Context, setup toolset.Setup, k *Copy) error {
	at, err := s.Place(ctx, k, Use{setup: true, Hosts: setup.Hosts})
	if err != nil {
		return err
	}
	defer at.Done()
	tail := proc.NewRing(setupHead, setupTail)
	res, err := at.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", setup.Command}, Dir: at.Dir, Env: s.ProgramEnv(), Stdout: tail, Stderr: tail, Timeout: setupTimeout, Tag: Tag(s.ID),
	})
	if err != nil {
		return fmt.Errorf("start setup %q: %w", setup.Command, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if res.Exit != 0 || res.Ended != proc.Exited {
		return &SetupError{setup.Command, res.Exit, strings.TrimSpace(tail.String())}
	}
	return nil
}
