package definition

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Where the files of loops lie in a workspace.
const (
	LoopsDir   = ".loops"           // has a folder for each loop
	ConfigFile = "loop.config.yaml" // in the folder of a loop: its definition
)

// Dir is the folder of a loop's files, relative to the workspace, with slashes.
func Dir(name string) string { return path.Join(LoopsDir, name) }

// Path is that of a loop's definition, relative to the workspace.
func Path(name string) string { return filepath.Join(LoopsDir, name, ConfigFile) }

// MissingFault is the error for a loop whose definition was removed.
func MissingFault(name string) *loop.Fault {
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("loop %s has no definition any more", name), Err: loop.ErrNotFound,
		Why: Path(name) + " is missing; the store still has its runs",
		Fix: "put the file back, or forget the loop: {1}", Actions: []loop.Command{loop.PawlCommand("rm", name)},
	}
}

// OtherFolder is the one folder of .loops that may belong to a loop of another protocol than
// spine: it has the keys of the loop that an AGENT_LINK.md makes.
const OtherFolder = loop.ProtocolBoot

// IsOther reports whether the folder OtherFolder is not that of a spine loop. Its definition is
// opened only where no STATE.md tells.
func IsOther(root string) bool {
	dir := filepath.Join(root, filepath.FromSlash(Dir(OtherFolder)))
	if _, err := os.Lstat(filepath.Join(dir, loop.StateFile)); err == nil {
		return false
	}
	doc, _, err := Load(filepath.Join(dir, ConfigFile))
	if err != nil {
		return true
	}
	protocol, _ := doc.Scalar("protocol")
	return protocol.Text != loop.ProtocolSpine
}
