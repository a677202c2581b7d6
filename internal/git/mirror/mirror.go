// Package mirror keeps what a base commit reaches, and nothing else, as packs of
// git objects that programs in a sandbox may read: stashes, deleted branches and
// other people's work in the same repository are not in there.
//
// A mirror is made by git from the local repository alone. It is never written to
// once it has its name: when a base moves forwards, a new mirror shares the packs
// of the old one by hard links and adds one; when it moves elsewhere, everything
// is packed anew. A mirror that somebody holds is never removed. The package
// never contacts another host and never writes to the repository.
package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforePack   = fault.New("mirror.pack.before")
	afterPack    = fault.New("mirror.pack.after")
	beforePlace  = fault.New("mirror.place.before")
	afterPlace   = fault.New("mirror.place.after")
	beforeRemove = fault.New("mirror.remove.before")
	afterRemove  = fault.New("mirror.remove.after")
)

const (
	maxPacks = 10 // of one mirror; beyond that the small ones become one
	maxIdle  = 4  // mirrors of one repository that stay though nobody holds them
	maxBases = 4  // mirrors that are looked at for one to extend

	// sizeSaid is the size of a repository's packs from which it is said that the
	// first mirror is about to be made: that takes seconds.
	sizeSaid = 64 << 20
)

// Cache is the folder in which mirrors of all repositories are:
//
//	KEY/repository         the repository's git directory
//	KEY/COMMIT…/objects    an object directory with the mirror's packs
//	KEY/COMMIT…/mirror     what is in it; written last
//	KEY/locks/…            one for each mirror, held by all who use it, and one for making
//
// Several processes may use one at once.
type Cache struct {
	Dir string // absolute path; need not exist
	Now func() time.Time
	Say func(string) // is told what the making of a mirror costs; may be nil
}

// Mirror is a mirror that is held. It stays until Release is called.
type Mirror struct {
	Base    string // the commit
	Objects string // absolute path of the object directory
	Shallow []byte // what git has to know of where its history ends, nil if that is complete

	claim *os.File
}

// Release lets go of the mirror. It may be called again, and for nil.
func (m *Mirror) Release() {
	if m == nil || m.claim == nil {
		return
	}
	m.claim.Close()
	m.claim = nil
}

// note is what the file of a mirror says.
type note struct {
	Base    string `json:"base"`
	Kind    string `json:"kind"`              // what else than the base decides about the content
	Shallow string `json:"shallow,omitempty"` // as in Mirror
	Packs   []pack `json:"packs"`
}

