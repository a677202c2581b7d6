package turn

import "io/fs"

// LeftHome is the homes that a dead run left. They can only be read: the first
// that has a file counts. There is at least one.
type LeftHome []string

// Path is the newest of the homes.
func (h LeftHome) Path() string { return h[0] }

// Write refuses.
func (h LeftHome) Write(string, []byte) error { return fs.ErrPermission }

// Read reads a file of the newest home that has it.
func (h LeftHome) Read(name string) (text []byte, err error) {
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
