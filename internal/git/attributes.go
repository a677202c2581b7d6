package git

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/git/program"
)

// Attribute returns the value that an attribute has for each of some paths, by
// the .gitattributes files below dir and the repository's info/attributes.
// Without a value it is "unspecified", as git says it.
func (r *Repo) Attribute(ctx context.Context, dir, name string, paths []string) ([]string, error) {
	git := program.New(r.git.Run, r.GitDir, r.CommonDir, dir)
	git.Dir = dir
	out, err := git.Output(ctx, strings.NewReader(strings.Join(paths, "\x00")+"\x00"), "check-attr", "--stdin", "-z", name)
	if err != nil {
		return nil, fmt.Errorf("ask for the attribute %s: %w", name, err)
	}
	fields := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	if len(fields) != 3*len(paths) {
		return nil, fmt.Errorf("ask for the attribute %s: git answered about %d paths, not %d", name, len(fields)/3, len(paths))
	}
	values := make([]string, len(paths))
	for i, path := range paths {
		if string(fields[3*i]) != path {
			return nil, fmt.Errorf("ask for the attribute %s: git answered about %q, not %q", name, fields[3*i], path)
		}
		values[i] = string(fields[3*i+2])
	}
	return values, nil
}
