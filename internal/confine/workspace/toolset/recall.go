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

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// chosenBy are the files of a project by which version managers choose versions.
var chosenBy = []string{
	".python-version", ".tool-versions", "mise.toml", ".mise.toml", "rust-toolchain", "rust-toolchain.toml", ".nvmrc", ".node-version",
	".ruby-version", ".java-version", ".sdkmanrc", "go.mod", "go.work", "pyproject.toml",
}

// chosenAtHome are the files for all projects of a user.
var chosenAtHome = []string{
	".pyenv/version", ".rustup/settings.toml", ".tool-versions", ".config/mise/config.toml", ".nvm/alias/default", ".rbenv/version",
}

// memory is a cached toolset, with the digest of what it was found from.
type memory struct {
	Schema string `json:"schema"`
	From   string `json:"from"`
	Set    Set    `json:"toolset"`
}

const memorySchema = "pawl.toolset/v1"

// Recall finds what the programs of the lines, and of the languages of the checkout,
// need. The result is cached in a file below dir, and is valid while nothing that it was
// found from has changed. A file that cannot be read or written only costs time. Errors
// are those of [toolchain.Resolve]. A missing program of a language is not an error,
// because perhaps no line needs it.
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

// writeMemory replaces the file atomically.
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

// originDigest is the digest of all that the toolset was found from: variables, the names
// at the top of the checkout, files that choose versions, the places of programs, and the
// programs themselves.
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

// fileStamp is a text that changes when the file does.
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
