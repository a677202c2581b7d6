package object

import (
	"bufio"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/safeopen"
)

// unpackLimit is up to how many objects are written as single files, as git
// does with what it fetches. More stay together in one pack.
const unpackLimit = 100

// pack is a list of objects that git is to write. Their names are worked out
// here, and git works them out again.
type pack struct {
	store Store
	list  []packed
	known map[string]bool
}

// packed is one object: a body, or a file that holds it.
type packed struct {
	kind string
	id   string
	body []byte
	file *FileChange
}

// addObject adds an object and returns its name.
func (p *pack) addObject(kind string, body []byte) string {
	id := p.store.Format.ID(kind, body)
	p.keepObject(packed{kind: kind, id: id, body: body})
	return id
}

func (p *pack) keepObject(o packed) {
	if p.known[o.id] {
		return
	}
	if p.known == nil {
		p.known = map[string]bool{}
	}
	p.known[o.id] = true
	p.list = append(p.list, o)
}

// addContents adds what the changes bring along, and returns them with the names
// of all contents.
func (p *pack) addContents(ctx context.Context, changes []FileChange) ([]FileChange, error) {
	// A large pack that breaks off stays behind as a file until git prunes it,
	// so its contents are looked at before it is begun.
	readTwice := len(changes) > unpackLimit/2
	named := make([]FileChange, len(changes))
	for i, c := range changes {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if c.Content != nil && !c.Delete {
			c.ID = p.addObject("blob", c.Content)
		}
		if c.From != "" && !c.Delete {
			var err error
			if c.ID, err = p.addContent(c, readTwice); err != nil {
				return nil, err
			}
		}
		named[i] = c
	}
	return named, nil
}

// addContent adds one file or link, and returns the name of its content.
func (p *pack) addContent(c FileChange, readTwice bool) (string, error) {
	if c.Mode == ModeSymlink {
		target, err := os.Readlink(c.From)
		if err != nil {
			return "", err
		}
		target = filepath.ToSlash(target)
		if c.ID != "" && c.ID != p.store.Format.HashBytes([]byte(target)) {
			return "", changedFault(c)
		}
		return p.addObject("blob", []byte(target)), nil
	}
	if c.ID == "" || readTwice {
		id, _, err := p.store.Format.HashFile(c.From, c.Mode, math.MaxInt64)
		if err != nil {
			return "", err
		}
		if c.ID != "" && c.ID != id {
			return "", changedFault(c)
		}
		c.ID = id
	}
	p.keepObject(packed{kind: "blob", id: c.ID, file: &c})
	return c.ID, nil
}

func changedFault(c FileChange) error {
	return fmt.Errorf("%q changed while it was captured", c.Path)
}

var errStopped = errors.New("git stopped reading")

// write writes the objects: few small ones as files, others through git. One that does
// not hold what its name says is not written, and none after it.
func (p *pack) write(ctx context.Context, b *Blobs) error {
	if len(p.list) <= unpackLimit {
		b.mu.Lock()
		err := b.files.write(p.list)
		b.mu.Unlock()
		if _, ofFile := errors.AsType[*fs.PathError](err); !ofFile && !errors.Is(err, errForGit) {
			return err
		}
		// Git does it, or says what is in the way.
	}
	return p.writeToGit(ctx)
}

func (p *pack) writeToGit(ctx context.Context) error {
	in, feed := io.Pipe()
	fed := make(chan error, 1)
	go func() {
		err := p.writeAll(feed)
		// A stream without its last word is refused by git.
		feed.Close()
		fed <- err
	}()
	args := []string{"unpack-objects", "-q"}
	if len(p.list) > unpackLimit {
		args = []string{"index-pack", "--stdin"}
	}
	err := p.store.git.Pipe(ctx, in, &program.Bounded{Limit: 1 << 10}, args...)
	in.CloseWithError(errStopped)
	if ferr := <-fed; ferr != nil && !errors.Is(ferr, errStopped) {
		return ferr
	}
	return err
}

// writeAll writes the pack: a head, the objects, and a digest of it all.
func (p *pack) writeAll(to io.Writer) error {
	buffered := bufio.NewWriterSize(to, 64<<10)
	sum := p.store.Format.New()
	w := io.MultiWriter(buffered, sum)
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(p.list)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	deflate := borrowDeflater()
	defer deflaters.Put(deflate)
	for _, o := range p.list {
		if err := p.writeObject(w, deflate, o); err != nil {
			return err
		}
	}
	if _, err := buffered.Write(sum.Sum(nil)); err != nil {
		return err
	}
	return buffered.Flush()
}

func (p *pack) writeObject(w io.Writer, deflate *zlib.Writer, o packed) error {
	deflate.Reset(w)
	if o.file != nil {
		return p.writeFile(w, deflate, *o.file)
	}
	if _, err := w.Write(packHead(o.kind, int64(len(o.body)))); err != nil {
		return err
	}
	if _, err := deflate.Write(o.body); err != nil {
		return err
	}
	return deflate.Close()
}

// writeFile copies one file into the pack, and fails before its end if it is no
// longer the file that was looked at.
func (p *pack) writeFile(w io.Writer, deflate *zlib.Writer, c FileChange) error {
	f, info, err := safeopen.Open(c.From)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := w.Write(packHead("blob", info.Size())); err != nil {
		return err
	}
	h := p.store.Format.blobHash(info.Size())
	n, err := io.Copy(io.MultiWriter(deflate, h), io.LimitReader(f, info.Size()))
	if err != nil {
		return fmt.Errorf("read %s: %w", c.From, err)
	}
	if n != info.Size() || hex.EncodeToString(h.Sum(nil)) != c.ID {
		return changedFault(c)
	}
	return deflate.Close()
}

// packKinds are the numbers of the kinds of objects in packs.
var packKinds = map[string]byte{"commit": 1, "tree": 2, "blob": 3, "tag": 4}

// packHead is the kind and size of an object: four bits of the size beside the
// kind, then seven in each byte, as long as there are more.
func packHead(kind string, size int64) []byte {
	head := []byte{packKinds[kind]<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	return head
}
