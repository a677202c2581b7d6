package meter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// addrKind is the kind of an address, in the words of a denial.
type addrKind string

const (
	public     addrKind = "public"
	private    addrKind = "private"
	loopback   addrKind = "loopback"
	linkLocal  addrKind = "link-local"
	metadata   addrKind = "a cloud's metadata service"
	multicast  addrKind = "multicast"
	unspecific addrKind = "unspecified"
	reserved   addrKind = "reserved"
	tunnelled  addrKind = "an old form of a tunnel"
	ours       addrKind = "an address of this machine"
)

// kindRanges are read from the top: the first one that contains an address gives
// its kind. IPv4 addresses inside of IPv6 ones are unwrapped before.
var kindRanges = []struct {
	kind addrKind
	in   []netip.Prefix
}{
	{metadata, parsePrefixes("169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::/32 fd20:ce::/32")},
	{unspecific, parsePrefixes("0.0.0.0/8 ::/128")},
	{loopback, parsePrefixes("127.0.0.0/8 ::1/128")},
	{linkLocal, parsePrefixes("169.254.0.0/16 fe80::/10 fec0::/10")},
	{multicast, parsePrefixes("224.0.0.0/4 ff00::/8")},
	{private, parsePrefixes("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 198.18.0.0/15 fc00::/7")},
	{reserved, parsePrefixes("192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 2001:db8::/32 3fff::/20")},
	{tunnelled, parsePrefixes("2002::/16 2001::/32")},
	{reserved, parsePrefixes("2001::/23")},
	{public, parsePrefixes("0.0.0.0/0 2000::/3")},
}

// nat64 is the prefix with which networks without IPv4 reach IPv4 addresses.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func parsePrefixes(list string) []netip.Prefix {
	var out []netip.Prefix
	for text := range strings.FieldsSeq(list) {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// reachedAddr returns the address that is really reached: the IPv4 address inside
// of an IPv6 one if the latter is only a way to write or to route it.
func reachedAddr(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// kindOf returns the kind of an address. An address in no range is reserved, so
// that nothing passes only because it is missing here.
func kindOf(a netip.Addr) addrKind {
	if !a.IsValid() || a.Zone() != "" {
		return reserved
	}
	a = reachedAddr(a)
	if isISATAP(a) {
		return tunnelled
	}
	for _, r := range kindRanges {
		if slices.ContainsFunc(r.in, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return r.kind
		}
	}
	return reserved
}

// isISATAP reports whether a has 0:5efe or 200:5efe before its last four bytes,
// under any prefix. Those last bytes are an IPv4 address, to which a tunnel would
// lead.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return a.Is6() && b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// dialableAddrs looks a place up once and returns those of its addresses that may
// be dialed.
func (e *Egress) dialableAddrs(ctx context.Context, p place) ([]netip.AddrPort, error) {
	found := []netip.Addr{p.addr}
	if !p.addr.IsValid() {
		var err error
		if found, err = e.lookUpName(ctx, p.name); err != nil {
			return nil, &unreachableError{p, err}
		}
	}
	own, err := e.ownAddrs()
	if err != nil {
		return nil, &unreachableError{p, fmt.Errorf("list the addresses of this machine: %w", err)}
	}
	var good []netip.AddrPort
	var bad, entries []string
	for _, a := range found {
		k := e.classify(a, p.port, own)
		if k == public {
			good = append(good, netip.AddrPortFrom(a, p.port))
			continue
		}
		bad = append(bad, fmt.Sprintf("%s (%s)", a, k))
		if k == private {
			entries = append(entries, entryOf(reachedAddr(a).String(), p.port))
		}
	}
	if len(good) == 0 {
		return nil, deny(p, ReasonAddress, explainResolved(p, bad, entries))
	}
	return good, nil
}

// explainResolved says what a name resolves to. Only private addresses can be
// allowed, by an entry for each beside the name's.
func explainResolved(p place, bad, entries []string) string {
	const most = 4 // of a list that others chose
	text := "it is " + strings.Join(bad[:min(len(bad), most)], ", ")
	switch {
	case len(bad) == 0:
		text = "it has no address"
	case len(bad) > most:
		text += ", ..."
	}
	if len(entries) > 0 {
		text += "; " + allowAdvice(append([]string{entryOf(p.name, p.port)}, entries[:min(len(entries), most)]...)...)
	}
	return text
}

// classify returns the kind of an address, with what depends on this machine and
// its settings.
func (e *Egress) classify(a netip.Addr, port uint16, own []netip.Addr) addrKind {
	k := kindOf(a)
	if k != public && k != private {
		return k
	}
	reached := reachedAddr(a)
	if slices.Contains(own, reached) || slices.Contains(own, a) {
		return ours
	}
	if k == private && e.isOpened(reached, port) {
		return public
	}
	return k
}

// isOpened reports whether the settings allow a private address.
func (e *Egress) isOpened(a netip.Addr, port uint16) bool {
	if slices.ContainsFunc(e.Private, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return true
	}
	_, reason := e.Allow.findEntries(place{name: a.String(), addr: a, port: port})
	return reason == ""
}

func (e *Egress) lookUpName(ctx context.Context, name string) ([]netip.Addr, error) {
	if e.Resolve != nil {
		return e.Resolve(ctx, name)
	}
	// With a dot at the end, the search domains of this machine do not apply.
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		// A sandbox need not know which name server this machine asks.
		err = fmt.Errorf("look it up: %s", dns.Err)
	}
	return addrs, err
}

func (e *Egress) ownAddrs() ([]netip.Addr, error) {
	list := e.Interfaces
	if list == nil {
		list = net.InterfaceAddrs
	}
	addrs, err := list()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, addr.Unmap())
			}
		}
	}
	return out, nil
}
