package turn

import "io/fs"

// PastHomes are the homes that a run left when its process died, the newest
// first. They can only be read. There is at least one.
type PastHomes []string

// Path returns the newest home.
func (h PastHomes) Path() string { return h[0] }

// Write always fails.
func (h PastHomes) Write(string, []byte) error { return fs.ErrPermission }

// Read reads a file from the newest home that has it.
func (h PastHomes) Read(name string) (text []byte, err error) {
	for _, dir := range h {
		home, openErr := OpenHome(dir, dir, -1, -1)
		if openErr != nil {
			err = openErr
			continue
		}
		text, err = home.Read(name)
		if closeErr := home.Close(); err == nil {
			return text, closeErr
		}
	}
	return nil, err
}
