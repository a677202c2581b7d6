package runenv

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Where programs with a root of their own see what is no part of a tree.
const (
	turnSeen    = "/run/pawl/turn"    // prompt and report
	objectsSeen = "/run/pawl/objects" // the repository's objects, for a throw-away git directory
)

// Place is where one program works: a copy, as the program sees it.
type Place struct {
	proc.Runner
	Dir   string // the copy, as programs see it
	files string // where the host finds what programs write to it
	Done  func() // lets go of it; to be called when the programs have ended

	tree string // that the copy was made from
}

// Use is what a place is for. The zero Use is for a program of nobody's.
type Use struct {
	Turn    string   // folder of prompt and report; empty if missing
	Vouched bool     // only what a human vouches for runs there, so that it may add to the caches of all
	Hosts   []string // that it may reach beside those of the definition
	Masks   []string // files and folders of the tree, which are not shown unless the scope names them or what is in them
	Unseen  []string // files of the tree, which are not shown unless the scope names them

	Answered func(host string) // told which hosts answer, as by meter.Egress; nil: nobody

	// What an agent's program needs around it.
	Ports []sandbox.Port
	Binds []sandbox.Bind
	Home  string // folder of the host that is its home; empty: one that is thrown away

	setup bool // it downloads dependencies
}

// Place makes the place of programs on a copy.
func (s Env) Place(ctx context.Context, k *Copy, u Use) (Place, error) {
	tier := s.Tier()
	if tier == sandbox.None || tier == sandbox.External {
		exec := s.Exec
		if len(k.path) > 0 {
			exec = prefixed{exec, k.path}
		}
		return Place{limited{exec, s.Guard}, k.Dir, k.Dir, func() {}, k.From}, nil
	}
	tools, err := s.Toolset(ctx)
	if err != nil {
		return Place{}, err
	}
	protect, err := s.protectedPaths(ctx, k)
	if err != nil {
		return Place{}, err
	}
	masks, err := s.maskedPaths(ctx, k, u)
	if err != nil {
		return Place{}, err
	}
	port, err := s.openEgress(u)
	if err != nil {
		return Place{}, err
	}
	box := sandbox.Box{
		Tier: tier, Tree: s.Root, Layers: k.Overlay(), Dir: k.Dir, Home: s.SeenHome(), Protect: protect, Masks: masks, Scratch: filepath.Join(k.scratch, "home"),
		Binds: tools.Binds(tier), Ports: []sandbox.Port{port},
	}
	if u.Turn != "" {
		box.Binds = append(box.Binds, sandbox.Bind{From: u.Turn, To: turnSeen, Write: true})
	}
	around(&box, u, tier)
	for _, store := range k.stores {
		box.Binds = append(box.Binds, sandbox.Bind{From: store.Host, To: store.Inside})
	}
	p := Place{Dir: s.seenDir(k), files: k.Where(), Done: func() {}, tree: k.From}
	env := append(tools.Env(tier), "PATH="+tools.Path(k.path...))
	if tier.HasOwnRoot() {
		layered := k.Overlay() != nil
		if u.setup {
			binds, more := tools.DownloadSources(s.toolCache(), layered)
			box.Binds, env = append(box.Binds, binds...), append(more, env...)
		}
		access := toolset.Access{Scratch: k.cacheDir(), Vouched: u.Vouched, Layer: k.layer, Downloads: u.setup}
		var binds []sandbox.Bind
		if layered {
			box.Views, p.Done, err = tools.Views(s.toolCache(), access)
		} else {
			box.Views, binds, err = tools.FolderViews(s.toolCache(), access)
		}
		if err != nil {
			return Place{}, err
		}
		box.Binds = append(box.Binds, binds...)
	}
	p.Runner = limited{confined{box, env}, s.Guard}
	return p, nil
}

// around puts what a use needs around its program into a box.
func around(box *sandbox.Box, u Use, tier sandbox.Tier) {
	box.Ports, box.Binds = append(box.Ports, u.Ports...), append(box.Binds, u.Binds...)
	if u.Home == "" {
		return
	}
	box.Scratch = filepath.Dir(u.Home)
	if tier.HasOwnRoot() {
		box.Binds = append(box.Binds, sandbox.Bind{From: u.Home, To: box.Home, Write: true})
	}
}

// seenDir is where programs see a copy.
func (s Env) seenDir(k *Copy) string {
	if s.Tier().HasOwnRoot() {
		return s.Root
	}
	return k.Dir
}

// prefixed starts programs with directories before all others of PATH.
type prefixed struct {
	proc.Runner
	path []string
}

// Run starts s.
func (p prefixed) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	for i, kv := range s.Env {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			s.Env = slices.Clone(s.Env)
			s.Env[i] = "PATH=" + strings.Join(append(slices.Clone(p.path), list), string(os.PathListSeparator))
		}
	}
	return p.Runner.Run(ctx, s)
}

// forGate is the place as gates know it.
func (p Place) forGate() gate.Place { return gate.Place{Exec: p.Runner, Dir: p.Dir, Files: p.files} }

// Tier is what confines the programs.
func (s Env) Tier() sandbox.Tier { return sandbox.Tier(s.Definition.Sandbox) }

// SeenHome is where programs with a root of their own have their home: at the
// user's own path, so that tools look for caches and programs where they are.
func (s Env) SeenHome() string {
	for _, kv := range s.Environ {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && filepath.IsAbs(home) && filepath.Clean(home) == home && home != "/" {
			return home
		}
	}
	return "/home/pawl"
}

// protectedPaths lists what the scope keeps any agent from changing and what has a
// name of its own, for mounts to hold while a program runs. Globs are for the
// list of changes, which is judged exactly.
func (s Env) protectedPaths(ctx context.Context, k *Copy) ([]string, error) {
	there, err := k.topNames()
	if err != nil {
		return nil, err
	}
	scope, err := s.Scope(ctx)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, glob := range slices.Concat([]string{".loops/**"}, policy.Protected, s.Definition.Protect) {
		name := strings.TrimSuffix(strings.TrimPrefix(glob, "**/"), "/**")
		if strings.ContainsAny(name, "*?[]{}\\") || path.Clean(name) != name || name == ".git" {
			continue
		}
		// What is not there cannot be mounted, and is not worth a judgement.
		if top, _, _ := strings.Cut(name, "/"); there != nil && !there[top] {
			continue
		}
		if !scope.Judge(name).Allowed && !scope.Judge(name+"/x").Allowed {
			paths = append(paths, path.Join(s.Root, name))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// maskedPaths are the places in a copy that a use is not shown, without those that the
// scope lets an agent work on.
func (s Env) maskedPaths(ctx context.Context, k *Copy, u Use) ([]string, error) {
	scope, err := s.Scope(ctx)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range u.Masks {
		if !scope.Judge(name).Allowed && !scope.Judge(name+"/x").Allowed {
			paths = append(paths, path.Join(s.seenDir(k), name))
		}
	}
	for _, name := range u.Unseen {
		if !scope.Judge(name).Allowed {
			paths = append(paths, path.Join(s.seenDir(k), name))
		}
	}
	return paths, nil
}

// Scope is what the definition lets an agent change.
func (s Env) Scope(ctx context.Context) (policy.Scope, error) {
	judges, err := s.Judges(ctx)
	if err != nil {
		return policy.Scope{}, err
	}
	return policy.NewScope(s.Definition.Scope, slices.Concat(s.Definition.Protect, judges.Programs))
}
