package definition

import (
	"path"
	"path/filepath"
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
