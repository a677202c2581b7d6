package bootrepo

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/git/program"
)

// MaxDiff is the most of a Change's text in bytes.
const MaxDiff = 256 << 10

// Change is by what two commits of a boot repository differ for a workspace.
type Change struct {
	Old, New                           string // commits
	Version, Rules, StopLines, Schemas bool   // whether these differ
	Text                               string // unified diff of the contract's files; one that is too long is cut at a line, and says so
}

// NeedsYes reports whether a person has to agree before the new commit is followed.
func (c Change) NeedsYes() bool { return c.Rules || c.StopLines }

// Diff compares two commits of the repository of a link. One that is not kept is
// fetched; if it cannot be had, that is an *Error with loop.ReasonBootAway.
func (c Cache) Diff(ctx context.Context, link bootlink.Link, root, older, newer string) (Change, error) {
	var both [2]*files
	for i, commit := range []string{older, newer} {
		link.Reference = commit
		if !isCommit(commit) {
			return Change{}, fmt.Errorf("compare contracts: %q is not the name of a commit", commit)
		}
		r, err := c.repository(link, root)
		if err != nil {
			return Change{}, err
		}
		if both[i], err = r.findCommit(ctx, commit, commit); err != nil {
			return Change{}, r.refuseAway(err)
		}
	}
	was, is := both[0], both[1]
	same := func(name string) bool { return bytes.Equal(was.Content[name], is.Content[name]) }
	d := Change{
		Old: older, New: newer, Version: !same(bootlink.VersionFile), Rules: !same(bootlink.RulesFile),
		StopLines: !bytes.Equal(was.Content[was.Lines], is.Content[is.Lines]),
		Schemas:   !maps.EqualFunc(was.schemas(), is.schemas(), bytes.Equal),
	}
	text, err := c.unifiedDiff(ctx, was, is)
	if err != nil {
		return d, fmt.Errorf("compare contracts: %w", err)
	}
	d.Text = text
	return d, nil
}

// unifiedDiff writes both contracts into a folder of temporary files and lets git
// compare them there, without a repository.
func (c Cache) unifiedDiff(ctx context.Context, older, newer *files) (string, error) {
	dir, err := os.MkdirTemp("", "pawl-contracts-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for side, f := range map[string]*files{"old": older, "new": newer} {
		if err := os.Mkdir(filepath.Join(dir, side), 0o700); err != nil {
			return "", err
		}
		for name, text := range f.Content {
			to := filepath.Join(dir, side, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return "", err
			}
			if err := os.WriteFile(to, text, 0o600); err != nil {
				return "", err
			}
		}
	}
	there := program.New(c.Exec, dir, dir, "").Without("GIT_DIR").With("GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir))
	out := &program.Bounded{Limit: MaxDiff}
	err = there.Pipe(ctx, nil, out, "diff", "--no-index", "--no-prefix", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--", "old", "new")
	if err != nil && program.Status(err) != 1 { // They differ.
		return "", err
	}
	if !out.Cut {
		return out.String(), nil
	}
	kept := out.Bytes()
	kept = kept[:bytes.LastIndexByte(kept, '\n')+1]
	return string(fmt.Appendf(kept, "[pawl: the diff is cut after %d bytes]\n", len(kept))), nil
}
