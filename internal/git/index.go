package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// errIndex means that an index file has a form that is not read here: a split
// or sparse index, or a damaged one.
var errIndex = errors.New("index file is not understood")

// indexEntry is what the index knows about one file of the checkout.
type indexEntry struct {
	Entry
	changed time.Time // modification time when it was last compared
	stage   int       // not 0 in a conflict
	skip    bool      // skip-worktree: the file is absent on purpose
	intent  bool      // added by name only
}

const (
	flagExtended = 0x4000
	flagSkip     = 0x4000 // in the extended flags
	flagIntent   = 0x2000
)

// parseIndex reads versions 2 to 4 of git's index format. It is done here
// because every git command that compares the checkout may start filters.
func parseIndex(data []byte, rawLen int) ([]indexEntry, error) {
	if len(data) < 12+rawLen || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, n := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
	if version < 2 || version > 4 || n > len(data)/(42+rawLen) {
		return nil, errIndex
	}
	rest := data[12 : len(data)-rawLen]
	entries := make([]indexEntry, 0, n)
	path := ""
	for range n {
		e, size, err := parseIndexEntry(rest, rawLen, version, path)
		if err != nil {
			return nil, err
		}
		path = e.Path
		entries = append(entries, e)
		rest = rest[size:]
	}
	return entries, checkExtensions(rest)
}

// parseIndexEntry reads one entry and returns how many bytes it takes.
func parseIndexEntry(data []byte, rawLen int, version uint32, previous string) (indexEntry, int, error) {
	fixed := 40 + rawLen + 2
	if len(data) < fixed+2 {
		return indexEntry{}, 0, errIndex
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(data[4*i:]) }
	flags := binary.BigEndian.Uint16(data[40+rawLen:])
	e := indexEntry{
		Entry: Entry{Mode: word(6), Size: int64(word(9)), ID: hex.EncodeToString(data[40 : 40+rawLen])},

		changed: time.Unix(int64(word(2)), int64(word(3))),
		stage:   int(flags >> 12 & 3),
	}
	if version >= 3 && flags&flagExtended != 0 {
		more := binary.BigEndian.Uint16(data[fixed:])
		e.skip, e.intent = more&flagSkip != 0, more&flagIntent != 0
		fixed += 2
	}
	if e.Mode == modeTree {
		return e, 0, fmt.Errorf("%w: it is sparse", errIndex)
	}
	path, size, err := indexPath(data[fixed:], version, previous)
	e.Path = path
	size += fixed
	if version < 4 {
		size = (size + 7) &^ 7 // entries are padded to multiples of eight
	}
	if err != nil || size > len(data) {
		return e, 0, errIndex
	}
	return e, size, nil
}

// indexPath reads a path up to its NUL. In version 4 it shares a prefix with
// the path before: a number says how many bytes to drop from that one's end.
func indexPath(data []byte, version uint32, previous string) (string, int, error) {
	prefix, used := "", 0
	if version == 4 {
		drop, n := offset(data)
		if n == 0 || drop > len(previous) {
			return "", 0, errIndex
		}
		prefix, used = previous[:len(previous)-drop], n
	}
	end := bytes.IndexByte(data[used:], 0)
	if end < 0 {
		return "", 0, errIndex
	}
	return prefix + string(data[used:used+end]), used + end + 1, nil
}

// offset reads git's variable-length number: seven bits a byte, most
// significant first, each continuation adding one. It returns 0 bytes if there
// is none.
func offset(data []byte) (value, size int) {
	for i, c := range data[:min(4, len(data))] {
		if i > 0 {
			value = (value + 1) << 7
		}
		value |= int(c & 0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// checkExtensions refuses what changes the meaning of the entries: by git's
// rule those names begin with a small letter.
func checkExtensions(data []byte) error {
	for len(data) >= 8 {
		size := int(binary.BigEndian.Uint32(data[4:]))
		if data[0] >= 'a' && data[0] <= 'z' {
			return fmt.Errorf("%w: it uses the extension %q", errIndex, data[:4])
		}
		if size > len(data)-8 {
			return errIndex
		}
		data = data[8+size:]
	}
	return nil
}
