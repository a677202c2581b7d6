package meter

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

const (
	maxName  = 253 // characters of a name, by RFC 1035
	maxLabel = 63
)

// place is the destination of a request: a name or an address, and a port.
type place struct {
	name string     // as in Host.Name
	addr netip.Addr // valid if the name is an address
	port uint16
}

// authority returns the place as requests write it.
func (p place) authority() string {
	if p.addr.Is6() {
		return "[" + p.name + "]:" + strconv.Itoa(int(p.port))
	}
	return p.name + ":" + strconv.Itoa(int(p.port))
}

// parsePlace parses host:port. A fallback of 0 means that the port is required.
func parsePlace(authority string, fallback uint16) (place, error) {
	host, port, err := splitPort(authority)
	if err != nil {
		return place{}, err
	}
	p := place{port: fallback}
	switch {
	case port != "":
		if p.port, err = parsePort(port); err != nil {
			return place{}, err
		}
	case fallback == 0:
		return place{}, errors.New("it has no port")
	}
	p.name, p.addr, err = parseName(host)
	return p, err
}

func splitPort(authority string) (host, port string, err error) {
	at := strings.LastIndexByte(authority, ':')
	if at < strings.LastIndexByte(authority, ']') {
		at = -1
	}
	if at < 0 {
		return authority, "", nil
	}
	if at == len(authority)-1 {
		return "", "", errors.New("the port after the colon is missing")
	}
	return authority[:at], authority[at+1:], nil
}

// parsePort accepts digits only: strconv also accepts signs.
func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, errors.New("the port is not a number from 1 to 65535")
	}
	return uint16(n), nil
}

// parseName returns the canonical spelling of a host: lower case, without a last
// dot. A name that programs could read as an address in an unusual notation is an
// error.
func parseName(host string) (string, netip.Addr, error) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		return parseBracketed(inner)
	}
	for _, c := range []byte(host) {
		switch {
		case c >= 0x80:
			return "", netip.Addr{}, errors.New("it is not ASCII: write the punycode form, which begins with xn--")
		case c == '@':
			return "", netip.Addr{}, errors.New("it has a user or a password")
		}
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return "", netip.Addr{}, err
		}
	}
	if len(name) > maxName {
		return "", netip.Addr{}, errors.New("it is longer than a name can be")
	}
	if !isNumeric(labels[len(labels)-1]) {
		return name, netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() {
		return "", netip.Addr{}, errors.New("it is an address in another notation than four decimal numbers")
	}
	return name, addr, nil
}

func parseBracketed(inner string) (string, netip.Addr, error) {
	text, ok := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(text)
	switch {
	case !ok || err != nil || addr.Is4():
		return "", netip.Addr{}, errors.New("what is in brackets is not an IPv6 address")
	case addr.Zone() != "":
		return "", netip.Addr{}, errors.New("the address has a zone, which means something on one machine only")
	case addr.Is4In6():
		return "", netip.Addr{}, errors.New("it is an IPv4 address written as IPv6")
	}
	return addr.String(), addr, nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("it has an empty part")
	case len(label) > maxLabel:
		return errors.New("it has a part that is longer than 63 characters")
	case label[0] == '-' || label[len(label)-1] == '-':
		return errors.New("a part of it begins or ends with a dash")
	}
	for _, c := range []byte(label) {
		if !isNameByte(c) {
			return errors.New("it has a character that no name has")
		}
	}
	return nil
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// isNumeric reports whether programs that accept decimal, octal and hexadecimal
// numbers, like inet_aton, would read a host with this last label as an address.
func isNumeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
