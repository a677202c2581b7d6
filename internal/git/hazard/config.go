package hazard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/gitdir"
)

const (
	maxIncludes = 10 // one in another, as in git
	maxLinkHops = 40
)

// scan collects the hazards of one repository.
type scan struct {
	dirs  gitdir.Dirs
	found []Hazard
	seen  map[string]bool // configuration files that were read
}

func (s *scan) add(h Hazard) {
	h.Key, h.Where, h.Value = Printable(h.Key), Printable(h.Where), Printable(h.Value)
	s.found = append(s.found, h)
}

func (s *scan) addUnreadable(path string, err error) {
	s.add(Hazard{
		Kind: Unreadable, Key: filepath.Base(path), Where: s.displayName(path), Value: gitdir.Reason(err),
		Refuse: true, Why: "what it holds cannot be judged",
	})
}

// displayName shortens a path of the git directory, so that a fingerprint does not
// depend on where the repository lies.
func (s *scan) displayName(path string) string {
	if rel, ok := pathBelow(s.dirs.CommonDir, path); ok {
		return filepath.ToSlash(filepath.Join(".git", rel))
	}
	if rel, ok := pathBelow(s.dirs.Root, path); ok {
		return filepath.ToSlash(rel)
	}
	return path
}

// pathBelow returns path relative to dir, if it is dir or lies in it.
func pathBelow(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// readFile returns the content of a file, or false if it is missing. A file that
// cannot be read is a hazard.
func (s *scan) readFile(path string) ([]byte, bool) {
	data, err := gitdir.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		s.addUnreadable(path, err)
		return nil, false
	}
	return data, true
}

func (s *scan) scanConfigs() {
	s.scanConfig(filepath.Join(s.dirs.CommonDir, "config"), 0)
	// Git reads it only with extensions.worktreeConfig, which one more line in
	// the other file switches on.
	s.scanConfig(filepath.Join(s.dirs.GitDir, "config.worktree"), 0)
}

func (s *scan) scanConfig(path string, depth int) {
	if s.seen[path] {
		return
	}
	s.seen[path] = true
	data, ok := s.readFile(path)
	if !ok {
		return
	}
	settings, err := gitconfig.Parse(data)
	if err != nil {
		s.addUnreadable(path, err)
		return
	}
	for _, one := range settings {
		if isInclude(one) {
			s.scanInclude(path, one, depth)
		}
		if kind, why := keyHazard(one); kind != "" {
			s.add(Hazard{Kind: kind, Key: one.Key, Where: s.displayName(path), Value: one.Value, Why: why})
		}
	}
}

// scanInclude judges where an include leads and reads what it names, whatever its
// condition: a condition can become true later.
func (s *scan) scanInclude(from string, one gitconfig.Setting, depth int) {
	h := Hazard{
		Kind: Include, Key: one.Key, Where: s.displayName(from), Value: one.Value,
		Why: "git reads configuration from another file",
	}
	target, err := includePath(from, one.Value)
	switch {
	case err != nil:
		h.Refuse, h.Why = true, gitdir.Reason(err)
	case s.leadsThroughCheckout(target):
		h.Refuse, h.Why = true, "what is in the work tree could decide what git starts"
	case depth == maxIncludes:
		h.Refuse, h.Why = true, "includes are nested too deeply"
	}
	s.add(h)
	if !h.Refuse {
		s.scanConfig(target, depth+1)
	}
}

// includePath resolves the value as git does: relative to the file it is in.
func includePath(from, value string) (string, error) {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	if value == "" || strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%(") {
		return "", fmt.Errorf("the path %.100q is not resolved here", value)
	}
	if filepath.IsAbs(value) {
		return filepath.Clean(value), nil
	}
	return filepath.Join(filepath.Dir(from), value), nil
}

// leadsThroughCheckout reports whether a path, or any link that it goes through,
// lies in the work tree outside the git directory.
func (s *scan) leadsThroughCheckout(path string) bool {
	for range maxLinkHops {
		if s.isInCheckout(path) {
			return true
		}
		next, ok := followLink(path)
		if !ok {
			return false
		}
		path = next
	}
	return true
}

func (s *scan) isInCheckout(path string) bool {
	if _, in := pathBelow(s.dirs.CommonDir, path); in {
		return false
	}
	if _, in := pathBelow(s.dirs.GitDir, path); in {
		return false
	}
	_, in := pathBelow(s.dirs.Root, path)
	return in
}

// followLink replaces the first link in an absolute path by what it names.
func followLink(path string) (string, bool) {
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator)
	parts := strings.Split(strings.Trim(path[len(volume):], string(filepath.Separator)), string(filepath.Separator))
	for i, part := range parts {
		dir := at
		at = filepath.Join(at, part)
		target, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		return filepath.Join(append([]string{target}, parts[i+1:]...)...), true
	}
	return "", false
}
