package forge

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Repository is a repository on a code host. ParseRepository returns one.
type Repository struct{ Host, Owner, Name string }

// String returns the repository as gh takes it.
func (r Repository) String() string { return r.Host + "/" + r.Owner + "/" + r.Name }

var (
	scpLike     = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@([A-Za-z0-9][A-Za-z0-9.-]*):(.+)$`)
	hostName    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)
	pathSegment = lazyregexp.New(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)
)

// ParseRepository returns the repository of a remote's URL: https, ssh or
// user@host:owner/name, with or without .git. It drops credentials and a port.
// The error for anything else is a *loop.Fault.
func ParseRepository(address string) (Repository, error) {
	host, path := "", ""
	if m := scpLike.FindStringSubmatch(address); m != nil {
		host, path = m[1], m[2]
	} else if u, err := url.Parse(address); err == nil && (u.Scheme == "https" || u.Scheme == "ssh") {
		host, path = u.Hostname(), u.Path
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	owner, name, _ := strings.Cut(path, "/")
	r := Repository{Host: strings.ToLower(host), Owner: owner, Name: name}
	return r, r.validate()
}

// validate refuses what gh could take for something other than a repository. The
// error does not repeat the URL, which may contain a password.
func (r Repository) validate() error {
	for _, part := range []string{r.Owner, r.Name} {
		if !pathSegment.MatchString(part) || part == "." || part == ".." {
			return notARepository(r)
		}
	}
	if !hostName.MatchString(r.Host) {
		return notARepository(r)
	}
	return nil
}

func notARepository(r Repository) error {
	return &loop.Fault{
		Exit: loop.ExitUnreadable, What: fmt.Sprintf("the remote address names no repository that gh knows (host %.100q)", r.Host),
		Fix: "give the remote an address like https://HOST/OWNER/NAME: {1}", Err: loop.ErrNotFound,
		Actions: []loop.Command{loop.HostCommand("git", "remote", "set-url", "--push", "NAME", "URL").WithBlanks("NAME", "URL")},
	}
}
