package toolset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/confine/probe/toolchain"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/flock"
)

// None as the command of a definition means that there is no set-up.
const None = "none"

// Setup is a command that prepares dependencies, and what its result depends
// on. The zero Setup prepares nothing.
type Setup struct {
	Command  string
	Hosts    []string // package hosts that it needs
	PathDirs []string // relative to the tree, for PATH of later programs
	Digest   string   // set-ups with the same digest prepare the same
	Detected bool     // it is not from the definition
}

// PlanSetup returns the set-up of the tree with these files. Command is that of the
// definition: empty means the usual one for the lockfiles, [None] means no set-up. The
// digest depends on the command, the toolchains of its programs and languages, the
// lockfiles, and the files that the command names.
func (k Set) PlanSetup(files fs.FS, command string) (Setup, error) {
	if command == None {
		return Setup{}, nil
	}
	found, ok := toolchain.SetupFor(files)
	s := Setup{Command: command, Hosts: found.Hosts, PathDirs: found.PathDirs}
	switch {
	case command != "":
	case !ok:
		return Setup{}, nil
	default:
		s.Command, s.Detected = found.Command, true
	}
	h := sha256.New()
	programs := toolchain.Programs(s.Command)
	for _, stack := range found.Stacks {
		programs = append(programs, programsOf[stack.Name]...)
	}
	fmt.Fprintf(h, "%s\x00%s\x00", s.Command, k.programsDigest(programs))
	for _, name := range append(found.Lockfiles, filesNamed(files, s.Command)...) {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return Setup{}, fmt.Errorf("read lockfile %s: %w", name, err)
		}
		fmt.Fprintf(h, "%s\x00%d\x00", name, len(text))
		h.Write(text)
	}
	s.Digest = hex.EncodeToString(h.Sum(nil)[:16])
	return s, nil
}

// filesNamed returns the files of the tree that are words of a command.
func filesNamed(files fs.FS, command string) []string {
	var names []string
	for word := range strings.FieldsSeq(command) {
		name := path.Clean(strings.Trim(word, "\"'()"))
		if !fs.ValidPath(name) || slices.Contains(names, name) {
			continue
		}
		if info, err := fs.Stat(files, name); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	return names
}

// Prepared keeps the layers that set-ups wrote, in one directory for all workspaces of a
// home.
type Prepared struct{ Dir string }

// Layer returns the layer of the set-up with the digest: the absolute path of a directory
// that nobody writes to. It reports false if there is none.
func (p Prepared) Layer(digest string) (string, bool) {
	dir := filepath.Join(p.Dir, digest)
	if _, err := os.Stat(dir); err != nil {
		return "", false
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // Collect removes layers by this time.
	return dir, true
}

// Lock blocks until no other process prepares the digest, or ctx ends.
func (p Prepared) Lock(ctx context.Context, digest string) (unlock func(), err error) {
	claim, err := flock.Wait(ctx, filepath.Join(p.Dir, "."+digest+".lock"))
	if err != nil {
		return nil, fmt.Errorf("lock dependencies: %w", err)
	}
	return func() { claim.Close() }, nil
}

// modulesSeen is where a set-up that runs as another user finds this user's downloads of
// Go.
const modulesSeen = "/run/pawl/gomod"

// DownloadSources returns the downloads of this machine that a set-up may use if it
// cannot add to the cache itself: its programs run as another user, or no layers can be
// mounted.
func (k Set) DownloadSources(cache Cache, layered bool) (binds []sandbox.Bind, env []string) {
	for _, c := range k.Caches {
		modules := filepath.Join(c.Path, "cache", "download")
		if (cache.UID >= 0 || !layered) && c.Kind == "go-mod" && isFolder(modules) {
			binds = append(binds, sandbox.Bind{From: modules, To: modulesSeen})
			env = append(env, fmt.Sprintf("GOPROXY=file://%s,https://%s,direct", modulesSeen, toolchain.GoModules))
		}
	}
	return binds, env
}

// Names in a layer.
const (
	treeName   = "tree"   // what the set-up wrote into the tree
	cachesName = "caches" // what it downloaded, by the names of caches
)

// LayerTree returns the directory that a layer adds to a tree.
func LayerTree(layer string) string { return filepath.Join(layer, treeName) }

// Written is the result of a set-up.
type Written struct {
	Upper   string   // directory with what it wrote into the tree
	Tracked []string // paths in Upper that the tree has itself, and that are left out
	Caches  string   // Access.Scratch of its caches
}

// KeepLayer moves what a set-up of the toolset wrote into the layer of the digest, and
// returns the layer. What it compiled is not kept, because it is not trusted.
func (p Prepared) KeepLayer(k Set, digest string, w Written) (string, error) {
	for _, name := range append(slices.Clone(w.Tracked), ".git") {
		if err := os.RemoveAll(filepath.Join(w.Upper, filepath.FromSlash(name))); err != nil {
			return "", fmt.Errorf("keep dependencies: %w", err)
		}
	}
	made := filepath.Join(p.Dir, "."+digest+".new")
	err := errors.Join(os.RemoveAll(made), os.MkdirAll(filepath.Join(made, cachesName), 0o755), os.Rename(w.Upper, LayerTree(made)))
	for i, c := range k.Caches {
		from := filepath.Join(w.Caches, cacheName(c, i))
		if err == nil && c.Downloads && isFolder(from) {
			err = os.Rename(from, filepath.Join(made, cachesName, cacheName(c, i)))
		}
	}
	dir := filepath.Join(p.Dir, digest)
	if err == nil {
		err = os.Rename(made, dir)
	}
	if err != nil {
		return "", fmt.Errorf("keep dependencies: %w", err)
	}
	return dir, nil
}

// Collect removes layers that were not used since before, except the keep most recently
// used ones.
func (p Prepared) Collect(before time.Time, keep int) error {
	entries, err := os.ReadDir(p.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("collect dependencies: %w", err)
	}
	type layer struct {
		path string
		used time.Time
	}
	var layers []layer
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() {
			layers = append(layers, layer{filepath.Join(p.Dir, e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(layers, func(a, b layer) int { return b.used.Compare(a.used) })
	for i, l := range layers {
		if i >= keep && l.used.Before(before) {
			if err := os.RemoveAll(l.path); err != nil {
				return fmt.Errorf("collect dependencies: %w", err)
			}
		}
	}
	return nil
}
