package meter

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAttack080AnAllowedHostTakesOnlyTheRequestsThatAreListed(t *testing.T) {
	w := newWorld()
	var served atomic.Int64
	plainServer(t, w, func(rw http.ResponseWriter, req *http.Request) {
		served.Add(1)
		hello(rw, req)
	})
	r := start(t, w, []string{"allowed.test"}, func(e *Egress) {
		e.Allow[0].Calls = []Call{{Method: "GET", Path: "/packages/"}, {Method: "HEAD"}}
	})
	secret := strings.NewReader("SECRET=1")
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
	}{
		"a gist is posted":           {http.MethodPost, "/gists", secret},
		"a package is posted":        {http.MethodPost, "/packages/x", secret},
		"a package is put":           {http.MethodPut, "/packages/x", secret},
		"another path is read":       {http.MethodGet, "/gists?SECRET=1", nil},
		"a path that goes up":        {http.MethodGet, "/packages/../gists?SECRET=1", nil},
		"a path that goes up hidden": {http.MethodGet, "/packages/%2e%2e/gists?SECRET=1", nil},
		"a method of one's own":      {"SECRET", "/packages/x", nil},
		"a method that is no other":  {"get", "/packages/x", nil},
	} {
		resp, err := fetch(t, r.client(nil), c.method, "http://allowed.test"+c.path, c.body)
		if got := body(t, resp, err); resp.StatusCode != http.StatusForbidden || !strings.Contains(got, string(ReasonCall)) || !strings.Contains(got, "for other requests only") {
			t.Errorf("%s: %d %q", name, resp.StatusCode, got)
		}
	}
	if n := served.Load(); n > 0 {
		t.Errorf("the host saw %d requests", n)
	}
	if asked, _ := w.traces(); len(asked) > 0 {
		t.Errorf("looked up %v", asked)
	}
	resp, err := fetch(t, r.client(nil), http.MethodGet, "http://allowed.test/packages/x", nil)
	if got := body(t, resp, err); got != "hello" {
		t.Errorf("a listed request: %q", got)
	}
}

func TestAttack080ASecondRequestIsNotHiddenInTheFirst(t *testing.T) {
	w := newWorld()
	paths := make(chan string, 10)
	plainServer(t, w, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		paths <- req.URL.Path
	})
	r := start(t, w, []string{"allowed.test"}, func(e *Egress) { e.Allow[0].Calls = []Call{{Path: "/ok"}} })
	inner := "POST /gists HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 0\r\n\r\n"
	outer := "POST http://allowed.test/ok HTTP/1.1\r\nHost: allowed.test\r\n"
	for name, text := range map[string]string{
		"behind it":                  outer + "Content-Length: 0\r\n\r\n" + inner,
		"behind chunks":              outer + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"in a trailer":               outer + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + inner,
		"by a length that is hidden": outer + "Connection: content-length\r\nContent-Length: 0\r\n\r\n" + inner,
		"by two lengths":             outer + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"by a line feed alone":       outer + "X: y\nContent-Length: 0\r\n\r\n" + inner,
		"by an upgrade":              outer + "Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n" + inner,
	} {
		if got := r.say(text); strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: answer %q", name, got)
		}
	}
	for len(paths) > 0 {
		if p := <-paths; p != "/ok" {
			t.Errorf("the host saw %s", p)
		}
	}
}

