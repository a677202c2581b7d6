package loop

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Server is an MCP server that a definition names. Exactly one of Command and URL is
// set.
type Server struct {
	Name    string // letters, digits and hyphens
	Command string // a line for /bin/sh -c that talks on its standard streams
	URL     string // http or https
}

// ParseServer reads "NAME=COMMAND" or "NAME=URL".
func ParseServer(text string) (Server, error) {
	name, target, found := strings.Cut(text, "=")
	s := Server{Name: strings.TrimSpace(name)}
	target = strings.TrimSpace(target)
	switch {
	case !found || s.Name == "" || target == "":
		return Server{}, errors.New("write NAME=COMMAND, for a server that is started inside the sandbox, or NAME=URL")
	case strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(s.Name) > 32:
		return Server{}, errors.New("the name of a server is at most 32 small letters, digits and hyphens")
	case strings.ContainsAny(target, "\x00\n\r"):
		return Server{}, errors.New("a command or URL is one line")
	case !strings.HasPrefix(target, "http://") && !strings.HasPrefix(target, "https://"):
		s.Command = target
		return s, nil
	}
	at, err := url.Parse(target)
	if err != nil || at.Hostname() == "" || at.User != nil || at.Fragment != "" {
		return Server{}, fmt.Errorf("%s is not a URL without a user and a fragment", target)
	}
	s.URL = target
	return s, nil
}

// HostPort returns the host and port of URL; both are empty without a URL.
func (s Server) HostPort() (host, port string) {
	at, err := url.Parse(s.URL)
	if err != nil || s.URL == "" {
		return "", ""
	}
	if port = at.Port(); port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	return strings.ToLower(at.Hostname()), port
}

// Argv is the command line that starts the server.
func (s Server) Argv() []string { return []string{"/bin/sh", "-c", "exec " + s.Command} }

// Servers returns the MCP servers of the definition. Invalid ones are left out: the
// definition was refused because of them.
func (d Definition) Servers() []Server {
	var all []Server
	for _, text := range d.MCP {
		if s, err := ParseServer(text); err == nil {
			all = append(all, s)
		}
	}
	return all
}
