package workspace

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
)

// listing is the files of a git tree, sorted by path, in a form that is searched without
// being parsed. It is a file beside a layer, where only pawl writes: two numbers, the
// records, and then all paths.
type listing struct {
	data []byte
	n    int
	raw  int // bytes of a binary object name
}

const listingHead = 8

var errListing = errors.New("listing is damaged")

// writeListing writes entries, which are sorted by path. An entry with the mode 0 means
// that the path is in the layer below and not in the tree.
func writeListing(path string, entries []object.Entry, raw int) error {
	data := binary.BigEndian.AppendUint32(nil, uint32(len(entries)))
	data = binary.BigEndian.AppendUint32(data, uint32(raw))
	at := 0
	for _, e := range entries {
		data = binary.BigEndian.AppendUint32(data, uint32(at))
		data = binary.BigEndian.AppendUint32(data, e.Mode)
		id := make([]byte, raw)
		if _, err := hex.Decode(id, []byte(e.ID)); err != nil {
			return fmt.Errorf("list %q: %w", e.Path, err)
		}
		data = append(data, id...)
		at += len(e.Path)
	}
	for _, e := range entries {
		data = append(data, e.Path...)
	}
	return os.WriteFile(path, data, 0o600)
}

func readListing(path string) (*listing, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) < listingHead {
		return nil, fmt.Errorf("%s: %w", path, errListing)
	}
	l := &listing{data: data, n: int(binary.BigEndian.Uint32(data)), raw: int(binary.BigEndian.Uint32(data[4:]))}
	if l.raw != 20 && l.raw != 32 || l.n > (len(data)-listingHead)/(8+l.raw) {
		return nil, fmt.Errorf("%s: %w", path, errListing)
	}
	end := 0
	for i := range l.n {
		start := int(binary.BigEndian.Uint32(l.recordAt(i)))
		if start < end || start > len(data)-l.textsOffset() {
			return nil, fmt.Errorf("%s: %w", path, errListing)
		}
		end = start
	}
	return l, nil
}

func (l *listing) textsOffset() int { return listingHead + l.n*(8+l.raw) }

func (l *listing) recordAt(i int) []byte { return l.data[listingHead+i*(8+l.raw):] }

// pathAt returns the path of an entry. The bytes belong to the listing.
func (l *listing) pathAt(i int) []byte {
	start, end := int(binary.BigEndian.Uint32(l.recordAt(i))), len(l.data)-l.textsOffset()
	if i+1 < l.n {
		end = int(binary.BigEndian.Uint32(l.recordAt(i + 1)))
	}
	return l.data[l.textsOffset()+start : l.textsOffset()+end]
}

func (l *listing) entryAt(i int) object.Entry {
	r := l.recordAt(i)
	return object.Entry{Path: string(l.pathAt(i)), Mode: binary.BigEndian.Uint32(r[4:]), ID: hex.EncodeToString(r[8 : 8+l.raw])}
}

// searchPath returns the index of the first entry whose path is not before path.
func (l *listing) searchPath(path string) int {
	return sort.Search(l.n, func(i int) bool { return string(l.pathAt(i)) >= path })
}

// findEntry returns the entry of a path. The mode 0 means that the path is deleted.
func (l *listing) findEntry(path string) (object.Entry, bool) {
	i := l.searchPath(path)
	if i == l.n || string(l.pathAt(i)) != path {
		return object.Entry{}, false
	}
	return l.entryAt(i), true
}

// stack is the files of one tree: the listings of its layers, topmost first.
type stack []*listing

// findEntry returns the file of the tree at a path.
func (s stack) findEntry(path string) (object.Entry, bool) {
	for _, l := range s {
		if e, ok := l.findEntry(path); ok {
			return e, e.Mode != 0
		}
	}
	return object.Entry{}, false
}

// eachBelow calls each with the files of the tree below a folder, in order, until it
// returns false. The folder "" is the whole tree.
func (s stack) eachBelow(folder string, each func(object.Entry) bool) {
	prefix := folder + "/"
	if folder == "" {
		prefix = ""
	}
	at := make([]int, len(s))
	for i, l := range s {
		at[i] = l.searchPath(prefix)
	}
	for {
		top := s.nextLayer(at, prefix)
		if top < 0 {
			return
		}
		e := s[top].entryAt(at[top])
		for i, l := range s {
			if at[i] < l.n && string(l.pathAt(at[i])) == e.Path {
				at[i]++
			}
		}
		if e.Mode != 0 && !each(e) {
			return
		}
	}
}

// allEntries returns the files of the tree sorted by path.
func (s stack) allEntries() []object.Entry {
	var list []object.Entry
	s.eachBelow("", func(e object.Entry) bool {
		list = append(list, e)
		return true
	})
	return list
}

// nextLayer returns the index of the topmost layer with the first path, or -1 if no layer
// has one below the prefix.
func (s stack) nextLayer(at []int, prefix string) int {
	top := -1
	for i, l := range s {
		if at[i] == l.n || !strings.HasPrefix(string(l.pathAt(at[i])), prefix) {
			continue
		}
		if top < 0 || string(l.pathAt(at[i])) < string(s[top].pathAt(at[top])) {
			top = i
		}
	}
	return top
}

// hasFolder reports whether the tree has files below a path.
func (s stack) hasFolder(path string) bool {
	found := false
	s.eachBelow(path, func(object.Entry) bool {
		found = true
		return false
	})
	return found
}

// entriesNamed returns the files of the tree whose last path element is name.
func (s stack) entriesNamed(name string) []object.Entry {
	var list []object.Entry
	for i, l := range s {
		for k := range l.n {
			p := l.pathAt(k)
			if len(p) < len(name) || string(p[len(p)-len(name):]) != name || len(p) > len(name) && p[len(p)-len(name)-1] != '/' {
				continue
			}
			e := l.entryAt(k)
			if _, above := s[:i].findEntry(e.Path); !above && e.Mode != 0 && !s[:i].hidesPath(e.Path) {
				list = append(list, e)
			}
		}
	}
	slices.SortFunc(list, func(a, b object.Entry) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// hidesPath reports whether one of these layers says that the path is deleted.
func (s stack) hidesPath(path string) bool {
	for _, l := range s {
		if e, ok := l.findEntry(path); ok {
			return e.Mode == 0
		}
	}
	return false
}
