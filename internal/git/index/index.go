// Package index reads and writes git's index files as data.
//
// It opens no file, compares nothing with a checkout and refreshes nothing.
package index

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/git/object"
)

// ErrForm means that an index file has a form that is not read here: a split
// or sparse index, or a damaged one.
var ErrForm = errors.New("index file is not understood")

// Record is what the index knows about one file of the checkout.
type Record struct {
	object.Entry
	Modified time.Time // modification time when it was last compared
	Stage    int       // not 0 in a conflict
	Skip     bool      // skip-worktree: the file is absent on purpose
	Intent   bool      // added by name only
}

const (
	flagExtended = 0x4000
	flagSkip     = 0x4000 // in the extended flags
	flagIntent   = 0x2000
)

// Parse reads versions 2 to 4 of git's index format. It is done here
// because every git command that compares the checkout may start filters. rawLen
// is the length of an object name in bytes.
func Parse(data []byte, rawLen int) ([]Record, error) {
	if len(data) < 12+rawLen || string(data[:4]) != "DIRC" {
		return nil, ErrForm
	}
	version, n := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
	if version < 2 || version > 4 || n > len(data)/(42+rawLen) {
		return nil, ErrForm
	}
	rest := data[12 : len(data)-rawLen]
	entries := make([]Record, 0, n)
	path := ""
	for range n {
		e, size, err := parseRecord(rest, rawLen, version, path)
		if err != nil {
			return nil, err
		}
		path = e.Path
		entries = append(entries, e)
		rest = rest[size:]
	}
	return entries, checkExtensions(rest)
}

// parseRecord reads one entry and returns how many bytes it takes.
func parseRecord(data []byte, rawLen int, version uint32, previous string) (Record, int, error) {
	fixed := 40 + rawLen + 2
	if len(data) < fixed+2 {
		return Record{}, 0, ErrForm
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(data[4*i:]) }
	flags := binary.BigEndian.Uint16(data[40+rawLen:])
	e := Record{
		Entry: object.Entry{Mode: word(6), Size: int64(word(9)), ID: hex.EncodeToString(data[40 : 40+rawLen])},

		Modified: time.Unix(int64(word(2)), int64(word(3))),
		Stage:    int(flags >> 12 & 3),
	}
	if version >= 3 && flags&flagExtended != 0 {
		more := binary.BigEndian.Uint16(data[fixed:])
		e.Skip, e.Intent = more&flagSkip != 0, more&flagIntent != 0
		fixed += 2
	}
	if e.Mode == object.ModeTree {
		return e, 0, fmt.Errorf("%w: it is sparse", ErrForm)
	}
	path, size, err := pathOf(data[fixed:], version, previous)
	e.Path = path
	size += fixed
	if version < 4 {
		size = (size + 7) &^ 7 // entries are padded to multiples of eight
	}
	if err != nil || size > len(data) {
		return e, 0, ErrForm
	}
	return e, size, nil
}

// pathOf reads a path up to its NUL. In version 4 it shares a prefix with
// the path before: a number says how many bytes to drop from that one's end.
func pathOf(data []byte, version uint32, previous string) (string, int, error) {
	prefix, used := "", 0
	if version == 4 {
		drop, n := offset(data)
		if n == 0 || drop > len(previous) {
			return "", 0, ErrForm
		}
		prefix, used = previous[:len(previous)-drop], n
	}
	end := bytes.IndexByte(data[used:], 0)
	if end < 0 {
		return "", 0, ErrForm
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
			return fmt.Errorf("%w: it uses the extension %q", ErrForm, data[:4])
		}
		if size > len(data)-8 {
			return ErrForm
		}
		data = data[8+size:]
	}
	return nil
}
