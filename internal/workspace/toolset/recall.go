package toolset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/proc"
)

// chosenBy are files by which managers of versions choose, in a project.
var chosenBy = []string{
	".python-version", ".tool-versions", "mise.toml", ".mise.toml", "rust-toolchain", "rust-toolchain.toml", ".nvmrc", ".node-version",
	".ruby-version", ".java-version", ".sdkmanrc", "go.mod", "go.work", "pyproject.toml",
}

// chosenAtHome are those for all projects of a user.
var chosenAtHome = []string{
	".pyenv/version", ".rustup/settings.toml", ".tool-versions", ".config/mise/config.toml", ".nvm/alias/default", ".rbenv/version",
}

// memory is a toolset with what it was found from.
type memory struct {
	Schema string `json:"schema"`
	From   string `json:"from"`
	Set    Set    `json:"toolset"`
}

const memorySchema = "pawl.toolset/v1"

// Recall finds what programs of the lines, and of the languages that the
// checkout uses, need. What one process found is kept in a file below dir for
// those that follow, and holds as long as nothing that it was found from has
// changed; a file that cannot be read or written costs time, nothing else.
// Errors are those of [toolchain.Resolve]; a language's own program that is not
// there is none, because no line may want it.
func Recall(ctx context.Context, exec proc.Runner, n Needs, dir string) (Set, error) {
	file := filepath.Join(dir, digestTexts(n.Root, strings.Join(n.Lines, "\x00"))+".json")
	if k, ok := readMemory(file, n); ok {
		k.path = visiblePath(n.Environ)
		return k, nil
	}
	k, err := resolveSet(ctx, exec, n)
	if err == nil {
		writeMemory(file, memory{memorySchema, k.originDigest(n), k})
	}
	return k, err
}

func readMemory(file string, n Needs) (Set, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Set{}, false
	}
	var m memory
	if json.Unmarshal(text, &m) != nil || m.Schema != memorySchema || m.From != m.Set.originDigest(n) {
		return Set{}, false
	}
	return m.Set, true
}

// writeMemory replaces the file as a whole, so that no reader sees half of it.
func writeMemory(file string, m memory) {
	text, err := json.Marshal(m)
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	tmp := fmt.Sprintf("%s.%d", file, os.Getpid())
	if os.WriteFile(tmp, text, 0o600) != nil || os.Rename(tmp, file) != nil {
		_ = os.Remove(tmp)
	}
}

// originDigest stands for all that the toolset was found from: variables, the names at
// the top of the checkout, files by which versions are chosen, where programs
// are found, and the programs themselves.
func (k Set) originDigest(n Needs) string {
	var from []string
	home, path := "", ""
	for _, kv := range n.Environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME":
			home = value
		case "PATH":
			path = value
		}
		from = append(from, kv)
	}
	entries, _ := os.ReadDir(n.Root)
	for _, e := range entries {
		from = append(from, e.Name())
	}
	for _, name := range chosenBy {
		from = append(from, fileStamp(filepath.Join(n.Root, name)))
	}
	for _, name := range chosenAtHome {
		from = append(from, fileStamp(filepath.Join(home, name)))
	}
	for _, t := range k.Toolchains {
		from = append(from, fileStamp(t.Path))
		for _, dir := range filepath.SplitList(path) {
			from = append(from, fileStamp(filepath.Join(dir, t.Program)))
		}
	}
	return digestTexts(from...)
}

// fileStamp changes with a file.
func fileStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
}

func digestTexts(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d\x00%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
