package object

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/safeopen"
)

// maxSmall is the largest object in bytes that is read or written without git.
const maxSmall = 1 << 20

// maxChainOfDeltas bounds how many deltas lead to an object. Git makes 50 by default.
const maxChainOfDeltas = 64

// errForGit means that git has to be asked.
var errForGit = errors.New("not a small object in a usual file")

// files reads small objects from the files of a repository without a process. It checks
// each against its name. What it does not find, or not as it is usual, says nothing:
// then git is asked. It is for one goroutine.
type files struct {
	format  Format
	dirs    []string // object directories, the repository's own first
	packs   []*packFile
	listed  bool          // packs has all that were there
	inflate io.ReadCloser // borrowed; nil before the first use
}

// packFile is a pack with its index, version 2.
type packFile struct {
	index, data *os.File
	fanout      [256]uint32 // how many names begin with a byte up to this one
	size        int64       // of data
}

// read returns a small object, or errForGit.
func (f *files) read(id string) (kind string, body []byte, err error) {
	if kind, body, err = f.readLoose(id); err != nil {
		kind, body, err = f.readPacked(id, 0)
	}
	if err == nil && f.format.ID(kind, body) != id {
		err = errForGit
	}
	return kind, body, err
}

// close closes the packs that were opened, and gives back what was borrowed.
func (f *files) close() {
	if f.inflate != nil {
		inflaters.Put(f.inflate)
		f.inflate = nil
	}
	for _, p := range f.packs {
		p.index.Close()
		p.data.Close()
	}
	f.packs, f.listed = nil, false
}

// loosePath is where an object is a file of its own.
func loosePath(dir, id string) string { return filepath.Join(dir, id[:2], id[2:]) }

func (f *files) readLoose(id string) (kind string, body []byte, err error) {
	for _, dir := range f.dirs {
		file, info, err := safeopen.Open(loosePath(dir, id))
		if err != nil {
			continue
		}
		var text []byte
		if info.Size() <= maxSmall {
			text, err = io.ReadAll(io.LimitReader(file, maxSmall))
		} else {
			err = errForGit
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return "", nil, err
		}
		return f.parseLoose(text)
	}
	return "", nil, errForGit
}

// parseLoose reads "kind size\0" and the content.
func (f *files) parseLoose(text []byte) (kind string, body []byte, err error) {
	if err := f.startInflating(bytes.NewReader(text)); err != nil {
		return "", nil, err
	}
	r := bufio.NewReaderSize(f.inflate, 512)
	head, err := r.Peek(32)
	end := bytes.IndexByte(head, 0)
	if end < 0 {
		return "", nil, errors.Join(errForGit, err)
	}
	kind, number, _ := strings.Cut(string(head[:end]), " ")
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || size < 0 || size > maxSmall {
		return "", nil, errForGit
	}
	_, _ = r.Discard(end + 1)
	body, err = readWhole(r, size)
	return kind, body, err
}

// startInflating makes f.inflate read what r has.
func (f *files) startInflating(r io.Reader) (err error) {
	if f.inflate == nil {
		borrowed, ok := inflaters.Get().(io.ReadCloser)
		if !ok {
			f.inflate, err = zlib.NewReader(r)
			return err
		}
		f.inflate = borrowed
	}
	return f.inflate.(zlib.Resetter).Reset(r, nil)
}

// readWhole reads size bytes, after which there must be no more.
func readWhole(r io.Reader, size int64) ([]byte, error) {
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, errForGit
	}
	return body, nil
}

// readPacked reads an object to which that many deltas have led so far.
func (f *files) readPacked(id string, deltas int) (kind string, body []byte, err error) {
	if !f.listed {
		f.openPacks()
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return "", nil, err
	}
	for _, p := range f.packs {
		if at, ok := p.find(raw); ok {
			return f.readAt(p, at, deltas)
		}
	}
	return "", nil, errForGit
}

// openPacks opens all packs whose index is as usual.
func (f *files) openPacks() {
	f.listed = true
	for _, dir := range f.dirs {
		dir = filepath.Join(dir, "pack")
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			name, isIndex := strings.CutSuffix(e.Name(), ".idx")
			if !isIndex {
				continue
			}
			if p, err := openPack(filepath.Join(dir, name), f.format.NameLen()); err == nil {
				f.packs = append(f.packs, p)
			}
		}
	}
}

// The parts of an index before its list of names.
const (
	indexMagic = "\xfftOc\x00\x00\x00\x02"
	namesAt    = int64(len(indexMagic) + 256*4)
)

