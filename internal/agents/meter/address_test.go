package meter

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryAddressHasAKind(t *testing.T) {
	for text, want := range map[string]addrKind{
		"93.184.216.34":                public,
		"2606:2800:220:1::1":           public,
		"::ffff:93.184.216.34":         public,
		"64:ff9b::5db8:d822":           public, // 93.184.216.34
		"2606:2800:1:1:100:5efe:a00:1": public,
		"2606:2800:1:1:1:5efe:a00:1":   public,
		"2606:2800:1:1:201:5efe:a00:1": public,
		"2606:2800:1:1:300:5efe:a00:1": public,
		"2606:2800:1:1:0:5eff:a00:1":   public,
		"2606:2800:1:1:0:5dfe:a00:1":   public,
		"2606:2800:1:1:0:5ffe:a00:1":   public,
		"2606:2800:1:1:400:5efe:a00:1": public,
		"127.0.0.1":                    loopback,
		"127.255.0.9":                  loopback,
		"::1":                          loopback,
		"::ffff:127.0.0.1":             loopback,
		"64:ff9b::7f00:1":              loopback,
		"::127.0.0.1":                  reserved,
		"0.0.0.0":                      unspecific,
		"0.1.2.3":                      unspecific,
		"::":                           unspecific,
		"169.254.169.254":              metadata,
		"::ffff:169.254.169.254":       metadata,
		"64:ff9b::a9fe:a9fe":           metadata,
		"fd00:ec2::254":                metadata,
		"fd20:ce::254":                 metadata,
		"169.254.170.2":                metadata,
		"100.100.100.200":              metadata,
		"168.63.129.16":                metadata,
		"192.0.0.192":                  metadata,
		"169.254.1.1":                  linkLocal,
		"fe80::1":                      linkLocal,
		"fec0::1":                      linkLocal,
		"224.0.0.1":                    multicast,
		"ff02::1":                      multicast,
		"255.255.255.255":              reserved,
		"240.0.0.1":                    reserved,
		"192.0.0.1":                    reserved,
		"192.88.99.1":                  reserved,
		"203.0.113.1":                  reserved,
		"2001:db8::1":                  reserved,
		"64:ff9b:1::a00:1":             reserved,
		"100::1":                       reserved,
		"5f00::1":                      reserved,
		"4000::1":                      reserved,
		"2001:10::1":                   reserved,
		"10.0.0.1":                     private,
		"172.16.0.1":                   private,
		"172.31.255.255":               private,
		"172.32.0.1":                   public,
		"192.168.1.1":                  private,
		"100.64.0.1":                   private,
		"198.18.0.1":                   private,
		"fd12::1":                      private,
		"::ffff:10.0.0.1":              private,
		"64:ff9b::a00:1":               private,
		"2002:7f00:1::1":               tunnelled,
		"2002:a00:1::1":                tunnelled,
		"2001:0:4136:e378::1":          tunnelled,
		"2606:2800::5efe:7f00:1":       tunnelled,
		"2606:2800::200:5efe:a00:1":    tunnelled,
		"fe80::1%eth0":                 reserved,
		"2606:2800::1%eth0":            reserved,
		"2a00:1450:4001:80b::200e":     public,
		"2001:4860:4860::8888":         public,
		"2400:cb00:2048:1::6814:1234":  public,
	} {
		t.Run(text, func(t *testing.T) {
			if got := kindOf(netip.MustParseAddr(text)); got != want {
				t.Errorf("kindOf(%s) = %s, want %s", text, got, want)
			}
		})
	}
	if got := kindOf(netip.Addr{}); got != reserved {
		t.Errorf("no address is %s", got)
	}
}

