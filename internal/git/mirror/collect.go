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

	"github.com/pawl-run/pawl/internal/flock"
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
	err := s.each(func(p *place) error {
		packs := map[string]int64{}
		for _, k := range p.list() {
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
	err = s.each(func(p *place) error {
		// While one is made its folder has no name yet, and nothing is removed.
		turn, err := flock.Try(p.lock(making))
		if errors.Is(err, flock.ErrHeld) {
			return nil
		}
		if err != nil {
			return err
		}
		defer turn.Close()
		gone, err := p.collect(ctx, before, dry)
		removed = append(removed, gone...)
		return err
	})
	if err != nil {
		return removed, fmt.Errorf("remove mirrors: %w", err)
	}
	return removed, nil
}

func (p *place) collect(ctx context.Context, before time.Time, dry bool) (removed []Info, err error) {
	repository, orphan := p.owner()
	for _, k := range p.list() {
		if !orphan && k.used.After(before) {
			continue
		}
		info := Info{Repository: repository, Base: k.note.Base, Bytes: k.note.bytes(), Used: k.used, Orphan: orphan}
		gone := dry && !p.live(k.name)
		if !dry {
			if gone, err = p.remove(ctx, k.name); err != nil {
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
	err = p.leftovers(ctx)
	if err == nil && orphan && len(p.list()) == 0 {
		err = os.RemoveAll(p.dir)
	}
	return removed, err
}

// owner is the git directory of the repository, and whether it is gone.
func (p *place) owner() (dir string, gone bool) {
	text, err := os.ReadFile(p.at(ownerName))
	if err != nil {
		return "", false
	}
	dir = strings.TrimSpace(string(text))
	_, err = os.Lstat(dir)
	return dir, errors.Is(err, fs.ErrNotExist)
}

// live reports whether somebody holds a mirror.
func (p *place) live(name string) bool {
	claim, err := flock.Try(p.lock(name))
	if err != nil {
		return true
	}
	claim.Close()
	return false
}

// remove removes a mirror, unless somebody holds it. Whoever calls it has the
// lock for making.
func (p *place) remove(ctx context.Context, name string) (bool, error) {
	claim, err := flock.Try(p.lock(name))
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
	gone := p.at("." + name + suffixGone)
	if err := os.RemoveAll(gone); err != nil {
		return false, err
	}
	if err := os.Rename(p.at(name), gone); err != nil {
		return false, err
	}
	return true, errors.Join(os.RemoveAll(gone), os.Remove(p.lock(name)), afterRemove.Hit(ctx))
}

// trim removes the mirrors of a repository that were not used for longest, beyond
// a few.
func (p *place) trim(ctx context.Context) error {
	idle := 0
	for _, k := range p.list() {
		if p.live(k.name) {
			continue
		}
		if idle++; idle > maxIdle {
			if _, err := p.remove(ctx, k.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftovers removes what a process left that was killed while it made or removed
// a mirror, and mirrors that are damaged. Whoever calls it has the lock for
// making.
func (p *place) leftovers(ctx context.Context) error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			err = errors.Join(err, os.RemoveAll(p.at(name)))
			continue
		}
		if _, sound := p.read(name); sound || !e.IsDir() || name == locksName {
			continue
		}
		removed, rerr := p.remove(ctx, name)
		if rerr == nil && !removed {
			rerr = fmt.Errorf("%s is damaged, and a run still uses it", p.at(name))
		}
		err = errors.Join(err, rerr)
	}
	return err
}

// each calls fn for the folder of each repository.
func (s Cache) each(fn func(*place) error) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := fn(&place{Cache: s, dir: filepath.Join(s.Dir, e.Name())}); err != nil {
				return err
			}
		}
	}
	return nil
}
