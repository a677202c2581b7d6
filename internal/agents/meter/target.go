package meter

import (
	"errors"
	"strings"
)

// target is the destination of a request, and what it asks for there.
type target struct {
	place

	isTunnel bool
	path     string // of a plain request, byte for byte, with its query
}

const (
	methodConnect = "CONNECT"
	schemePlain   = "http://"
	schemeTLS     = "https://"
)

// parseTarget parses the target of a request to a proxy. Its errors are denials.
func parseTarget(h *head) (target, error) {
	t, authority, err := splitTarget(h)
	if err != nil {
		return target{}, deny(place{}, ReasonRequest, err.Error())
	}
	fallback := uint16(portPlain)
	if t.isTunnel {
		fallback = 0
	}
	if t.place, err = parsePlace(authority, fallback); err != nil {
		return target{}, deny(place{name: shorten(authority)}, ReasonSpelling, err.Error())
	}
	return t, t.checkRequest(h)
}

func splitTarget(h *head) (t target, authority string, err error) {
	if h.method == methodConnect {
		return target{isTunnel: true}, h.target, nil
	}
	if len(h.target) >= len(schemeTLS) && strings.EqualFold(h.target[:len(schemeTLS)], schemeTLS) {
		return target{}, "", errors.New("an https URL goes through CONNECT")
	}
	if len(h.target) < len(schemePlain) || !strings.EqualFold(h.target[:len(schemePlain)], schemePlain) {
		return target{}, "", errors.New("this is a proxy: the target is neither a host for CONNECT nor an http URL")
	}
	rest := h.target[len(schemePlain):]
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		return target{path: "/"}, rest, nil
	}
	t.path = rest[end:]
	if t.path[0] == '?' {
		t.path = "/" + t.path
	}
	if strings.Contains(t.path, "#") {
		return target{}, "", errors.New("its target has a fragment")
	}
	return t, rest[:end], nil
}

// checkRequest refuses a request that names two hosts or is ambiguous.
func (t target) checkRequest(h *head) error {
	bodied := h.chunked || h.length > 0
	switch hosts := h.fieldValues("Host"); {
	case len(hosts) == 0 && !h.old:
		return deny(t.place, ReasonRequest, "it has no Host")
	case len(hosts) == 1 && !t.matchesHost(hosts[0]):
		return deny(t.place, ReasonRequest, "its Host is another one than its target's")
	case t.isTunnel && bodied:
		return deny(t.place, ReasonRequest, "a CONNECT has no body")
	case t.isTunnel && t.port == portPlain:
		return deny(t.place, ReasonPlainTunnel, "port 80 is plain HTTP and needs no CONNECT")
	case !t.isTunnel && h.listHas("Upgrade", "websocket"):
		return deny(t.place, ReasonRequest, "a WebSocket goes through CONNECT, with TLS")
	}
	return nil
}

// matchesHost reports whether a Host field means the same host. In a CONNECT its
// port may be missing, as some clients omit it.
func (t target) matchesHost(host string) bool {
	fallback := uint16(portPlain)
	if t.isTunnel {
		fallback = t.port
	}
	p, err := parsePlace(host, fallback)
	return err == nil && p.name == t.name && p.port == t.port
}
