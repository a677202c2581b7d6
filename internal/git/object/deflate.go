package object

import (
	"compress/zlib"
	"io"
	"sync"
)

// deflaters and inflaters are used again: a new deflater is more than a megabyte, which a
// process that writes a handful of objects would spend its time to clear and to collect.
var (
	deflaters sync.Pool // of *zlib.Writer
	inflaters sync.Pool // of io.ReadCloser, which are zlib.Resetter
)

// borrowDeflater returns a deflater that is reset before its first use, and is put back into
// deflaters.
func borrowDeflater() *zlib.Writer {
	if w, ok := deflaters.Get().(*zlib.Writer); ok {
		return w
	}
	w, _ := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed) // The level is valid.
	return w
}
