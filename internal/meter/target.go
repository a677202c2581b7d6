package meter

import (
	"errors"
	"strings"
)

// target is where a request goes and what it asks for there.
type target struct {
	place

	tunnel bool
	path   string // of a plain request, byte for byte, with its query
}

const (
	connect     = "CONNECT"
	schemePlain = "http://"
	schemeTLS   = "https://"
)

// targetOf reads the target of a request for a proxy. Its errors are denials.
func targetOf(h *head) (target, error) {
	t, authority, err := split(h)
	if err != nil {
		return target{}, deny(place{}, ReasonRequest, err.Error())
	}
	fallback := uint16(portPlain)
	if t.tunnel {
		fallback = 0
	}
	if t.place, err = placeOf(authority, fallback); err != nil {
		return target{}, deny(place{name: shown(authority)}, ReasonSpelling, err.Error())
	}
	return t, t.check(h)
}

func split(h *head) (t target, authority string, err error) {
	if h.method == connect {
		return target{tunnel: true}, h.target, nil
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

// check refuses what names two hosts or means two things.
func (t target) check(h *head) error {
	bodied := h.chunked || h.length > 0
	switch hosts := h.values("Host"); {
	case len(hosts) == 0 && !h.old:
		return deny(t.place, ReasonRequest, "it has no Host")
	case len(hosts) == 1 && !t.named(hosts[0]):
		return deny(t.place, ReasonRequest, "its Host is another one than its target's")
	case t.tunnel && bodied:
		return deny(t.place, ReasonRequest, "a CONNECT has no body")
	case t.tunnel && t.port == portPlain:
		return deny(t.place, ReasonPlainTunnel, "port 80 is plain HTTP and needs no CONNECT")
	case !t.tunnel && h.has("Upgrade", "websocket"):
		return deny(t.place, ReasonRequest, "a WebSocket goes through CONNECT, with TLS")
	}
	return nil
}

// named tells whether a Host field means the same host. Its port may be left
// out in a CONNECT, as some clients do.
func (t target) named(host string) bool {
	fallback := uint16(portPlain)
	if t.tunnel {
		fallback = t.port
	}
	p, err := placeOf(host, fallback)
	return err == nil && p.name == t.name && p.port == t.port
}
