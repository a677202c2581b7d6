package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/flock"
)

// Info is what is known of a mirror.
type Info struct {
	Repository string    `json:"repository"` // its git directory
	Base       string    `json:"base"`       // commit
	Bytes      int64     `json:"bytes"`      // of its packs, some of which others may share
	Used       time.Time `json:"used"`       // last
	Orphan     bool      `json:"orphan"`     // its repository is gone
}

// Usage is what all mirrors of a cache take on the disk.
type Usage struct {
	Mirrors int
	Bytes   int64 // a pack that several share counts once
	Own     int64 // of them those of one repository
}

// Usage measures the cache. Key names the repository whose share is told apart;
// it may be empty. A cache that is not there is empty.
func (s Cache) Usage(key string) (Usage, error) {
	var u Usage
	err := s.eachFolder(func(p *folder) error {
		packs := map[string]int64{}
		for _, k := range p.listMirrors() {
			u.Mirrors++
			for _, pack := range k.note.Packs {
				packs[pack.Name] = pack.Bytes
			}
		}
		for _, n := range packs {
			u.Bytes += n
			if filepath.Base(p.dir) == key {
				u.Own += n
			}
		}
		return nil
	})
	return u, err
}

// Collect removes mirrors that nobody holds and that nobody used since before,
// or whose repository is gone, and what was left of such as were never complete. With
// dry it only says which.
func (s Cache) Collect(ctx context.Context, before time.Time, dry bool) (removed []Info, err error) {
	err = s.eachFolder(func(p *folder) error {
		// While one is made its folder has no name yet, and nothing is removed.
		turn, err := flock.Try(p.lockPath(making))
		if errors.Is(err, flock.ErrHeld) {
			return nil
		}
		if err != nil {
			return err
		}
		defer turn.Close()
		gone, err := p.collectMirrors(ctx, before, dry)
		removed = append(removed, gone...)
		return err
	})
	if err != nil {
		return removed, fmt.Errorf("remove mirrors: %w", err)
	}
	return removed, nil
}

func (p *folder) collectMirrors(ctx context.Context, before time.Time, dry bool) (removed []Info, err error) {
	repository, orphan := p.findOwner()
	for _, k := range p.listMirrors() {
		if !orphan && k.used.After(before) {
			continue
		}
		info := Info{Repository: repository, Base: k.note.Base, Bytes: k.note.totalBytes(), Used: k.used, Orphan: orphan}
		gone := dry && !p.isInUse(k.name)
		if !dry {
			if gone, err = p.removeMirror(ctx, k.name); err != nil {
				return removed, err
			}
		}
		if gone {
			removed = append(removed, info)
		}
	}
	if dry {
		return removed, nil
	}
	err = p.removeLeftovers(ctx)
	if err == nil && orphan && len(p.listMirrors()) == 0 {
		err = os.RemoveAll(p.dir)
	}
	return removed, err
}

// findOwner is the git directory of the repository, and whether it is gone.
func (p *folder) findOwner() (dir string, gone bool) {
	text, err := os.ReadFile(p.path(ownerName))
	if err != nil {
		return "", false
	}
	dir = strings.TrimSpace(string(text))
	_, err = os.Lstat(dir)
	return dir, errors.Is(err, fs.ErrNotExist)
}

// isInUse reports whether somebody holds a mirror.
func (p *folder) isInUse(name string) bool {
	claim, err := flock.Try(p.lockPath(name))
	if err != nil {
		return true
	}
	claim.Close()
	return false
}

// removeMirror removes a mirror, unless somebody holds it. Whoever calls it has the
// lock for making.
func (p *folder) removeMirror(ctx context.Context, name string) (bool, error) {
	claim, err := flock.Try(p.lockPath(name))
	if errors.Is(err, flock.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer claim.Close()
	if err := beforeRemove.Hit(ctx); err != nil {
		return false, err
	}
	// Without its name it counts for nobody, however far the removal gets.
	gone := p.path("." + name + suffixGone)
	if err := os.RemoveAll(gone); err != nil {
		return false, err
	}
	if err := os.Rename(p.path(name), gone); err != nil {
		return false, err
	}
	return true, errors.Join(os.RemoveAll(gone), os.Remove(p.lockPath(name)), afterRemove.Hit(ctx))
}

// trimUnused removes the mirrors of a repository that were not used for longest, beyond
// a few.
func (p *folder) trimUnused(ctx context.Context) error {
	idle := 0
	for _, k := range p.listMirrors() {
		if p.isInUse(k.name) {
			continue
		}
		if idle++; idle > maxIdle {
			if _, err := p.removeMirror(ctx, k.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeLeftovers removes what a process left that was killed while it made or removed
// a mirror, and mirrors that are damaged. Whoever calls it has the lock for
// making.
func (p *folder) removeLeftovers(ctx context.Context) error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			err = errors.Join(err, os.RemoveAll(p.path(name)))
			continue
		}
		if _, sound := p.readNote(name); sound || !e.IsDir() || name == locksName {
			continue
		}
		removed, rerr := p.removeMirror(ctx, name)
		if rerr == nil && !removed {
			rerr = fmt.Errorf("%s is damaged, and a run still uses it", p.path(name))
		}
		err = errors.Join(err, rerr)
	}
	return err
}

// eachFolder calls fn for the folder of each repository.
func (s Cache) eachFolder(fn func(*folder) error) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := fn(&folder{Cache: s, dir: filepath.Join(s.Dir, e.Name())}); err != nil {
				return err
			}
		}
	}
	return nil
}
