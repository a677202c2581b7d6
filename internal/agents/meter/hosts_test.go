package meter

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestEntriesOfTheDefinitionAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		entry string
		want  Host
	}{
		"a name":                    {"registry.npmjs.org", Host{Name: "registry.npmjs.org"}},
		"a name with a port":        {"proxy.golang.org:8443", Host{Name: "proxy.golang.org", Ports: []uint16{8443}}},
		"names below a name":        {"*.example.org", Host{Name: "example.org", Below: true}},
		"names below, with a port":  {"*.example.org:80", Host{Name: "example.org", Below: true, Ports: []uint16{80}}},
		"capitals and a last dot":   {"Registry.NPMJS.org.", Host{Name: "registry.npmjs.org"}},
		"punycode":                  {"xn--bcher-kva.example", Host{Name: "xn--bcher-kva.example"}},
		"an underscore":             {"a_b.example.org", Host{Name: "a_b.example.org"}},
		"an IPv4 address":           {"93.184.216.34", Host{Name: "93.184.216.34"}},
		"a private address":         {"10.1.2.3:8443", Host{Name: "10.1.2.3", Ports: []uint16{8443}}},
		"an IPv6 address":           {"2606:2800:220:1::1", Host{Name: "2606:2800:220:1::1"}},
		"an IPv6 address in full":   {"2606:2800:0220:0001:0:0:0:1", Host{Name: "2606:2800:220:1::1"}},
		"an IPv6 address and port":  {"[2606:2800:220:1::1]:8443", Host{Name: "2606:2800:220:1::1", Ports: []uint16{8443}}},
		"digits that are no number": {"1.2.3.4a", Host{Name: "1.2.3.4a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseHosts([]string{c.entry})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Hosts{c.want}, got); diff != "" {
				t.Errorf("ParseHosts(%q) (-want +got)\n%s", c.entry, diff)
			}
		})
	}
}

func TestABadEntryIsRefusedWithItsFix(t *testing.T) {
	for name, c := range map[string]struct{ entry, why, fix string }{
		"empty":                     {"", "empty part", "registry.npmjs.org"},
		"a port without a host":     {":8443", "empty part", "write a name"},
		"a URL":                     {"https://example.org/x", "URL", "the host alone: example.org"},
		"a path":                    {"example.org/x", "URL", "the host alone: example.org"},
		"a path alone":              {"/x", "URL", "the host alone: registry.npmjs.org"},
		"not ASCII":                 {"bücher.example", "xn--", "write a name"},
		"a star inside":             {"a.*.example.org", "character", "only at the beginning"},
		"a star alone":              {"*", "character", "only at the beginning"},
		"everything below a domain": {"*.org", "top-level", "*.example.org"},
		"a short name":              {"nexus", "short name", "nexus.example.org"},
		"localhost":                 {"localhost:8080", "localhost", "remove"},
		"a name below localhost":    {"a.localhost", "localhost", "remove"},
		"a user":                    {"user@example.org", "user", "write a name"},
		"a port of zero":            {"example.org:0", "port", "write a name"},
		"a port with a sign":        {"example.org:+80", "port", "write a name"},
		"a port that is missing":    {"example.org:", "port", "write a name"},
		"a port that is too large":  {"example.org:65536", "port", "write a name"},
		"loopback":                  {"127.0.0.1", "loopback", "remove"},
		"loopback in IPv6":          {"::1", "loopback", "remove"},
		"metadata":                  {"169.254.169.254", "metadata", "remove"},
		"octal":                     {"0177.0.0.1", "another notation", "write a name"},
		"an integer":                {"2130706433", "another notation", "write a name"},
		"hexadecimal":               {"0x7f000001", "another notation", "write a name"},
		"three numbers":             {"127.0.1", "another notation", "write a name"},
		"IPv4 in IPv6":              {"::ffff:10.0.0.1", "IPv4 address written as IPv6", "write a name"},
		"a zone":                    {"fe80::1%eth0", "zone", "write a name"},
		"a space":                   {" example.org", "character", "write a name"},
		"names below an address":    {"*.10.0.0.1", "below an address", "10.0.0.1"},
		"two dots":                  {"a..example.org", "empty part", "write a name"},
		"a dash at an end":          {"-a.example.org", "dash", "write a name"},
		"a long part":               {strings.Repeat("a", 64) + ".org", "63", "write a name"},
		"a long name":               {strings.Repeat("a.", 127) + "org", "longer", "write a name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseHosts([]string{"good.example.org", c.entry})
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok {
				t.Fatalf("ParseHosts(%q) = %v, want a fault", c.entry, err)
			}
			if f.Exit != loop.ExitNotReady || !strings.Contains(f.Why, c.why) || !strings.Contains(f.Advice().String(), c.fix) {
				t.Errorf("ParseHosts(%q): exit %d, %q, fix %q; want %q, fix %q", c.entry, f.Exit, f.Why, f.Fix, c.why, c.fix)
			}
		})
	}
}

func TestOnlyListedPlacesAreFound(t *testing.T) {
	list := hosts(t, "example.org", "*.below.example.org", "port.example.org:8443", "port.example.org:9000", "10.0.0.1", "2606:2800::1")
	for name, c := range map[string]struct {
		authority string
		want      loop.Reason
	}{
		"the name":                       {"example.org:443", ""},
		"the other usual port":           {"example.org:80", ""},
		"the name, spelled otherwise":    {"EXAMPLE.org.:443", ""},
		"another port":                   {"example.org:8443", ReasonPort},
		"one of two ports":               {"port.example.org:9000", ""},
		"a usual port that is not it":    {"port.example.org:443", ReasonPort},
		"a name below an exact one":      {"a.example.org:443", ReasonHost},
		"one label below":                {"a.below.example.org:443", ""},
		"two labels below":               {"a.b.below.example.org:443", ""},
		"the name above":                 {"below.example.org:443", ReasonHost},
		"a name that ends alike":         {"notexample.org:443", ReasonHost},
		"a name below that ends alike":   {"xbelow.example.org:443", ReasonHost},
		"a name that begins alike":       {"example.org.evil.test:443", ReasonHost},
		"an address":                     {"10.0.0.1:443", ""},
		"another address":                {"10.0.0.2:443", ReasonHost},
		"an IPv6 address, spelled fully": {"[2606:2800:0:0:0:0:0:1]:443", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parsePlace(c.authority, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := list.findEntries(p); got != c.want {
				t.Errorf("find(%s) = %q, want %q", c.authority, got, c.want)
			}
		})
	}
}