// openPack opens a pack by its path without the ending.
func openPack(path string, nameLen int) (_ *packFile, err error) {
	p := &packFile{}
	var info os.FileInfo
	if p.index, info, err = safeopen.Open(path + ".idx"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.index.Close()
		}
	}()
	head := make([]byte, namesAt)
	if _, err := p.index.ReadAt(head, 0); err != nil {
		return nil, err
	}
	for i := range p.fanout {
		p.fanout[i] = binary.BigEndian.Uint32(head[len(indexMagic)+4*i:])
	}
	// Names, checksums and offsets, and two digests at the end.
	least := namesAt + int64(p.fanout[255])*int64(nameLen+8) + 2*int64(nameLen)
	if string(head[:len(indexMagic)]) != indexMagic || !slices.IsSorted(p.fanout[:]) || info.Size() < least {
		return nil, errForGit
	}
	if p.data, info, err = safeopen.Open(path + ".pack"); err != nil {
		return nil, err
	}
	p.size = info.Size()
	return p, nil
}

// find returns where in the pack an object begins.
func (p *packFile) find(raw []byte) (at int64, ok bool) {
	first, end := uint32(0), p.fanout[raw[0]]
	if raw[0] > 0 {
		first = p.fanout[raw[0]-1]
	}
	width := len(raw)
	names := make([]byte, int64(end-first)*int64(width))
	if _, err := p.index.ReadAt(names, namesAt+int64(first)*int64(width)); err != nil {
		return 0, false
	}
	name := func(i int) []byte { return names[i*width : (i+1)*width] }
	count := int(end - first)
	i := sort.Search(count, func(i int) bool { return bytes.Compare(name(i), raw) >= 0 })
	if i == count || !bytes.Equal(name(i), raw) {
		return 0, false
	}
	all := int64(p.fanout[255])
	number := make([]byte, 8)
	if _, err := p.index.ReadAt(number[:4], namesAt+all*int64(width+4)+4*(int64(first)+int64(i))); err != nil {
		return 0, false
	}
	offset := binary.BigEndian.Uint32(number)
	if offset&(1<<31) == 0 {
		return int64(offset), true
	}
	// It is the number of an entry in a list of long offsets.
	if _, err := p.index.ReadAt(number, namesAt+all*int64(width+8)+8*int64(offset&(1<<31-1))); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(number)), true
}

// readAt reads the object that begins at a place of a pack.
func (f *files) readAt(p *packFile, at int64, deltas int) (kind string, body []byte, err error) {
	if at < 0 || at >= p.size || deltas > maxChainOfDeltas {
		return "", nil, errForGit
	}
	r := bufio.NewReaderSize(io.NewSectionReader(p.data, at, p.size-at), 4<<10)
	first, err := r.ReadByte()
	if err != nil {
		return "", nil, err
	}
	size := uint64(first & 15)
	if first&0x80 != 0 {
		more, err := binary.ReadUvarint(r)
		if err != nil || more > maxSmall {
			return "", nil, errors.Join(errForGit, err)
		}
		size |= more << 4
	}
	if size > maxSmall {
		return "", nil, errForGit
	}
	const offsetDelta, nameDelta = 6, 7
	number := first >> 4 & 7
	base := at
	var baseID string
	switch number {
	case offsetDelta:
		back, err := readOffset(r)
		if err != nil {
			return "", nil, err
		}
		base -= back
	case nameDelta:
		raw := make([]byte, f.format.NameLen())
		if _, err := io.ReadFull(r, raw); err != nil {
			return "", nil, err
		}
		baseID = hex.EncodeToString(raw)
	default:
		for name, n := range packKinds {
			if n == number {
				kind = name
			}
		}
		if kind == "" {
			return "", nil, errForGit
		}
	}
	if err := f.startInflating(r); err != nil {
		return "", nil, err
	}
	if body, err = readWhole(f.inflate, int64(size)); err != nil || kind != "" {
		return kind, body, err
	}
	var from []byte
	if number == nameDelta {
		kind, from, err = f.readPacked(baseID, deltas+1)
	} else {
		kind, from, err = f.readAt(p, base, deltas+1)
	}
	if err != nil {
		return "", nil, err
	}
	body, err = applyDelta(from, body)
	return kind, body, err
}

// readOffset reads how far before a delta its base is.
func readOffset(r io.ByteReader) (back int64, err error) {
	for i := range 8 {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if i > 0 {
			back++
		}
		back = back<<7 | int64(c&0x7f)
		if c&0x80 == 0 {
			return back, nil
		}
	}
	return 0, errForGit
}

