package definition

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Load is Read and Parse. The bytes are for readiness.Finding.Render.
func Load(path string) (*Document, []byte, error) {
	data, err := Read(path)
	if err != nil {
		return nil, nil, err
	}
	doc, err := Parse(path, data)
	return doc, data, err
}

// Read reads the definition at path. It refuses symbolic links, anything else that is not a
// regular file, and files with a second name, through which something else could change
// them. Of a file that is larger than MaxBytes it reads one byte more than that, and it
// never waits for a writer. The error is a *loop.Fault with exit status 3 (and wraps
// loop.ErrNotFound) or 4.
func Read(path string) ([]byte, error) {
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &loop.Fault{
			Exit: 3, What: "the definition " + path + " cannot be read", Why: "there is no such file",
			Fix: "make one: {1}", Actions: []loop.Command{loop.PawlCommand("new", "NAME").WithBlanks("NAME")}, Err: errors.Join(loop.ErrNotFound, err),
		}
	}
	if err != nil {
		return nil, &loop.Fault{
			Exit: 4, What: "the definition " + path + " cannot be read", Why: err.Error(),
			Fix: "put a regular, readable file there", Err: err,
		}
	}
	return data, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("not a regular file (%s)", info.Mode().Type())
	case manyNames(info):
		return nil, errors.New("the file has a second name (hard link)")
	}
	// One byte more than allowed tells Parse that the file is too large.
	return io.ReadAll(io.LimitReader(file, MaxBytes+1))
}