// TestNoFormOfAnAddressIsMorePublicThanTheAddress holds for all addresses.
func TestNoFormOfAnAddressIsMorePublicThanTheAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
		four := netip.AddrFrom4([4]byte(b))
		want := kindOf(four)
		// The standard library and this list are two opinions.
		if want == public && (!four.IsGlobalUnicast() || four.IsPrivate()) {
			t.Fatalf("%s is public", four)
		}
		forms := map[string][]byte{
			"mapped": append(make([]byte, 10), 0xff, 0xff),
			"NAT64":  append([]byte{0, 0x64, 0xff, 0x9b}, make([]byte, 8)...),
		}
		for form, prefix := range forms {
			six := netip.AddrFrom16([16]byte(append(prefix, b...)))
			if got := kindOf(six); got != want {
				t.Errorf("%s is %s, %s as %s is %s", four, want, six, form, got)
			}
		}
		compatible := netip.AddrFrom16([16]byte(append(make([]byte, 12), b...)))
		sixToFour := netip.AddrFrom16([16]byte(append(append([]byte{0x20, 2}, b...), make([]byte, 10)...)))
		for _, six := range []netip.Addr{compatible, sixToFour} {
			if kindOf(six) == public {
				t.Errorf("%s, which holds %s, is public", six, four)
			}
		}
	})
}

func TestPrivateAddressesAreOpenWhereSomebodyOpenedThem(t *testing.T) {
	mine := netip.MustParseAddr("10.9.9.9")
	e := Egress{
		Allow:   hosts(t, "nexus.corp.test", "10.1.1.1", "192.168.7.7:8443"),
		Private: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("127.0.0.0/8")},
	}
	for name, c := range map[string]struct {
		addr string
		port uint16
		want addrKind
	}{
		"in an open range":                 {"10.9.0.1", 443, public},
		"mapped, in an open range":         {"::ffff:10.9.0.1", 443, public},
		"by NAT64, in an open range":       {"64:ff9b::a09:1", 443, public},
		"outside of it":                    {"10.8.0.1", 443, private},
		"listed":                           {"10.1.1.1", 443, public},
		"listed, another port":             {"10.1.1.1", 8443, private},
		"listed with the port":             {"192.168.7.7", 8443, public},
		"listed with another port":         {"192.168.7.7", 443, private},
		"metadata in an open range":        {"fd00:ec2::254", 443, metadata},
		"loopback, though somebody did it": {"127.0.0.1", 443, loopback},
		"this machine in an open range":    {"10.9.9.9", 443, ours},
		"this machine, mapped":             {"::ffff:10.9.9.9", 443, ours},
		"this machine, by NAT64":           {"64:ff9b::a09:909", 443, ours},
	} {
		t.Run(name, func(t *testing.T) {
			if got := e.classify(netip.MustParseAddr(c.addr), c.port, []netip.Addr{mine}); got != c.want {
				t.Errorf("judge(%s) = %s, want %s", c.addr, got, c.want)
			}
		})
	}
}

func TestThePublicAddressOfThisMachineIsNotReached(t *testing.T) {
	w := newWorld()
	w.put("allowed.test", "93.184.216.34", 80, "")
	r := start(t, w, []string{"allowed.test"}, func(e *Egress) {
		e.Interfaces = func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.ParseIP("93.184.216.34"), Mask: net.CIDRMask(24, 32)}}, nil
		}
	})
	wantStatus(t, r.say(get), "403", ReasonAddress)
	if d := r.wantDenied(ReasonAddress); !strings.Contains(d.Detail, "this machine") {
		t.Errorf("detail = %q", d.Detail)
	}
	if _, dialled := w.traces(); len(dialled) > 0 {
		t.Errorf("dialled %v", dialled)
	}
}

