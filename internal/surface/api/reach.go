package api

import (
	"fmt"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// checkFolder refuses a request over HTTP that does not say which folder it is about: that in
// which the daemon was started has nothing to do with it.
func checkFolder(dir string) error {
	if filepath.IsAbs(dir) {
		return nil
	}
	f := &loop.Fault{Exit: loop.ExitUsage, What: "which workspace?", Fix: "pass workspace=DIR, the absolute path of a folder in its repository on the host of the daemon"}
	if dir != "" {
		f.Why = fmt.Sprintf("%q is not an absolute path", dir)
	}
	return f
}