// applyDelta makes an object of another one: the sizes of both, and then parts that are
// copied from the other one or are new.
func applyDelta(from, delta []byte) ([]byte, error) {
	r := bytes.NewReader(delta)
	was, err := binary.ReadUvarint(r)
	size, sizeErr := binary.ReadUvarint(r)
	if err != nil || sizeErr != nil || was != uint64(len(from)) || size > maxSmall {
		return nil, errForGit
	}
	body := make([]byte, 0, size)
	for r.Len() > 0 {
		op, _ := r.ReadByte()
		var part []byte
		if op&0x80 != 0 {
			var numbers [7]byte // four bytes of the place and three of the length, lowest first
			for i := range numbers {
				if op>>i&1 != 0 {
					if numbers[i], err = r.ReadByte(); err != nil {
						return nil, errForGit
					}
				}
			}
			at := uint64(binary.LittleEndian.Uint32(numbers[:4]))
			length := uint64(numbers[4]) | uint64(numbers[5])<<8 | uint64(numbers[6])<<16
			if length == 0 {
				length = 1 << 16
			}
			if at+length > uint64(len(from)) {
				return nil, errForGit
			}
			part = from[at : at+length]
		} else {
			part = make([]byte, op)
			if n, _ := r.Read(part); op == 0 || n != int(op) {
				return nil, errForGit
			}
		}
		if len(body)+len(part) > int(size) {
			return nil, errForGit
		}
		body = append(body, part...)
	}
	if len(body) != int(size) {
		return nil, errForGit
	}
	return body, nil
}

// resolve answers what Blobs.Resolve does, for full object names.
func (f *files) resolve(name string) (Object, error) {
	id, peel, _ := strings.Cut(name, "^")
	if f.format.Check(id) != nil {
		return Object{}, errForGit
	}
	kind, body, err := f.read(id)
	if err != nil {
		return Object{}, err
	}
	if kind == "commit" && peel == "{tree}" {
		line, _, _ := bytes.Cut(body, []byte{'\n'})
		tree, _ := bytes.CutPrefix(line, []byte("tree "))
		id = string(tree)
		if f.format.Check(id) != nil {
			return Object{}, errForGit
		}
		if kind, _, err = f.read(id); err != nil {
			return Object{}, err
		}
	}
	if peel != "" && peel != "{"+kind+"}" {
		return Object{}, errForGit
	}
	return Object{id, kind}, nil
}

// write writes small objects as files of their own, as git does with few new ones: the
// files are not synced, and git removes them if no ref leads to them. An object that is
// there must be the same, and is as new. errForGit means that git has to write them.
func (f *files) write(list []packed) error {
	if len(f.dirs) == 0 {
		return errForGit
	}
	dir := f.dirs[0]
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&os.ModeSetgid != 0 { // A group shares it, by rules of git's.
		return errForGit
	}
	for _, o := range list {
		body, err := o.read(f.format)
		if err != nil {
			return err
		}
		if err := f.writeLoose(dir, o, body); err != nil {
			return err
		}
	}
	return nil
}

// read returns the content of an object that is to be written.
func (o packed) read(format Format) ([]byte, error) {
	if o.file == nil {
		return o.body, nil
	}
	f, info, err := safeopen.Open(o.file.From)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxSmall {
		return nil, errForGit
	}
	body, err := io.ReadAll(io.LimitReader(f, info.Size()+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.file.From, err)
	}
	if int64(len(body)) != info.Size() || format.ID(o.kind, body) != o.id {
		return nil, changedFault(*o.file)
	}
	return body, nil
}

// writeLoose writes one object, also over one that is there: git keeps what is new.
func (f *files) writeLoose(dir string, o packed, body []byte) (err error) {
	if kind, is, err := f.read(o.id); err == nil && (kind != o.kind || !bytes.Equal(is, body)) {
		return fmt.Errorf("object %s is there with another content", o.id)
	}
	path := loosePath(dir, o.id)
	if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Git removes old files of this name.
	file, err := os.CreateTemp(filepath.Dir(path), "tmp_obj_")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	deflate := borrowDeflater()
	defer deflaters.Put(deflate)
	deflate.Reset(file)
	_, err = fmt.Fprintf(deflate, "%s %d\x00", o.kind, len(body))
	if err == nil {
		_, err = deflate.Write(body)
	}
	err = errors.Join(err, deflate.Close())
	if err == nil {
		err = file.Chmod(0o444)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
