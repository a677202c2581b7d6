package loop

import (
	"path"
	"strings"
)

// PauseLabel is the label on an issue or pull request, or the topic of a
// repository, that pauses all loops of that repository.
const PauseLabel = "loop-pause"

// SwitchPaths returns the paths in the text of the definition's kill switch, whose
// existence stops the loop: each word with a slash before its end that is not a URL.
// Relative paths are relative to the workspace.
func (d Definition) SwitchPaths() []string {
	var paths []string
	for word := range strings.FieldsSeq(d.KillSwitch) {
		word = strings.Trim(word, "\"'`()[]{},;:!?")
		word = strings.TrimRight(strings.TrimSuffix(word, "."), "/")
		if strings.Contains(word, "/") && !strings.Contains(word, "://") {
			paths = append(paths, path.Clean(word))
		}
	}
	return paths
}

// NamesLabel reports whether the definition's kill switch names PauseLabel.
func (d Definition) NamesLabel() bool { return strings.Contains(d.KillSwitch, PauseLabel) }
