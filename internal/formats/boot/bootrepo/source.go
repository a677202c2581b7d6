package bootrepo

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// forgeAddress is what owner/repo is below, without a mirror.
const forgeAddress = "https://github.com"

// source is where a boot repository is.
type source struct {
	path   string     // of a repository on this machine, absolute; empty: it is elsewhere
	remote git.Remote // of one elsewhere
}

// String is the address or the path, without secrets.
func (s source) String() string {
	if s.path != "" {
		return s.path
	}
	return git.SafeURL(s.remote.URL)
}

// identity tells repositories apart. It has no password.
func (s source) identity() string {
	if s.path != "" {
		return s.path
	}
	if u, err := url.Parse(s.remote.URL); err == nil && u.User != nil {
		u.User = url.User(u.User.Username())
		return u.String()
	}
	return s.remote.URL
}

var (
	ownerRepo = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)
	scpLike   = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^:].*$`)
	scheme    = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)

// resolveSource finds out what the repository of a link is: owner/repo, an address, or
// a path. A path of two names has to begin with ./ so that it is not owner/repo.
func (c Cache) resolveSource(text, root string) (source, error) {
	switch {
	case text == "" || text[0] == '-' || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return source{}, refuseLink("%q is not a repository", text)
	case ownerRepo.MatchString(text) && !strings.HasSuffix(text, "/.") && !strings.HasSuffix(text, "/.."):
		return c.resolveAddress(c.below(text), root)
	}
	return c.resolveAddress(text, root)
}

// below is the address of owner/repo.
func (c Cache) below(name string) string {
	switch {
	case c.Mirror == "":
		return forgeAddress + "/" + name
	case strings.HasSuffix(c.Mirror, ":") || strings.HasSuffix(c.Mirror, "/"):
		return c.Mirror + name
	}
	return c.Mirror + "/" + name
}

func (c Cache) resolveAddress(text, root string) (source, error) {
	if rest, ok := strings.CutPrefix(text, "file://"); ok {
		u, err := url.Parse(text)
		if err != nil || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) || u.RawQuery != "" || u.Fragment != "" {
			return source{}, refuseLink("file://%s is not the address of a path on this machine", git.SafeURL(rest))
		}
		return localSource(u.Path), nil
	}
	if scpLike.MatchString(text) || scheme.MatchString(text) {
		s := source{remote: git.Remote{URL: text, Environ: c.Environ}}
		if err := s.remote.Check(); err != nil {
			return source{}, refuseLink("the repository %s is not used: only https:// and ssh:// addresses, user@host:path, file:// and paths are", git.SafeURL(text))
		}
		return s, nil
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(root, text)
	}
	return localSource(text), nil
}

// localSource is the repository at a path, which may be written without .git at its end.
func localSource(path string) source {
	path = filepath.Clean(path)
	if _, err := os.Stat(path); err != nil {
		if _, err := os.Stat(path + ".git"); err == nil {
			path += ".git"
		}
	}
	return source{path: path}
}

// checkReference refuses a text that git could take for something else than a branch, a
// tag or a commit.
func checkReference(text string) error {
	if git.CheckRef("refs/heads/"+shortName(text)) != nil {
		return refuseLink("%q is not a branch, a tag or a commit", text)
	}
	return nil
}

// shortName is the name of a branch or a tag without what says which of them it is.
func shortName(reference string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if short, ok := strings.CutPrefix(reference, prefix); ok {
			return short
		}
	}
	return reference
}

// refNames are the refs that a branch or a tag may be, in git's order: a tag wins.
func refNames(reference string) []string {
	if short := shortName(reference); short != reference {
		return []string{reference}
	}
	return []string{"refs/tags/" + reference, "refs/heads/" + reference}
}

// isCommit reports whether a reference is the full name of a commit.
func isCommit(reference string) bool {
	return (len(reference) == 40 || len(reference) == 64) && strings.Trim(reference, "0123456789abcdef") == ""
}
