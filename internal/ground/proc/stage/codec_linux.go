package stage

import "golang.org/x/sys/unix"

// Numbers are eight bytes; texts and lists follow their length. The codec is
// written by hand because importing an encoding package would delay the init of
// this one.

// AppendNumber adds a number to what a Reader reads.
func AppendNumber(b []byte, n int) []byte { return appendUint64(b, uint64(n)) }

func appendUint64(b []byte, n uint64) []byte {
	for shift := 0; shift < 64; shift += 8 {
		b = append(b, byte(n>>shift))
	}
	return b
}

// AppendTexts adds texts, for each of which a Reader calls Text.
func AppendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(AppendNumber(b, len(s)), s...)
	}
	return b
}

// AppendList adds a list of texts.
func AppendList(b []byte, list []string) []byte {
	return AppendTexts(AppendNumber(b, len(list)), list...)
}

// Reader decodes values in the order in which they were encoded. If the input ends
// too early, that value and all later ones are zero.
type Reader struct {
	rest  []byte
	short bool
}

// NewReader returns a Reader of b, which it does not change.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// AllRead reports whether the input ended neither too early nor too late.
func (r *Reader) AllRead() bool { return !r.short && len(r.rest) == 0 }

// Bytes returns the next n bytes, which share memory with the input, or nil if there
// are fewer.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.short, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	b := r.Bytes(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Number reads what AppendNumber wrote.
func (r *Reader) Number() int { return int(r.readUint64()) }

func (r *Reader) readUint64() (n uint64) {
	for i, c := range r.Bytes(8) {
		n |= uint64(c) << (8 * i)
	}
	return n
}

// Text reads one text.
func (r *Reader) Text() string { return string(r.Bytes(r.Number())) }

// Count reads the length of a list. A length beyond the rest of the input counts as
// an early end.
func (r *Reader) Count() int {
	n := r.Number()
	if n < 0 || n > len(r.rest) {
		r.short, n = true, 0
	}
	return n
}

// List reads what AppendList wrote.
func (r *Reader) List() []string {
	var list []string
	for range r.Count() {
		list = append(list, r.Text())
	}
	return list
}

// ReadAll reads a file from its start to its end and closes it. It reports false if
// that fails or if it is not a regular file.
func ReadAll(fd int) ([]byte, bool) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, false
	}
	b := make([]byte, st.Size)
	for read := 0; read < len(b); {
		n, err := unix.Pread(fd, b[read:], int64(read))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil, false
		}
		read += n
	}
	return b, true
}