func TestADenialNamesThePrivateAddressesThatCanBeOpenedAndNoOthers(t *testing.T) {
	w := newWorld()
	for _, a := range []string{"127.0.0.1", "10.0.0.1", "::ffff:10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"} {
		w.names["allowed.test"] = append(w.names["allowed.test"], netip.MustParseAddr(a))
	}
	w.names["empty.test"] = []netip.Addr{}
	r := start(t, w, []string{"allowed.test", "empty.test"})
	wantStatus(t, r.say(get), "403", ReasonAddress)
	want := "it is 127.0.0.1 (loopback), 10.0.0.1 (private), ::ffff:10.0.0.2 (private), 10.0.0.3 (private), ...; " +
		"to allow it, write in the loop's definition: network: [allowed.test, 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4]"
	if d := r.wantDenied(ReasonAddress); d.Detail != want {
		t.Errorf("detail = %q\nwant     %q", d.Detail, want)
	}
	r.say(strings.ReplaceAll(get, "allowed.test", "empty.test"))
	if d := r.told()[1]; d.Detail != "it has no address" {
		t.Errorf("detail = %q for a name without an address", d.Detail)
	}
}

func TestNothingIsDialledWhenTheMachineDoesNotKnowItsAddresses(t *testing.T) {
	w := newWorld()
	w.put("allowed.test", "93.184.216.34", 80, "")
	r := start(t, w, []string{"allowed.test"}, func(e *Egress) {
		e.Interfaces = func() ([]net.Addr, error) { return nil, errors.New("no netlink") }
	})
	if got := r.say(get); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "no netlink") {
		t.Errorf("answer = %q", got)
	}
	if _, dialled := w.traces(); len(dialled) > 0 {
		t.Errorf("dialled %v", dialled)
	}
}

func TestAddressesOfInterfacesAreThoseOfThisMachine(t *testing.T) {
	own, err := (&Egress{}).ownAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var found bool
	for _, a := range own {
		found = found || a == netip.MustParseAddr("127.0.0.1")
	}
	if !found {
		t.Errorf("own = %v, without loopback", own)
	}
}

// A name server that knows no name answers as it was asked, with an error.
func TestANameIsLookedUpAsItIsAndTheNameServerIsNotSaid(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	defer func(before *net.Resolver) { net.DefaultResolver = before }(net.DefaultResolver)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			message := make([]byte, 2)
			if _, err := io.ReadFull(theirs, message); err != nil {
				return
			}
			message = append(message, make([]byte, binary.BigEndian.Uint16(message))...)
			if _, err := io.ReadFull(theirs, message[2:]); err != nil {
				return
			}
			var labels []string
			for at := 14; message[at] != 0; at += int(message[at]) + 1 {
				labels = append(labels, string(message[at+1:][:message[at]]))
			}
			name := strings.Join(labels, ".") + "."
			mu.Lock()
			asked = append(asked, name)
			mu.Unlock()
			message[4], message[5] = 0x81, 0x83 // an answer: no such name
			if name == "known.test." {
				message[5] = 0x80
				if at := 14 + len(name) + 2; message[at] == 1 { // an address of IPv4: the record is for the name that was asked
					binary.BigEndian.PutUint16(message[8:], 1)
					record := []byte{0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 93, 184, 216, 34}
					message = append(message[:at+3:at+3], record...)
					binary.BigEndian.PutUint16(message[10:], 0) // nothing is additional
					binary.BigEndian.PutUint16(message[12:], 0)
					binary.BigEndian.PutUint16(message, uint16(len(message)-2))
				}
			}
			_, _ = theirs.Write(message)
		}()
		return ours, nil
	}}
	w := newWorld()
	plainServer(t, w, hello)
	r := start(t, w, []string{"allowed.test", "known.test"}, func(e *Egress) { e.Resolve = nil })
	if got := r.say(get); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "allowed.test:80: look it up: no such host\n") {
		t.Errorf("answer = %q", got)
	}
	if len(asked) == 0 || slices.ContainsFunc(asked, func(name string) bool { return name != "allowed.test." }) {
		t.Errorf("asked for %q, want the name alone", asked)
	}
	if got := r.say("GET http://known.test/ HTTP/1.1\r\nHost: known.test\r\n\r\n"); !strings.Contains(got, "hello") {
		t.Errorf("answer = %q", got)
	}
}
