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

// BootFolder is the folder in .loops with the keys of the loop that an AGENT_LINK.md makes. A
// person may have called a spine loop so, too.
const BootFolder = loop.ProtocolBoot

// BootOwnsFolder reports whether BootFolder belongs to the boot loop. Its definition is opened
// only if it has no STATE.md, which shows that it is a spine loop's.
func BootOwnsFolder(root string) bool {
	dir := filepath.Join(root, filepath.FromSlash(Dir(BootFolder)))
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