// pack is one pack of a mirror. With those before it, it holds all that To
// reaches.
type pack struct {
	Name  string `json:"name"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

// folder is the folder of one repository.
type folder struct {
	Cache
	dir  string
	repo *git.Repo
}

func (p *folder) path(name string) string     { return filepath.Join(p.dir, name) }
func (p *folder) lockPath(name string) string { return filepath.Join(p.dir, locksName, name) }

const (
	making     = ".make" // the lock that is held while a mirror is made
	noteName   = "mirror"
	ownerName  = "repository"
	locksName  = "locks"
	suffixNew  = ".new"
	suffixGone = ".gone"
	kindAlone  = "alone"
)

// Open returns a mirror of what the commit base of a repository reaches, or, with
// alone, of that commit without those before it. Key names the repository. If
// there is none yet it is made, which may take long; one that is there costs the
// reading of a file.
func (s Cache) Open(ctx context.Context, key string, repo *git.Repo, base string, alone bool) (*Mirror, error) {
	m, err := s.openMirror(ctx, key, repo, base, alone)
	if err != nil {
		return nil, fmt.Errorf("mirror the history of %s: %w", base, err)
	}
	return m, nil
}

func (s Cache) openMirror(ctx context.Context, key string, repo *git.Repo, base string, alone bool) (*Mirror, error) {
	if err := repo.Format.Check(base); err != nil {
		return nil, err
	}
	if s.Say == nil {
		s.Say = func(string) {}
	}
	p := &folder{Cache: s, dir: filepath.Join(s.Dir, key), repo: repo}
	kind, err := p.mirrorKind(alone)
	if err != nil {
		return nil, err
	}
	if m, _, err := p.holdExisting(ctx, base, kind); m != nil || err != nil {
		return m, err
	}
	turn, err := flock.Try(p.lockPath(making))
	if errors.Is(err, flock.ErrHeld) {
		s.Say("history: waiting for another run that packs it")
		turn, err = flock.Wait(ctx, p.lockPath(making))
	}
	if err != nil {
		return nil, err
	}
	defer turn.Close()
	if m, _, err := p.holdExisting(ctx, base, kind); m != nil || err != nil {
		return m, err
	}
	return p.makeMirror(ctx, base, kind)
}

// mirrorKind tells mirrors of one commit apart that hold different objects: a shallow
// clone may become deeper.
func (p *folder) mirrorKind(alone bool) (string, error) {
	if alone {
		return kindAlone, nil
	}
	ends, err := p.repo.Shallow()
	if err != nil || ends == nil {
		return "", err
	}
	sum := sha256.Sum256(ends)
	return "shallow-" + hex.EncodeToString(sum[:6]), nil
}

func mirrorName(base, kind string) string {
	if kind == "" {
		return base
	}
	return base + "-" + kind
}

// holdExisting takes a mirror for use, or returns nil if there is none that is sound.
func (p *folder) holdExisting(ctx context.Context, base, kind string) (*Mirror, note, error) {
	name := mirrorName(base, kind)
	if _, ok := p.readNote(name); !ok {
		return nil, note{}, nil
	}
	claim, err := flock.WaitShared(ctx, p.lockPath(name))
	if err != nil {
		return nil, note{}, err
	}
	n, ok := p.readNote(name)
	if !ok { // It was removed meanwhile.
		return nil, note{}, claim.Close()
	}
	m, err := p.newMirror(name, n, claim)
	return m, n, err
}

// newMirror is the mirror of a claim.
func (p *folder) newMirror(name string, n note, claim *os.File) (*Mirror, error) {
	// The time of the lock is the time of the last use.
	if _, err := claim.WriteAt([]byte{'\n'}, 0); err != nil {
		return nil, errors.Join(err, claim.Close())
	}
	m := &Mirror{Base: n.Base, Objects: filepath.Join(p.path(name), "objects"), claim: claim}
	if n.Shallow != "" {
		m.Shallow = []byte(n.Shallow)
	}
	return m, nil
}

// readNote returns what a mirror holds, if all of it is there.
func (p *folder) readNote(name string) (note, bool) {
	var n note
	text, err := os.ReadFile(filepath.Join(p.path(name), noteName))
	if err != nil || json.Unmarshal(text, &n) != nil || mirrorName(n.Base, n.Kind) != name {
		return note{}, false
	}
	for _, pack := range n.Packs {
		at := filepath.Join(p.path(name), "objects", "pack", pack.Name)
		info, err := os.Lstat(at + ".pack")
		if _, noIndex := os.Lstat(at + ".idx"); err != nil || noIndex != nil || info.Size() != pack.Bytes {
			return note{}, false
		}
	}
	return n, len(n.Packs) > 0
}

// makeMirror makes a mirror. The caller has the lock for making.
func (p *folder) makeMirror(ctx context.Context, base, kind string) (*Mirror, error) {
	began := p.Now()
	n := note{Base: base, Kind: kind}
	old, packs, err := p.extendExisting(ctx, base, kind)
	if err != nil {
		return nil, err
	}
	defer old.Release()
	if err := p.checkFetched(ctx, base); err != nil {
		return nil, err
	}
	if kind == kindAlone {
		n.Shallow = base + "\n"
	} else {
		ends, err := p.repo.ShallowFor(ctx, base)
		if err != nil {
			return nil, err
		}
		n.Shallow = string(ends)
	}
	first := len(packs) == 0
	if first {
		p.announceWork(base, kind)
	}
	name := mirrorName(base, kind)
	dir := p.path("." + name + suffixNew)
	if err := errors.Join(p.removeLeftovers(ctx), os.MkdirAll(p.dir, 0o700)); err != nil {
		return nil, err
	}
	if n.Packs, err = p.fillMirror(ctx, dir, n, old, packs); err == nil {
		err = p.writeNote(dir, n)
	}
	var m *Mirror
	if err == nil {
		m, err = p.moveIntoPlace(ctx, dir, n)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if first && kind != kindAlone {
		p.Say(fmt.Sprintf("history: packed what %.12s reaches for the sandbox: %s in %.1f s (a later base adds only what is new)",
			base, formatSize(n.totalBytes()), p.Now().Sub(began).Seconds()))
	}
	old.Release()
	if err := p.trimUnused(ctx); err != nil {
		m.Release()
		return nil, err
	}
	return m, nil
}

// checkFetched refuses a base of which a partial clone lacks files: nothing fetches
// them here, and a mirror without them would stay without them.
func (p *folder) checkFetched(ctx context.Context, base string) error {
	partial, err := p.repo.Partial()
	if err != nil || !partial {
		return err
	}
	absent, err := p.repo.Absent(ctx, base)
	if err != nil || absent == 0 {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitNotReady, What: fmt.Sprintf("%d files of commit %.12s are not in this partial clone", absent, base),
		Why: "pawl fetches nothing", Fix: "check that commit out once, which fetches them: {1}",
		Actions: []loop.Command{loop.HostCommand("git", "checkout", "--detach", base)},
	}
}

// announceWork says that the making of a large mirror begins.
func (p *folder) announceWork(base, kind string) {
	if kind == kindAlone {
		return
	}
	dirs, err := p.repo.ObjectDirs()
	if err != nil {
		return
	}
	var total int64
	for _, dir := range dirs {
		entries, _ := os.ReadDir(filepath.Join(dir, "pack"))
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				total += info.Size()
			}
		}
	}
	if total >= sizeSaid {
		p.Say(fmt.Sprintf("history: packing what %.12s reaches for the sandbox, once; the repository's packs have %s", base, formatSize(total)))
	}
}

// extendExisting holds the mirror that was used last of those whose base is an ancestor
// of another one, and returns the packs of it that go on being used. There may be
// none.
func (p *folder) extendExisting(ctx context.Context, base, kind string) (*Mirror, []pack, error) {
	if kind == kindAlone {
		return nil, nil, nil
	}
	all := p.listMirrors()
	all = slices.DeleteFunc(all, func(k kept) bool { return k.note.Kind != kind })
	for _, k := range all[:min(len(all), maxBases)] {
		before, err := p.repo.Contains(ctx, base, k.note.Base)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil || !before { // An error: git has forgotten the commit.
			continue
		}
		m, n, err := p.holdExisting(ctx, k.note.Base, kind)
		if m != nil || err != nil {
			return m, reusedPacks(n.Packs), err
		}
	}
	return nil, nil, nil
}

// reusedPacks says which packs of a mirror the next one takes over: all of them, until
// there are so many that git becomes slow with them. Then the later ones become
// one, or all do, if the first is not much larger than they are together.
func reusedPacks(packs []pack) []pack {
	if len(packs) < maxPacks {
		return packs
	}
	var later int64
	for _, p := range packs[1:] {
		later += p.Bytes
	}
	if later > packs[0].Bytes/2 {
		return nil
	}
	return packs[:1]
}

// fillMirror makes the object directory below dir and returns its packs.
func (p *folder) fillMirror(ctx context.Context, dir string, n note, old *Mirror, packs []pack) ([]pack, error) {
	in := filepath.Join(dir, "objects", "pack")
	if err := os.MkdirAll(in, 0o755); err != nil {
		return nil, err
	}
	reach := git.Reach{Commit: n.Base, Alone: n.Kind == kindAlone}
	for _, had := range packs {
		reach.Without = had.To
		for _, suffix := range []string{".pack", ".idx"} {
			if err := os.Link(filepath.Join(old.Objects, "pack", had.Name+suffix), filepath.Join(in, had.Name+suffix)); err != nil {
				return nil, err
			}
		}
	}
	if err := beforePack.Hit(ctx); err != nil {
		return nil, err
	}
	names, err := p.repo.PackReach(ctx, dir, reach)
	if err != nil {
		return nil, err
	}
	packs = slices.Clone(packs)
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(in, name+".pack"))
		if err != nil {
			return nil, err
		}
		packs = append(packs, pack{Name: name, To: n.Base, Bytes: info.Size()})
	}
	return packs, errors.Join(makeReadable(filepath.Join(dir, "objects")), afterPack.Hit(ctx))
}

// makeReadable lets every user read an object directory: programs in a sandbox may
// be another one. Nobody gets through the folders above it.
func makeReadable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o444)
	})
}

// writeNote writes the note of a mirror, after everything else is on the disk.
func (p *folder) writeNote(dir string, n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	for _, d := range []string{filepath.Join(dir, "objects", "pack"), filepath.Join(dir, "objects")} {
		if err := durable.SyncFolder(d); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, noteName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, durable.SyncFile(f), f.Close(), durable.SyncFolder(dir))
}

// moveIntoPlace gives a complete mirror its name, and holds it.
func (p *folder) moveIntoPlace(ctx context.Context, dir string, n note) (*Mirror, error) {
	name := mirrorName(n.Base, n.Kind)
	if err := beforePlace.Hit(ctx); err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.path(ownerName), []byte(p.repo.CommonDir+"\n"), 0o600); err != nil {
		return nil, err
	}
	claim, err := flock.WaitShared(ctx, p.lockPath(name))
	if err != nil {
		return nil, err
	}
	if err := os.Rename(dir, p.path(name)); err != nil {
		return nil, errors.Join(err, claim.Close())
	}
	m, err := p.newMirror(name, n, claim)
	if err == nil {
		err = errors.Join(durable.SyncFolder(p.dir), afterPlace.Hit(ctx))
	}
	if err != nil {
		m.Release()
		return nil, err
	}
	return m, nil
}

func (n note) totalBytes() (total int64) {
	for _, p := range n.Packs {
		total += p.Bytes
	}
	return total
}

// formatSize is a number of bytes as people read it.
func formatSize(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return fmt.Sprintf("%d B", n)
	case n < kib*kib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/kib/kib)
}

// kept is a mirror that is there.
type kept struct {
	name string
	note note
	used time.Time
}

// listMirrors lists the sound mirrors of a repository, the last used first.
func (p *folder) listMirrors() []kept {
	entries, _ := os.ReadDir(p.dir)
	var list []kept
	for _, e := range entries {
		n, ok := p.readNote(e.Name())
		if !ok || !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		k := kept{name: e.Name(), note: n}
		if info, err := os.Lstat(p.lockPath(k.name)); err == nil {
			k.used = info.ModTime()
		}
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b kept) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.name, b.name)) })
	return list
}
