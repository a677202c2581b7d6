package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	maxMatches    = 100
	maxMatchBytes = 300
	// maxSearchedBytes is the size of the largest file that is searched.
	maxSearchedBytes = 4 << 20
)

type searchInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
}

var errEnough = errors.New("enough was found")

func searchTool(ctx context.Context, p *place, _ string, in searchInput) (string, error) {
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", fmt.Errorf("read the pattern: %w", err)
	}
	if !doublestar.ValidatePattern(in.Glob) {
		return "", fmt.Errorf("read the glob: %q is invalid", in.Glob)
	}
	top, ok := p.relative(cmp.Or(in.Path, "."))
	if !ok {
		return "", fmt.Errorf("search %s: it is not in the tree; read files outside of it one by one", in.Path)
	}
	var out strings.Builder
	found := 0
	err = fs.WalkDir(p.root.FS(), top, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == top:
			return err
		case err != nil:
			return nil //nolint:nilerr // What cannot be read is not searched.
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		case !e.Type().IsRegular() || in.Glob != "" && !matchesGlob(in.Glob, name):
			return nil
		}
		found += printMatches(p.root.FS(), name, re, maxMatches-found, &out)
		if found >= maxMatches {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return out.String() + "[there is more: search for less]\n", nil
	case err != nil:
		return "", fmt.Errorf("search %s: %w", in.Path, err)
	case found == 0:
		return "nothing matches", nil
	}
	return out.String(), nil
}

// matchesGlob reports whether a path matches a glob. A glob without a slash
// matches the last element.
func matchesGlob(glob, name string) bool {
	if !strings.Contains(glob, "/") {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(glob, name)
}

// printMatches prints at most most matching lines of a file, and returns their
// number. It skips files that are not text.
func printMatches(tree fs.FS, name string, re *regexp.Regexp, most int, out *strings.Builder) int {
	info, err := fs.Stat(tree, name)
	if err != nil || info.Size() > maxSearchedBytes {
		return 0
	}
	text, err := fs.ReadFile(tree, name)
	if err != nil || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
		return 0
	}
	n := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxSearchedBytes+1)
	for at := 1; lines.Scan() && n < most; at++ {
		if re.Match(lines.Bytes()) {
			line := lines.Text()
			fmt.Fprintf(out, "%s:%d:%s\n", name, at, strings.ToValidUTF8(line[:min(len(line), maxMatchBytes)], "\uFFFD"))
			n++
		}
	}
	return n
}

// formatNames returns sorted names, limited in number.
func formatNames(names []string) string {
	more := len(names) > maxNames
	slices.Sort(names)
	names = names[:min(len(names), maxNames)]
	text := strings.Join(names, "\n")
	switch {
	case more:
		text += "\n[there are more]"
	case text == "":
		return "it is empty"
	}
	return text
}
