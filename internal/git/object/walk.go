package object

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// maxEntries bounds a listing: ten trees that each hold the next one ten times
// are a few hundred bytes and name 10^10 files.
const maxEntries = 2_000_000

// Tree lists all files of a tree, or of a commit's tree, through the process
// that is running already, and returns the tree's name. Sizes are not filled.
func (b *Blobs) Tree(rev string) (tree string, entries []Entry, err error) {
	tree, body, err := b.readTreeOf(rev)
	if err != nil {
		return "", nil, err
	}
	var dirs []Entry
	if entries, dirs, err = b.splitTree("", body, nil, nil); err != nil {
		return "", nil, fmt.Errorf("list tree %s: %w", tree, err)
	}
	for len(dirs) > 0 {
		level := dirs
		dirs = nil
		err := b.eachObject(idsOf(level), func(i int, kind string, size int64, r io.Reader) error {
			body, err := readObject("tree", kind, size, r)
			if err == nil {
				entries, dirs, err = b.splitTree(level[i].Path+"/", body, entries, dirs)
			}
			return err
		})
		if err != nil {
			return "", nil, fmt.Errorf("list tree %s: %w", tree, err)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return tree, entries, nil
}

// Within lists the files of the folders of a commit or a tree that enter lets it
// into, level by level from the top, which has no name. It reads at most that many
// folders, and reports whether those were all. Sizes are not filled.
func (b *Blobs) Within(rev string, most int, enter func(dir string) bool) (files []Entry, all bool, err error) {
	tree, body, err := b.readTreeOf(rev)
	if err != nil {
		return nil, false, err
	}
	files, dirs, err := b.splitTree("", body, nil, nil)
	all = true
	for err == nil && len(dirs) > 0 {
		level := slices.DeleteFunc(dirs, func(e Entry) bool { return !enter(e.Path) })
		if len(level) > most {
			level, all = level[:most], false
		}
		most -= len(level)
		dirs = nil
		err = b.eachObject(idsOf(level), func(i int, kind string, size int64, r io.Reader) error {
			body, err := readObject("tree", kind, size, r)
			if err == nil {
				files, dirs, err = b.splitTree(level[i].Path+"/", body, files, dirs)
			}
			return err
		})
	}
	if err != nil {
		return nil, false, fmt.Errorf("list tree %s: %w", tree, err)
	}
	return files, all, nil
}

// TreeOf returns the tree of a commit, or of itself.
func (b *Blobs) TreeOf(rev string) (string, error) {
	tree, _, err := b.readTreeOf(rev)
	return tree, err
}

// readTreeOf reads the object rev and, if it is a commit, its tree.
func (b *Blobs) readTreeOf(rev string) (string, []byte, error) {
	var kind string
	var body []byte
	read := func(_ int, k string, size int64, r io.Reader) (err error) {
		kind = k
		if size > MaxBlob {
			return fmt.Errorf("%s of %d bytes", k, size)
		}
		body = make([]byte, size)
		_, err = io.ReadFull(r, body)
		return err
	}
	if err := b.eachObject([]string{rev}, read); err != nil {
		return "", nil, err
	}
	if kind == "commit" {
		line, _, _ := bytes.Cut(body, []byte{'\n'})
		id, _ := bytes.CutPrefix(line, []byte("tree "))
		rev = string(id)
		if err := b.eachObject([]string{rev}, read); err != nil {
			return "", nil, err
		}
	}
	if kind != "tree" {
		return "", nil, fmt.Errorf("object %s is a %s, neither a commit nor a tree", rev, kind)
	}
	return rev, body, nil
}

func readObject(want, kind string, size int64, r io.Reader) ([]byte, error) {
	if kind != want || size > MaxBlob {
		return nil, fmt.Errorf("it is a %s of %d bytes", kind, size)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(r, body)
	return body, err
}

// splitTree appends what one tree object holds.
func (b *Blobs) splitTree(prefix string, body []byte, files, dirs []Entry) ([]Entry, []Entry, error) {
	for len(body) > 0 {
		e, rest, err := b.parseEntry(prefix, body)
		if err != nil {
			return nil, nil, err
		}
		if e.Mode == ModeTree {
			dirs = append(dirs, e)
		} else {
			files = append(files, e)
		}
		if len(files)+len(dirs) > maxEntries {
			return nil, nil, fmt.Errorf("it holds more than %d entries", maxEntries)
		}
		body = rest
	}
	return files, dirs, nil
}

// parseEntries lists what one tree object holds, in its order.
func (b *Blobs) parseEntries(prefix string, body []byte) ([]Entry, error) {
	var list []Entry
	for len(body) > 0 {
		e, rest, err := b.parseEntry(prefix, body)
		if err != nil {
			return nil, err
		}
		list, body = append(list, e), rest
	}
	return list, nil
}

// parseEntry reads the first entry of a tree object: "mode name\0" and the raw id.
func (b *Blobs) parseEntry(prefix string, body []byte) (e Entry, rest []byte, err error) {
	raw := b.format.NameLen()
	head, rest, ok := bytes.Cut(body, []byte{0})
	modeText, name, spaced := bytes.Cut(head, []byte{' '})
	mode, err := strconv.ParseUint(string(modeText), 8, 32)
	if !ok || !spaced || err != nil || len(rest) < raw {
		return Entry{}, nil, fmt.Errorf("tree at %q is damaged", prefix)
	}
	if bytes.IndexByte(name, '/') >= 0 || len(prefix)+len(name) > MaxPath {
		return Entry{}, nil, fmt.Errorf("tree at %.80q holds the name %.80q", prefix, name)
	}
	return Entry{Path: prefix + string(name), Mode: uint32(mode), ID: hex.EncodeToString(rest[:raw])}, rest[raw:], nil
}

func idsOf(entries []Entry) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}