func TestAttack082AnAllowedNameThatLeadsInsideIsDenied(t *testing.T) {
	for name, addr := range map[string]string{
		"loopback":            "127.0.0.1",
		"loopback, IPv6":      "::1",
		"metadata":            "169.254.169.254",
		"metadata, IPv6":      "fd00:ec2::254",
		"metadata, mapped":    "::ffff:169.254.169.254",
		"metadata, NAT64":     "64:ff9b::a9fe:a9fe",
		"metadata, 6to4":      "2002:a9fe:a9fe::1",
		"loopback, Teredo":    "2001:0:7f00:1::1",
		"unspecified":         "0.0.0.0",
		"unspecified, IPv6":   "::",
		"link-local":          "fe80::1",
		"multicast":           "239.255.255.250",
		"private":             "10.0.0.1",
		"private, mapped":     "::ffff:192.168.0.1",
		"private, IPv6":       "fd12:3456::1",
		"shared":              "100.64.0.1",
		"broadcast":           "255.255.255.255",
		"loopback, by kernel": "127.1.2.3",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			inside := listen(t)
			t.Cleanup(func() { _ = inside.Close() })
			for _, port := range []uint16{80, 443} {
				w.put("rebound.test", addr, port, inside.Addr().String())
			}
			r := start(t, w, []string{"rebound.test"})
			wantStatus(t, r.say("GET http://rebound.test/ HTTP/1.1\r\nHost: rebound.test\r\n\r\n"), "403", ReasonAddress)
			wantStatus(t, r.say("CONNECT rebound.test:443 HTTP/1.1\r\nHost: rebound.test:443\r\n\r\n"), "403", ReasonAddress)
			if _, dialled := w.traces(); len(dialled) > 0 {
				t.Errorf("dialled %v", dialled)
			}
			if d := r.denied()[0]; !strings.Contains(d.Detail, addr) {
				t.Errorf("detail = %q, without %s", d.Detail, addr)
			}
		})
	}
}

// TestAttack082ANameIsLookedUpOnce answers a second look-up with another
// address, as somebody does whose first answer is for the check.
func TestAttack082ANameIsLookedUpOnce(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	var lookups atomic.Int64
	r := start(t, w, []string{"allowed.test"}, func(e *Egress) {
		e.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			if lookups.Add(1) == 1 {
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	if got := r.say(get); !strings.HasSuffix(got, "hello") {
		t.Errorf("answer = %q", got)
	}
	if _, dialled := w.traces(); lookups.Load() != 1 || fmt.Sprint(dialled) != "[93.184.216.34:80]" {
		t.Errorf("%d look-ups, dialled %v", lookups.Load(), dialled)
	}
	wantStatus(t, r.say(get), "403", ReasonAddress)
}

// TestAttack082TheRealDialerIsGuardedToo asks for addresses of this machine
// without a look-up or a dialer of the test's own.
func TestAttack082TheRealDialerIsGuardedToo(t *testing.T) {
	inside := listen(t)
	t.Cleanup(func() { _ = inside.Close() })
	at := inside.Addr().String()
	p := placeFor(t, at)
	r := start(t, newWorld(), nil, func(e *Egress) {
		// No entry of a definition can say this; a caller can.
		e.Allow, e.Resolve, e.Dial = Hosts{{Name: p.name, Ports: []uint16{p.port}}}, nil, nil
	})
	wantStatus(t, r.say("CONNECT "+at+" HTTP/1.1\r\nHost: "+at+"\r\n\r\n"), "403", ReasonAddress)
	wantStatus(t, r.say("GET http://"+at+"/ HTTP/1.1\r\nHost: "+at+"\r\n\r\n"), "403", ReasonAddress)
}

func TestAttack083AnotherNameInTLSClosesTheTunnel(t *testing.T) {
	for name, c := range map[string]struct {
		config *tls.Config
		say    string
	}{
		"another host":        {config: config("evil.test")},
		"a name below":        {config: config("x.example.com")},
		"no name":             {config: config("")},
		"a name that hides":   {config: hidden(t)},
		"no TLS":              {say: "POST / HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		"another TLS message": {say: "\x17\x03\x03\x00\x06SECRET"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			l := listen(t)
			w.put("example.com", "93.184.216.35", 443, l.Addr().String())
			got := make(chan string, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					got <- ""
					return
				}
				defer conn.Close()
				b, _ := io.ReadAll(conn)
				got <- string(b)
			}()
			t.Cleanup(func() { _ = l.Close() })
			r := start(t, w, []string{"example.com"})
			conn := r.tunnel("example.com:443")
			reason := ReasonServerName
			if c.config != nil {
				err := tls.Client(conn, c.config).HandshakeContext(t.Context())
				if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
					t.Errorf("the client says %v", err)
				}
				_ = conn.Close()
			} else {
				reason = ReasonNoTLS
				if _, err := io.WriteString(conn, c.say); err != nil {
					t.Fatal(err)
				}
				if answer := all(t, conn); answer != "" {
					t.Errorf("the client got %q", answer)
				}
			}
			if d := r.wantDenied(reason); d.Host != "example.com" || d.Port != 443 {
				t.Errorf("told %+v", d)
			}
			if b := <-got; b != "" {
				t.Errorf("the host got %q", b)
			}
		})
	}
}
