package meter

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	portPlain = 80
	portTLS   = 443
)

// Hosts are the hosts to which requests may pass. The empty list passes nothing.
type Hosts []Host

// Host is one host, or all names below one. The zero value matches nothing.
type Host struct {
	Name  string   // lower case, ASCII, without a last dot; or an IP address without brackets
	Below bool     // the names below Name, at any depth, but not Name itself
	Ports []uint16 // empty means 443 and 80
	Calls []Call   // the plain HTTP requests that may pass; empty means all. Tunnels are not limited by it.
}

// Call is a kind of plain HTTP request. The zero value matches every request.
type Call struct {
	Method string // exact, as in "GET"; empty means any
	Path   string // exact, or with a slash at its end everything below it; empty means any
}

// ParseHosts reads the entries of a definition's key network: a name or an IP
// address, with a port after a colon if it is not 443 or 80, and with "*." before
// a name for all names below it (at least one label more, not the name itself).
// The error is a *loop.Fault that names the first invalid entry and what to write
// instead.
func ParseHosts(list []string) (Hosts, error) {
	var hosts Hosts
	for _, entry := range list {
		h, err := parseHost(entry)
		if err != nil {
			return nil, &loop.Fault{
				Exit: loop.ExitNotReady, What: fmt.Sprintf("network: %q is not a host that can be allowed", entry), Why: err.why.Error(),
				Fix: err.fix, Err: err.why,
			}
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// entryError says why an entry is refused, and what to write.
type entryError struct {
	why error
	fix string
}

func parseHost(entry string) (Host, *entryError) {
	if strings.Contains(entry, "/") {
		_, rest, found := strings.Cut(entry, "://")
		if !found {
			rest = entry
		}
		host, _, _ := strings.Cut(rest, "/")
		return Host{}, &entryError{errors.New("it is a URL"), "write the host alone: " + cmp.Or(host, "registry.npmjs.org")}
	}
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Is6() {
		entry = "[" + entry + "]"
	}
	name, below := strings.CutPrefix(entry, "*.")
	p, err := parsePlace(name, portTLS)
	if err != nil {
		return Host{}, &entryError{err, fixForName(name)}
	}
	h := Host{Name: p.name, Below: below}
	if _, port, _ := splitPort(name); port != "" {
		h.Ports = []uint16{p.port}
	}
	return h, h.checkSense(p)
}

// checkSense says why a well-formed entry makes no sense.
func (h Host) checkSense(p place) *entryError {
	single := !strings.Contains(h.Name, ".")
	switch {
	case p.addr.IsValid() && h.Below:
		return &entryError{errors.New("there are no names below an address"), "write the address alone: " + h.Name}
	case p.addr.IsValid():
		if kind := kindOf(p.addr); kind != public && kind != private {
			return &entryError{fmt.Errorf("the address is %s, which is never reached from a sandbox", kind), "remove the entry"}
		}
	case h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost"):
		return &entryError{errors.New("a sandbox has a localhost of its own"), "remove the entry: programs reach it without a proxy"}
	case single && h.Below:
		return &entryError{errors.New("it is a whole top-level domain"), "write one domain: *.example" + "." + h.Name}
	case single:
		return &entryError{errors.New("it is a short name, which means another host elsewhere"), "write the full name, as in " + h.Name + ".example.org"}
	}
	return nil
}

func fixForName(name string) string {
	if strings.Contains(name, "*") {
		return "a star stands only at the beginning, before a dot: *.example.org"
	}
	return "write a name or an address, with a port if it is not 443 and 80: registry.npmjs.org, *.example.org, git.example.org:8443"
}

// findEntries returns the entries for a place, or the reason why there are none.
func (hosts Hosts) findEntries(p place) (Hosts, loop.Reason) {
	var named, found Hosts
	for _, h := range hosts {
		if !h.matchesName(p) {
			continue
		}
		named = append(named, h)
		if h.hasPort(p.port) {
			found = append(found, h)
		}
	}
	switch {
	case len(named) == 0:
		return nil, ReasonHost
	case len(found) == 0:
		return nil, ReasonPort
	}
	return found, ""
}

func (h Host) matchesName(p place) bool {
	if h.Name == "" || p.addr.IsValid() && h.Below {
		return false
	}
	if h.Below {
		return strings.HasSuffix(p.name, "."+h.Name)
	}
	return p.name == h.Name
}

func (h Host) hasPort(port uint16) bool {
	if len(h.Ports) == 0 {
		return port == portTLS || port == portPlain
	}
	return slices.Contains(h.Ports, port)
}

// allowCall reports whether one of the entries allows a plain request.
func (hosts Hosts) allowCall(method, path string) bool {
	for _, h := range hosts {
		if len(h.Calls) == 0 {
			return true
		}
		for _, c := range h.Calls {
			if c.matchesCall(method, path) {
				return true
			}
		}
	}
	return false
}

func (c Call) matchesCall(method, path string) bool {
	if c.Method != "" && c.Method != method {
		return false
	}
	switch {
	case c.Path == "":
		return true
	case !isPlainPath(path):
		return false
	case strings.HasSuffix(c.Path, "/"):
		return strings.HasPrefix(path, c.Path)
	}
	return path == c.Path
}

// isPlainPath reports whether all servers read a path alike. Some servers decode
// a slash or a dot, join slashes or resolve ".." before they choose a handler, so
// that a path below an allowed one could mean another.
func isPlainPath(path string) bool {
	lower := strings.ToLower(path)
	for _, odd := range []string{"//", `\`, ";", "%2f", "%2e", "%5c", "%25", "%3b", "%00"} {
		if strings.Contains(lower, odd) {
			return false
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return true
}
