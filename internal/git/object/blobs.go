package object

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// MaxBlob is the largest object in bytes that Read holds in memory. Each
// streams and has no limit.
const MaxBlob = 64 << 20

// maxFromFiles is how many objects of one question are read without git. More are read
// faster while another process inflates them.
const maxFromFiles = 256

// Blobs reads objects: small ones from the files of the repository, all others through
// one long-lived git process. It is safe for concurrent use; requests are served one
// after another. After an error that is not loop.ErrNotFound it is broken and every
// call fails: open a new one.
type Blobs struct {
	format   Format
	sessions *sessionCache
	files    *files
	over     func() error // why no more is to be read, if that is so
	start    func() error // starts the process, or takes the one that a held Store has at hand

	mu       sync.Mutex
	broken   error
	*session             // nil before the first question to git
	loose    func() bool // lets go of the context; false: it has ended the process
}

// Blobs prepares reading. It ends with Close, or when ctx does.
func (s Store) Blobs(ctx context.Context) (*Blobs, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	dirs, err := s.dirs()
	if err != nil {
		return nil, err
	}
	b := &Blobs{
		format: s.Format, sessions: s.sessions, files: &files{format: s.Format, dirs: dirs},
		over: func() error { return context.Cause(ctx) },
	}
	b.start = func() (err error) {
		if err = b.over(); err != nil { // The process, which has a context of its own, might answer before it is ended.
			return err
		}
		p := s.sessions.take()
		if p == nil {
			if p, err = s.startSession(ctx); err != nil {
				return err
			}
		}
		b.session, b.loose = p, context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
		return nil
	}
	return b, nil
}

// Close ends the process and waits for it. That of a held Store goes back to it.
func (b *Blobs) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil
	}
	b.broken = errClosed
	b.files.close()
	if b.session == nil || b.loose() && b.sessions.put(b.session) {
		return nil
	}
	return b.endSession()
}

var errClosed = errors.New("closed")

// setError breaks b for err, and adds what the process said at its end.
func (b *Blobs) setError(err error) error {
	b.broken = err
	b.files.close()
	if b.session != nil {
		b.loose()
		b.broken = errors.Join(err, b.endSession())
	}
	return b.broken
}

// Read returns the content of one blob of at most MaxBlob bytes.
func (b *Blobs) Read(id string) ([]byte, error) {
	var data []byte
	err := b.Each([]string{id}, func(_ int, size int64, r io.Reader) error {
		if size > MaxBlob {
			return fmt.Errorf("%d bytes are more than the %d that are read into memory", size, MaxBlob)
		}
		data = make([]byte, size)
		_, err := io.ReadFull(r, data)
		return err
	})
	return data, err
}

// Each asks for all blobs at once and calls fn for each in the given order. r
// holds exactly size bytes; what fn leaves is skipped. An error of fn ends Each
// and the process. The ids are checked before anything is asked.
func (b *Blobs) Each(ids []string, fn func(i int, size int64, r io.Reader) error) error {
	return b.eachObject(ids, func(i int, kind string, size int64, r io.Reader) error {
		if kind != "blob" {
			return fmt.Errorf("it is a %s, not a blob", kind)
		}
		return fn(i, size, r)
	})
}

func (b *Blobs) eachObject(ids []string, fn func(i int, kind string, size int64, r io.Reader) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return fmt.Errorf("read objects: %w", b.broken)
	}
	for _, id := range ids {
		if err := b.format.Check(id); err != nil {
			return fmt.Errorf("read object: %w", err)
		}
	}
	read, err := b.eachInFiles(ids, fn)
	if err != nil || read == len(ids) {
		return err
	}
	if err := b.writeRequest("contents", ids[read:]); err != nil {
		return err
	}
	var missing error
	for i, id := range ids {
		if i < read {
			continue
		}
		kind, size, err := b.readHeader(id)
		if errors.Is(err, loop.ErrNotFound) {
			missing = cmp.Or(missing, err)
			continue
		}
		if err == nil {
			err = b.readBody(i, kind, size, fn)
		}
		if err != nil {
			return b.setError(fmt.Errorf("read object %s: %w", id, err))
		}
	}
	return missing
}

