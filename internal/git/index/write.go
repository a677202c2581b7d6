package index

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/object"
)

// Entry is one file as an index knows it. Times and numbers of the file
// are what git compares before it reads a file again.
type Entry struct {
	object.Entry // Size is that of the file on disk; only its low 32 bits count
	Modified     time.Time
	Changed      time.Time // of the inode
	Inode        uint64    // only its low 32 bits count
}

const versionWritten = 2

// Write writes an index file that holds entries, which are sorted by path
// and hold each path once.
func Write(w io.Writer, f object.Format, entries []Entry) error {
	if err := write(w, f, header(len(entries)), nil, entries); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

// Patch writes the index that Write wrote as base without the paths
// in gone, and with entries. Both are sorted, and what is replaced is in both.
func Patch(w io.Writer, f object.Format, base []byte, gone []string, entries []Entry) error {
	parts, n, err := remains(f, base, gone)
	if err == nil {
		err = write(w, f, header(n+len(entries)), parts, entries)
	}
	if err != nil {
		return fmt.Errorf("patch index: %w", err)
	}
	return nil
}

func header(n int) []byte {
	head := binary.BigEndian.AppendUint32([]byte("DIRC"), versionWritten)
	return binary.BigEndian.AppendUint32(head, uint32(n))
}

// write merges entries into records that are there already, both sorted.
func write(w io.Writer, f object.Format, head []byte, parts [][]byte, entries []Entry) error {
	h := f.New()
	out := bufio.NewWriterSize(io.MultiWriter(w, h), 256<<10)
	if _, err := out.Write(head); err != nil {
		return err
	}
	var record []byte
	for i := range entries {
		if i > 0 && entries[i-1].Path >= entries[i].Path {
			return fmt.Errorf("%q does not follow %q", entries[i].Path, entries[i-1].Path)
		}
		var err error
		if parts, err = copyBefore(f, out, parts, entries[i].Path); err != nil {
			return err
		}
		if record, err = appendEntry(record[:0], &entries[i], f.NameLen()); err != nil {
			return err
		}
		if _, err := out.Write(record); err != nil {
			return err
		}
	}
	for _, p := range parts {
		if _, err := out.Write(p); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := w.Write(h.Sum(nil))
	return err
}

// copyBefore writes the records whose paths are before path and returns the
// rest.
func copyBefore(f object.Format, out io.Writer, parts [][]byte, path string) ([][]byte, error) {
	for len(parts) > 0 {
		part, at := parts[0], 0
		for at < len(part) {
			name, size, err := recordAt(f, part[at:])
			if err != nil {
				return nil, err
			}
			if string(name) >= path {
				break
			}
			at += size
		}
		if _, err := out.Write(part[:at]); err != nil {
			return nil, err
		}
		if at < len(part) {
			parts[0] = part[at:]
			return parts, nil
		}
		parts = parts[1:]
	}
	return nil, nil
}

// remains cuts an index into runs of records, without those of the paths in
// gone, and counts what is left.
func remains(f object.Format, base []byte, gone []string) (parts [][]byte, n int, err error) {
	end := len(base) - f.NameLen()
	if end < 12 || string(base[:8]) != string(header(0)[:8]) {
		return nil, 0, ErrForm
	}
	n = int(binary.BigEndian.Uint32(base[8:]))
	from, at := 12, 12
	for range n {
		name, size, err := recordAt(f, base[at:end])
		if err != nil {
			return nil, 0, err
		}
		for len(gone) > 0 && gone[0] < string(name) {
			gone = gone[1:]
		}
		if len(gone) > 0 && gone[0] == string(name) {
			parts, from, n = append(parts, base[from:at]), at+size, n-1
		}
		at += size
	}
	return append(parts, base[from:at]), n, nil
}

// recordAt returns the path of the record at the start of data, and its size.
func recordAt(f object.Format, data []byte) (path []byte, size int, err error) {
	fixed := 40 + f.NameLen() + 2
	if len(data) < fixed {
		return nil, 0, ErrForm
	}
	n := bytes.IndexByte(data[fixed:], 0)
	size = (fixed+n)/8*8 + 8
	if n <= 0 || size > len(data) {
		return nil, 0, ErrForm
	}
	return data[fixed : fixed+n], size, nil
}

// appendEntry writes one entry: ten numbers, the object name, flags, the
// path, and one to eight NULs up to a multiple of eight.
func appendEntry(b []byte, e *Entry, rawLen int) ([]byte, error) {
	if e.Path == "" || strings.IndexByte(e.Path, 0) >= 0 || len(e.ID) != 2*rawLen {
		return nil, fmt.Errorf("entry %q of object %q cannot be in it", e.Path, e.ID)
	}
	for _, v := range []int64{
		e.Changed.Unix(), int64(e.Changed.Nanosecond()), e.Modified.Unix(), int64(e.Modified.Nanosecond()),
		0, int64(e.Inode), int64(e.Mode), 0, 0, e.Size,
	} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	b, err := hex.AppendDecode(b, []byte(e.ID))
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", e.Path, err)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(min(len(e.Path), 0xfff)))
	b = append(b, e.Path...)
	return append(b, make([]byte, 8-len(b)%8)...), nil
}

// Read reads what Write wrote, or any index of versions 2 to 4
// without conflicts. It believes the file; its checksum is not compared.
func Read(f object.Format, data []byte) ([]Entry, error) {
	parsed, err := Parse(data, f.NameLen())
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	entries := make([]Entry, len(parsed))
	at := 12
	for i, p := range parsed {
		if p.Stage != 0 || p.Intent || p.Skip {
			return nil, fmt.Errorf("read index: %q: %w", p.Path, ErrForm)
		}
		entries[i] = Entry{Entry: p.Entry, Modified: p.Modified}
		if binary.BigEndian.Uint32(data[4:]) == versionWritten {
			word := func(i int) uint32 { return binary.BigEndian.Uint32(data[at+4*i:]) }
			entries[i].Changed, entries[i].Inode = time.Unix(int64(word(0)), int64(word(1))), uint64(word(5))
			at += (40+f.NameLen()+2+len(p.Path))/8*8 + 8
		}
	}
	return entries, nil
}
