package hazard

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/ground/safeopen"
)

// maxEntries bounds how many hooks or replaced objects are named.
const maxEntries = 200

// maxPackedRefs is how much of the list of packed refs is searched, in bytes.
const maxPackedRefs = 256 << 20

// scanGitFile judges a checkout whose .git is not a directory.
func (s *scan) scanGitFile() {
	entry := filepath.Join(s.dirs.Root, ".git")
	info, err := os.Lstat(entry)
	if err == nil && info.IsDir() && s.dirs.GitDir == entry {
		return
	}
	h := Hazard{Kind: GitFile, Key: ".git", Where: ".git", Value: s.dirs.GitDir, Why: "the git directory is not in the checkout"}
	now, err := gitdir.Of(s.dirs.Root)
	if err != nil || now != s.dirs.GitDir {
		h.Refuse, h.Value, h.Why = true, now, "it is no longer the git directory that was opened"
	}
	s.add(h)
}

// scanHooks lists everything that git could start by its name. A hook that is not
// executable today is one command away from it.
func (s *scan) scanHooks() {
	dir := filepath.Join(s.dirs.CommonDir, "hooks")
	for _, e := range s.readDir(dir) {
		if e.IsDir() || strings.HasSuffix(e.Name(), ".sample") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		value := "sha256:"
		if data, err := gitdir.Read(path); err == nil {
			value += digest(data)
		} else {
			value = gitdir.Reason(err)
		}
		if target, err := os.Readlink(path); err == nil {
			value = "link to " + target + " " + value
		}
		s.add(Hazard{Kind: Hook, Key: e.Name(), Where: s.displayName(path), Value: value, Why: "git starts it as a program"})
	}
}

// readDir lists a directory; too many of them are a hazard of their own.
func (s *scan) readDir(dir string) []fs.DirEntry {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.addUnreadable(dir, err)
		return nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxEntries + 1)
	if len(entries) > maxEntries {
		s.addUnreadable(dir, errors.New("it holds more entries than are judged"))
		entries = entries[:maxEntries]
	}
	return entries
}

// scanAttributes names the lines of info/attributes that give files a driver.
func (s *scan) scanAttributes() {
	path := filepath.Join(s.dirs.CommonDir, "info", "attributes")
	for line := range s.eachLine(path) {
		for _, word := range strings.Fields(line)[1:] {
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-!"), "=")
			if name == "filter" || name == "diff" || name == "merge" {
				s.add(Hazard{
					Kind: Attributes, Key: "info/attributes", Where: s.displayName(path), Value: line,
					Why: "it gives files a filter, diff or merge driver",
				})
				break
			}
		}
	}
}

// eachLine yields the lines of a file that are neither empty nor a comment.
func (s *scan) eachLine(path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		data, _ := s.readFile(path)
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

// scanLinks judges parts of the git directory that are really elsewhere.
func (s *scan) scanLinks() {
	for _, name := range []string{"config", "hooks", "info", "objects", "objects/info", "objects/pack", "refs", "packed-refs"} {
		path := filepath.Join(s.dirs.CommonDir, filepath.FromSlash(name))
		target, err := os.Readlink(path)
		if err != nil {
			continue
		}
		s.add(Hazard{
			Kind: Leads, Key: name, Where: s.displayName(path), Value: target, Refuse: s.leadsThroughCheckout(path),
			Why: "a part of the git directory is a link",
		})
	}
}

func (s *scan) scanAlternates() {
	s.scanAlternatesOf(filepath.Join(s.dirs.CommonDir, "objects"), 0)
}

// scanAlternatesOf follows a chain of object stores as git does.
func (s *scan) scanAlternatesOf(objects string, depth int) {
	path := filepath.Join(objects, "info", "alternates")
	for line := range s.eachLine(path) {
		h := Hazard{Kind: Alternates, Key: "objects/info/alternates", Where: s.displayName(path), Value: line, Why: "objects are read from another store"}
		store := line
		if !filepath.IsAbs(store) {
			store = filepath.Join(objects, store)
		}
		_, inside := pathBelow(s.dirs.CommonDir, gitdir.Resolve(objects, store))
		switch {
		case !inside || line[0] == '"':
			h.Refuse, h.Why = true, "objects come from outside the repository, and can change or go away"
		case depth > maxIncludes:
			h.Refuse, h.Why = true, "object stores are nested too deeply"
		}
		s.add(h)
		if !h.Refuse {
			s.scanAlternatesOf(store, depth+1)
		}
	}
	path = filepath.Join(objects, "info", "http-alternates")
	for line := range s.eachLine(path) {
		s.add(Hazard{Kind: Alternates, Key: "objects/info/http-alternates", Where: s.displayName(path), Value: line, Refuse: true, Why: "objects come from another host"})
	}
}

func (s *scan) scanGrafts() {
	path := filepath.Join(s.dirs.CommonDir, "info", "grafts")
	for line := range s.eachLine(path) {
		s.add(Hazard{
			Kind: Graft, Key: "info/grafts", Where: s.displayName(path), Value: line, Refuse: true,
			Why: "git would show another history than the commits hold",
		})
		return
	}
}

// scanReplaceRefs names replace refs, loose ones and packed ones. Every command of a
// Repo ignores them.
func (s *scan) scanReplaceRefs() {
	dir := filepath.Join(s.dirs.CommonDir, "refs", "replace")
	for _, e := range s.readDir(dir) {
		data, _ := s.readFile(filepath.Join(dir, e.Name()))
		s.addReplaceRef(e.Name(), string(bytes.TrimSpace(data)))
	}
	packed := filepath.Join(s.dirs.CommonDir, "packed-refs")
	f, info, err := safeopen.Open(gitdir.Resolve("", packed))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil || info.Size() > maxPackedRefs {
		s.addUnreadable(packed, errors.Join(err, errors.New("it cannot be searched")))
		return
	}
	defer f.Close()
	s.scanPackedReplaced(f, packed)
}

// packedLines names the replace refs in whole lines of the list, and counts
// them. Every line holds refs/re; what is looked for begins with a rarer byte.
func (s *scan) packedLines(text []byte) (found int) {
	for {
		at := bytes.Index(text, []byte("place/"))
		if at < 0 {
			return found
		}
		before := text[:at]
		name, after, _ := bytes.Cut(text[at+len("place/"):], []byte{'\n'})
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		if id, ok := bytes.CutSuffix(line, []byte(" refs/re")); ok {
			if found++; found <= maxEntries {
				s.addReplaceRef(string(name), string(id))
			}
		}
		text = after
	}
}

// scanPackedReplaced searches in pieces: the list can be long, and is read before
// every run.
func (s *scan) scanPackedReplaced(f io.Reader, path string) {
	buf, kept := make([]byte, 128<<10), 0
	found := 0
	for {
		n, err := f.Read(buf[kept:])
		piece := buf[:kept+n]
		whole := bytes.LastIndexByte(piece, '\n') + 1
		if err != nil {
			whole = len(piece)
		}
		found += s.packedLines(piece[:whole])
		if err != nil || whole == 0 && len(piece) == len(buf) {
			if !errors.Is(err, io.EOF) || found > maxEntries {
				s.addUnreadable(path, errors.New("it cannot be searched, or holds more than is judged"))
			}
			return
		}
		kept = copy(buf, piece[whole:])
	}
}

func (s *scan) addReplaceRef(name, id string) {
	s.add(Hazard{
		Kind: Replace, Key: "refs/replace/" + name, Where: ".git/refs/replace", Value: id,
		Why: "git would show another object in place of this one",
	})
}