// eachInFiles calls fn for the first objects, as long as no process is needed, and returns
// how many these were.
func (b *Blobs) eachInFiles(ids []string, fn func(i int, kind string, size int64, r io.Reader) error) (int, error) {
	if len(ids) > maxFromFiles {
		return 0, nil
	}
	for i, id := range ids {
		err := b.over()
		var kind string
		var body []byte
		if err == nil {
			if kind, body, err = b.files.read(id); err != nil {
				return i, nil //nolint:nilerr // Git says what is in the way.
			}
			err = fn(i, kind, int64(len(body)), bytes.NewReader(body))
		}
		if err != nil {
			return i, b.setError(fmt.Errorf("read object %s: %w", id, err))
		}
	}
	return len(ids), nil
}

// writeRequest writes all questions and then one flush. Git answers nothing before
// the flush, so neither side can block on a full pipe.
func (b *Blobs) writeRequest(verb string, names []string) error {
	if b.session == nil {
		if err := b.start(); err != nil {
			return b.setError(fmt.Errorf("ask git for %d objects: %w", len(names), err))
		}
	}
	var ask strings.Builder
	ask.Grow(len(names) * (b.format.HexLen() + 10))
	for _, name := range names {
		ask.WriteString(verb)
		ask.WriteByte(' ')
		ask.WriteString(name)
		ask.WriteByte('\n')
	}
	ask.WriteString("flush\n")
	if _, err := io.WriteString(b.In, ask.String()); err != nil {
		return b.setError(fmt.Errorf("ask git for %d objects: %w", len(names), err))
	}
	return nil
}

// Object is what a name means. The zero Object does not exist.
type Object struct{ ID, Kind string }

// Resolve asks what each name means, by one question. A name is a full object
// name or a checked ref, with or without a suffix like ^{tree}.
func (b *Blobs) Resolve(names ...string) ([]Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil, fmt.Errorf("resolve objects: %w", b.broken)
	}
	found := make([]Object, len(names))
	if b.resolveInFiles(names, found) {
		return found, nil
	}
	clear(found)
	if err := b.writeRequest("info", names); err != nil {
		return nil, err
	}
	for i, name := range names {
		line, err := b.out.ReadString('\n')
		if err != nil {
			return nil, b.setError(fmt.Errorf("resolve %s: the git process ended: %w", name, err))
		}
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == name && f[1] == "missing" {
			continue
		}
		if len(f) != 3 || b.format.Check(f[0]) != nil {
			return nil, b.setError(fmt.Errorf("resolve %s: git answered %q", name, line))
		}
		found[i] = Object{f[0], f[1]}
	}
	return found, nil
}

// resolveInFiles fills in what each name means, and reports whether it could without git.
func (b *Blobs) resolveInFiles(names []string, found []Object) bool {
	if len(names) > maxFromFiles || b.over() != nil {
		return false
	}
	b.files.close() // What is in a pack that was removed is no longer there.
	for i, name := range names {
		var err error
		if found[i], err = b.files.resolve(name); err != nil {
			return false
		}
	}
	return true
}

// readHeader reads "id kind size" or "id missing".
func (b *Blobs) readHeader(id string) (kind string, size int64, err error) {
	line, err := b.out.ReadString('\n')
	if err != nil {
		return "", 0, fmt.Errorf("the git process ended: %w", err)
	}
	f := strings.Fields(line)
	if len(f) == 2 && f[0] == id && f[1] == "missing" {
		return "", 0, fmt.Errorf("object %s: %w", id, loop.ErrNotFound)
	}
	if len(f) != 3 || f[0] != id {
		return "", 0, fmt.Errorf("git answered %q", line)
	}
	size, err = strconv.ParseInt(f[2], 10, 64)
	return f[1], size, err
}

func (b *Blobs) readBody(i int, kind string, size int64, fn func(int, string, int64, io.Reader) error) error {
	limited := &io.LimitedReader{R: b.out, N: size}
	if err := fn(i, kind, size, limited); err != nil {
		return err
	}
	if _, err := b.out.Discard(int(limited.N)); err != nil {
		return err
	}
	end, err := b.out.ReadByte()
	if err == nil && end != '\n' {
		err = fmt.Errorf("byte %q follows the content", end)
	}
	return err
}
