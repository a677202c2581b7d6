package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// mcpKey is a token with which a client asks over HTTP, and what it is for.
type mcpKey struct {
	file, name string
	role       loop.Role
	token      string
	reaches    []reachedLoops // nil: all loops
}

// reachedLoops are loops of one workspace that a token reaches.
type reachedLoops struct {
	workspace string // path of its folder
	loops     []string
}

// The lines of a key file that say what its token reaches: loops of the workspace that the line
// before them names.
const (
	workspaceLine = "workspace:"
	loopsLine     = "loops:"
)

// readKeys reads the tokens of a folder: agent.key and viewer.key, which are made if they are missing,
// and those whose names begin with agent- or viewer-.
func readKeys(dir string) (all []mcpKey, err error) {
	files := []string{filepath.Join(dir, "agent.key"), filepath.Join(dir, "viewer.key")}
	for _, kind := range []string{"agent-*.key", "viewer-*.key"} {
		files = append(files, dirglob.Find(dir, kind)...)
	}
	for _, file := range files {
		k, err := readKey(file)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// readKey reads a key file: the token, and perhaps lines that name a workspace and then loops of it. A
// token that is missing is made.
func readKey(file string) (mcpKey, error) {
	k := mcpKey{file: file, name: strings.TrimSuffix(filepath.Base(file), ".key")}
	role, _, _ := strings.Cut(k.name, "-")
	k.role = loop.Role(role)
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return k, err
	}
	bad := func(what, why, fix string) error {
		return &loop.Fault{Exit: loop.ExitUnreadable, What: file + what, Why: why, Fix: fix}
	}
	workspace := "" // of the next line loops:
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		folder, isWorkspace := strings.CutPrefix(line, workspaceLine)
		names, isLoops := strings.CutPrefix(line, loopsLine)
		switch {
		case isWorkspace && (workspace != "" || !filepath.IsAbs(strings.TrimSpace(folder))):
			return k, bad(" names a workspace that cannot be used", "a line workspace: has the absolute path of a folder, and a line loops: after it", "write workspace: /path/of/the/repository, and loops: LOOP, LOOP in the next line")
		case isWorkspace:
			workspace = strings.TrimSpace(folder)
		case !isLoops:
			k.token = strings.TrimSpace(k.token + "\n" + line)
		case workspace == "":
			return k, bad(" names loops of no workspace", "loops of several workspaces have the same name, and no line says which one is meant", "write workspace: /path/of/the/repository in the line before each line loops:")
		default:
			r := reachedLoops{workspace, strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })}
			if len(r.loops) == 0 {
				return k, bad(" names no loop", "its line loops: is empty", "write loops: LOOP, LOOP, or remove the lines workspace: and loops:, then all loops are reached")
			}
			k.reaches, workspace = append(k.reaches, r), ""
		}
	}
	if workspace != "" {
		return k, bad(" names a workspace and no loop of it", "no line loops: follows the line workspace:", "write loops: LOOP, LOOP in the next line")
	}
	if k.token == "" && (err != nil || k.reaches != nil) {
		k.token = rand.Text() + rand.Text()
		return k, durable.ReplaceFile(file, append([]byte(k.token+"\n"), text...), 0o600)
	}
	if why := weakness(k.token); why != "" {
		return k, bad(" has no token that can be used", why, "remove the file: a new token is made")
	}
	return k, nil
}

// weakness says why a token may be guessed; empty: it may not. What is estimated is how random it
// looks, by its letters and by the triples of them that repeat: who chose it may know more.
func weakness(token string) string {
	const (
		least = 32 // characters
		bits  = 80 // 32 random hexadecimal digits have about 115 by this estimate
	)
	letters, triples := map[byte]int{}, map[string]bool{}
	for i := range len(token) {
		letters[token[i]]++
		triples[token[i:min(i+3, len(token))]] = true
	}
	estimate := 0.0
	for _, n := range letters {
		estimate -= float64(n) * math.Log2(float64(n)/float64(len(token)))
	}
	estimate *= float64(len(triples)) / float64(len(token))
	switch {
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return "it has characters that are no header's"
	case len(token) < least:
		return fmt.Sprintf("it has %d characters, and a token at least %d", len(token), least)
	case estimate < bits:
		return "it repeats itself so much that it can be guessed"
	}
	return ""
}
