package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

// MaxBlob is the largest object in bytes that Read holds in memory. Each
// streams and has no limit.
const MaxBlob = 64 << 20

// Blobs reads objects through one long-lived git process. It is safe for
// concurrent use; requests are served one after another. After an error that
// is not loop.ErrNotFound it is broken and every call fails: open a new one.
type Blobs struct {
	hexLen int
	check  func(id string) error

	mu     sync.Mutex
	in     *os.File
	out    *bufio.Reader
	outEnd *os.File
	broken error
	ended  chan error // carries the end of the process, once
}

// Blobs starts the process. It ends with Close, or when ctx does.
func (r *Repo) Blobs(ctx context.Context) (*Blobs, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start git cat-file: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start git cat-file: %w", err), childIn.Close(), in.Close())
	}
	b := &Blobs{
		hexLen: r.hexLen(), check: r.checkID,
		in: in, out: bufio.NewReaderSize(out, 64<<10), outEnd: out, ended: make(chan error, 1),
	}
	go func() {
		stderr := &bounded{limit: maxStderr}
		res, err := r.run.Run(ctx, proc.Spec{
			Argv: append(append([]string{"git"}, overrides...), "cat-file", "--batch-command", "--buffer"),
			Dir:  r.GitDir, Env: r.once,
			Stdin: childIn, Stdout: childOut, Stderr: stderr,
			Grace: time.Second,
		})
		err = ending(ctx, "cat-file", res, err, stderr.String())
		// These ends were the child's. Closing them tells the other side.
		b.ended <- errors.Join(err, childIn.Close(), childOut.Close())
	}()
	return b, nil
}

// Close ends the process and waits for it.
func (b *Blobs) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil
	}
	return b.end(errClosed)
}

var errClosed = errors.New("closed")

// fail breaks b for err, and adds what the process said at its end.
func (b *Blobs) fail(err error) error {
	b.broken = errors.Join(err, b.end(err))
	return b.broken
}

// end closes both pipes and waits for the process.
func (b *Blobs) end(why error) error {
	b.broken = why
	return errors.Join(b.in.Close(), b.outEnd.Close(), <-b.ended)
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
	return b.objects(ids, func(i int, kind string, size int64, r io.Reader) error {
		if kind != "blob" {
			return fmt.Errorf("it is a %s, not a blob", kind)
		}
		return fn(i, size, r)
	})
}

func (b *Blobs) objects(ids []string, fn func(i int, kind string, size int64, r io.Reader) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return fmt.Errorf("read objects: %w", b.broken)
	}
	if err := b.request(ids); err != nil {
		return err
	}
	var missing error
	for i, id := range ids {
		kind, size, err := b.header(id)
		if errors.Is(err, loop.ErrNotFound) {
			missing = cmp.Or(missing, err)
			continue
		}
		if err == nil {
			err = b.body(i, kind, size, fn)
		}
		if err != nil {
			return b.fail(fmt.Errorf("read object %s: %w", id, err))
		}
	}
	return missing
}

// request writes all questions and then one flush. Git answers nothing before
// the flush, so neither side can block on a full pipe.
func (b *Blobs) request(ids []string) error {
	var ask strings.Builder
	ask.Grow(len(ids) * (b.hexLen + 10))
	for _, id := range ids {
		if err := b.check(id); err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		ask.WriteString("contents ")
		ask.WriteString(id)
		ask.WriteByte('\n')
	}
	ask.WriteString("flush\n")
	if _, err := io.WriteString(b.in, ask.String()); err != nil {
		return b.fail(fmt.Errorf("ask git for %d objects: %w", len(ids), err))
	}
	return nil
}

// header reads "id kind size" or "id missing".
func (b *Blobs) header(id string) (kind string, size int64, err error) {
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

func (b *Blobs) body(i int, kind string, size int64, fn func(int, string, int64, io.Reader) error) error {
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