func TestTheZeroHostMatchesNothing(t *testing.T) {
	for _, h := range []Host{{}, {Below: true}} {
		if _, got := (Hosts{h}).findEntries(place{port: 443}); got != ReasonHost {
			t.Errorf("%+v matches: %q", h, got)
		}
	}
}

func TestCallsAreMatchedOnPathsThatAllServersReadAlike(t *testing.T) {
	read := Hosts{{Name: "a.test", Calls: []Call{{Method: "GET", Path: "/pkg/"}, {Method: "POST", Path: "/search"}}}}
	for name, c := range map[string]struct {
		method, path string
		want         bool
	}{
		"below":                      {"GET", "/pkg/x", true},
		"the folder itself":          {"GET", "/pkg/", true},
		"another method":             {"POST", "/pkg/x", false},
		"a method in small letters":  {"get", "/pkg/x", false},
		"exact":                      {"POST", "/search", true},
		"below an exact path":        {"POST", "/search/x", false},
		"elsewhere":                  {"GET", "/gist", false},
		"up":                         {"GET", "/pkg/../gist", false},
		"up, encoded":                {"GET", "/pkg/%2e%2E/gist", false},
		"a slash, encoded":           {"GET", "/pkg/..%2fgist", false},
		"a backslash":                {"GET", `/pkg/..\gist`, false},
		"two slashes":                {"GET", "/pkg//gist", false},
		"a parameter of a path":      {"GET", "/pkg/..;/gist", false},
		"encoded twice":              {"GET", "/pkg/%252e%252e/gist", false},
		"a dot inside of a name":     {"GET", "/pkg/x..y", true},
		"a name of three dots":       {"GET", "/pkg/...", true},
		"the folder without a slash": {"GET", "/pkg", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read.allowCall(c.method, c.path); got != c.want {
				t.Errorf("allowCall(%s %s) = %t, want %t", c.method, c.path, got, c.want)
			}
		})
	}
	anywhere := Hosts{{Name: "a.test", Calls: []Call{{Method: "GET"}}}}
	if !anywhere.allowCall("GET", "/../x") || anywhere.allowCall("POST", "/x") {
		t.Error("a call without a path limits it, or not its method")
	}
	if !(Hosts{{Name: "a.test"}}).allowCall("POST", "/../x") {
		t.Error("a host without calls limits them")
	}
}

// TestAnEntryAllowsItsNameAndNoNeighbour holds for all names.
func TestAnEntryAllowsItsNameAndNoNeighbour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z][a-z0-9]{0,8}(\.[a-z][a-z0-9]{0,8}){1,3}`).
			Filter(func(s string) bool { return !strings.HasSuffix(s, "localhost") }).Draw(t, "name")
		other := rapid.StringMatching(`[a-z][a-z0-9]{0,8}`).Draw(t, "other")
		list, err := ParseHosts([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		below, err := ParseHosts([]string{"*." + name})
		if err != nil {
			t.Fatal(err)
		}
		for asked, want := range map[string][2]bool{
			name:                      {true, false},
			strings.ToUpper(name):     {true, false},
			name + ".":                {true, false},
			other + name:              {false, false},
			name + other:              {false, false},
			name + "." + other:        {false, false},
			other + "." + name:        {false, true},
			"x." + other + "." + name: {false, true},
		} {
			p, err := parsePlace(asked, portTLS)
			if err != nil {
				t.Fatal(err)
			}
			_, exact := list.findEntries(p)
			_, under := below.findEntries(p)
			if got := [2]bool{exact == "", under == ""}; got != want {
				t.Errorf("%q by %q and the names below: %v, want %v", asked, name, got, want)
			}
		}
	})
}

func FuzzName(f *testing.F) {
	for _, seed := range []string{
		"example.org", "EXAMPLE.org.", "127.0.0.1", "0x7f.1", "2130706433", "0177.1", "[::1]", "[::ffff:127.0.0.1]",
		"[fe80::1%25eth0]", "xn--bcher-kva.example", "bücher.example", "a@b", "a..b", "1.2.3.4.", "a.0x", "[", "]", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		name, addr, err := parseName(host)
		if err != nil {
			return
		}
		if addr.IsValid() {
			if addr.Is4In6() || addr.Zone() != "" || addr.String() != name {
				t.Errorf("nameOf(%q) = %q, %v", host, name, addr)
			}
			return
		}
		again, _, err := parseName(name)
		if err != nil || again != name {
			t.Errorf("nameOf(%q) = %q, of which it is %q, %v", host, name, again, err)
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || len(name) > maxName {
			t.Errorf("nameOf(%q) = %q", host, name)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			t.Errorf("nameOf(%q) takes an address for the name %q", host, name)
		}
		// inet_aton takes no host whose last part begins with something else
		// than a digit, and every part of an address does.
		last := name[strings.LastIndexByte(name, '.')+1:]
		if isNumeric(last) {
			t.Errorf("nameOf(%q) = %q ends with a number", host, name)
		}
	})
}
