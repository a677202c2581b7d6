package meter

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func parse(text string) (head, error) {
	return readHead(bufio.NewReader(strings.NewReader(text)), 64<<10)
}

// ambiguous are heads that two programs can read in two ways. Many of them
// pass net/http, which is why there is a reader of our own.
var ambiguous = map[string]struct {
	text   string
	passes bool // in net/http
}{
	"a length and chunks":             {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", true},
	"two lengths":                     {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", false},
	"the same length twice":           {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", true},
	"two lengths in one field":        {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5, 5\r\n\r\n", false},
	"a length with a sign":            {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: +5\r\n\r\n", false},
	"a negative length":               {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: -5\r\n\r\n", false},
	"an endless length":               {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9999999999999999999999\r\n\r\n", false},
	"an empty length":                 {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length:\r\n\r\n", false},
	"chunks twice":                    {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", false},
	"chunks and another coding":       {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", false},
	"a coding that is none":           {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n", false},
	"chunks in HTTP/1.0":              {"POST http://a.test/ HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n", true},
	"a line feed alone":               {"GET http://a.test/ HTTP/1.1\nHost: a.test\n\n", true},
	"a line feed alone in the fields": {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\nX: y\r\n\r\n", true},
	"a line feed alone at the end":    {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\n", true},
	"a carriage return inside":        {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\rContent-Length: 5\r\n\r\n", false},
	"a folded field":                  {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\r\n b\r\n\r\n", true},
	"a folded first field":            {"GET http://a.test/ HTTP/1.1\r\n Host: a.test\r\n\r\n", false},
	"a space before the colon":        {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length : 5\r\n\r\n", true},
	"a field without a colon":         {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX\r\n\r\n", false},
	"a field without a name":          {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n: x\r\n\r\n", false},
	"a name that is not ASCII":        {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX\xc3\xa4: y\r\n\r\n", false},
	"a control character in a value":  {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\x01b\r\n\r\n", false},
	"NUL in a value":                  {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\x00b\r\n\r\n", false},
	"two hosts":                       {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", false},
	"two spaces in the first line":    {"GET  http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", false},
	"a tab in the first line":         {"GET http://a.test/\tx HTTP/1.1\r\nHost: a.test\r\n\r\n", false},
	"a target that is not ASCII":      {"GET http://a.test/\xc3\xa4 HTTP/1.1\r\nHost: a.test\r\n\r\n", true},
	"an empty line first":             {"\r\nGET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", false},
	"no version":                      {"GET http://a.test/\r\nHost: a.test\r\n\r\n", false},
	"HTTP/2":                          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", true},
	"a version in small letters":      {"GET http://a.test/ http/1.1\r\nHost: a.test\r\n\r\n", false},
	"another version of HTTP/1":       {"GET http://a.test/ HTTP/1.2\r\nHost: a.test\r\n\r\n", true},
	"a method that is none":           {"GE(T http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", false},
}

func TestARequestThatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	for name, c := range ambiguous {
		t.Run(name, func(t *testing.T) {
			if h, err := parse(c.text); err == nil {
				t.Errorf("read as %+v", h)
			}
			_, err := http.ReadRequest(bufio.NewReader(strings.NewReader(c.text)))
			if passes := err == nil; passes != c.passes {
				t.Errorf("net/http passes it: %t (%v), want %t", passes, err, c.passes)
			}
		})
	}
}

func TestATabInAValueIsPassedOn(t *testing.T) {
	h, err := parse("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\tb\r\n\r\n")
	if got := h.fieldValues("X"); err != nil || len(got) != 1 || got[0] != "a\tb" {
		t.Errorf("X = %q, %v", got, err)
	}
}

func TestAHeadHasALargestSize(t *testing.T) {
	line := "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"
	many := line + strings.Repeat("X: y\r\n", maxFields) + "\r\n"
	large := line + "X: " + strings.Repeat("y", 64<<10) + "\r\n\r\n"
	endless := strings.Repeat("y", 100<<10)
	for name, text := range map[string]string{"many fields": many, "a large field": large, "a line without an end": endless} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(text); err == nil || err.Error() != errHeadSize.Error() {
				t.Errorf("err = %v, want %v", err, errHeadSize)
			}
		})
	}
	full := line + "X: " + strings.Repeat("y", 64<<10-len(line)-len("X: \r\n\r\n")) + "\r\n\r\n"
	if _, err := parse(full); err != nil {
		t.Errorf("a head of all that may be: %v", err)
	}
}

func TestFieldsForTheProxyGoNoFurther(t *testing.T) {
	h, err := parse("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Private\r\nx-private: 1\r\nKeep-Alive: 5\r\n" +
		"Proxy-Authorization: Basic eDp5\r\nproxy-connection: keep-alive\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n" +
		"Accept: */*\r\nCookie: a\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range h.endToEnd() {
		names = append(names, f.name)
	}
	if got, want := strings.Join(names, " "), "Accept Cookie"; got != want {
		t.Errorf("what goes on: %s, want %s", got, want)
	}
}

func TestATargetNamesOneHost(t *testing.T) {
	for first, want := range map[string]string{
		"GET http://a.test HTTP/1.1": "/", "GET http://a.test?x=/y HTTP/1.1": "/?x=/y", "GET http://a.test/x?y HTTP/1.1": "/x?y", "CONNECT a.test:443 HTTP/1.1": "",
	} {
		h, err := parse(first + "\r\nHost: a.test\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseTarget(&h); err != nil || got.path != want || got.name != "a.test" {
			t.Errorf("%s asks %s for %q, %v, want %q", first, got.name, got.path, err, want)
		}
	}
	for name, c := range map[string]struct{ first, host, want string }{
		"another Host":                {"GET http://a.test/ HTTP/1.1", "b.test", "bad_request"},
		"another port in Host":        {"GET http://a.test/ HTTP/1.1", "a.test:8080", "bad_request"},
		"another Host for a tunnel":   {"CONNECT a.test:443 HTTP/1.1", "b.test:443", "bad_request"},
		"no Host":                     {"GET http://a.test/ HTTP/1.1", "", "bad_request"},
		"a user":                      {"GET http://me:pw@a.test/ HTTP/1.1", "a.test", "host_spelling"},
		"a user for a tunnel":         {"CONNECT a.test@b.test:443 HTTP/1.1", "b.test:443", "host_spelling"},
		"a tunnel without a port":     {"CONNECT a.test HTTP/1.1", "a.test", "host_spelling"},
		"an integer":                  {"CONNECT 2130706433:443 HTTP/1.1", "2130706433:443", "host_spelling"},
		"octal":                       {"CONNECT 0177.0.0.1:443 HTTP/1.1", "0177.0.0.1:443", "host_spelling"},
		"hexadecimal":                 {"CONNECT 0x7f.0.0.1:443 HTTP/1.1", "0x7f.0.0.1:443", "host_spelling"},
		"IPv4 in IPv6":                {"CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1", "[::ffff:127.0.0.1]:443", "host_spelling"},
		"a zone":                      {"CONNECT [fe80::1%25eth0]:443 HTTP/1.1", "[fe80::1%25eth0]:443", "host_spelling"},
		"encoded":                     {"CONNECT %61.test:443 HTTP/1.1", "a.test:443", "host_spelling"},
		"https without a tunnel":      {"GET https://a.test/ HTTP/1.1", "a.test", "bad_request"},
		"another scheme":              {"GET ftp://a.test/ HTTP/1.1", "a.test", "bad_request"},
		"a path alone":                {"GET / HTTP/1.1", "a.test", "bad_request"},
		"a fragment":                  {"GET http://a.test/#x HTTP/1.1", "a.test", "bad_request"},
		"a backslash in the host":     {`GET http://a.test\@b.test/ HTTP/1.1`, "a.test", "host_spelling"},
		"a tunnel to port 80":         {"CONNECT a.test:80 HTTP/1.1", "a.test:80", "plain_tunnel"},
		"a URL for a tunnel":          {"CONNECT http://a.test:443 HTTP/1.1", "a.test:443", "host_spelling"},
		"a host that is empty":        {"GET http:/// HTTP/1.1", "a.test", "host_spelling"},
		"a port that is too large":    {"CONNECT a.test:65979 HTTP/1.1", "a.test:65979", "host_spelling"},
		"a good request":              {"GET http://a.test/x?y HTTP/1.1", "a.test", ""},
		"a good request with port":    {"GET HTTP://A.test:80/x?y HTTP/1.1", "a.test", ""},
		"a good tunnel":               {"CONNECT a.test:443 HTTP/1.1", "a.test:443", ""},
		"a good tunnel, Host shorter": {"CONNECT a.test:443 HTTP/1.1", "a.test", ""},
		"an old tunnel without Host":  {"CONNECT a.test:443 HTTP/1.0", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.first + "\r\n"
			if c.host != "" {
				text += "Host: " + c.host + "\r\n"
			}
			h, err := parse(text + "\r\n")
			if err != nil {
				t.Fatal(err)
			}
			_, err = parseTarget(&h)
			d, _ := denialIn(err)
			if string(d.Reason) != c.want || err != nil && c.want == "" {
				t.Errorf("denied: %v, want %q", err, c.want)
			}
		})
	}
}

func TestATunnelHasNoBody(t *testing.T) {
	for _, framing := range []string{"Content-Length: 5", "Transfer-Encoding: chunked"} {
		h, err := parse("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n" + framing + "\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseTarget(&h); err == nil {
			t.Errorf("a CONNECT with %s is taken", framing)
		}
	}
}

// FuzzHead holds our reader against the one of net/http, twice: whatever both
// take they take alike, and what is written for the host means the same to it.
func FuzzHead(f *testing.F) {
	for _, c := range ambiguous {
		f.Add([]byte(c.text))
	}
	f.Add([]byte("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"))
	f.Add([]byte("POST http://a.test:8080/x?y HTTP/1.1\r\nHost: a.test:8080\r\nContent-Length: 3\r\nX-Y:\t z \r\n\r\nabc"))
	f.Add([]byte("POST http://[2606:2800::1]/ HTTP/1.1\r\nHost: [2606:2800::1]\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := parse(string(text))
		if err != nil {
			return
		}
		theirs, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(text))))
		if err == nil {
			sameAs(t, h, theirs)
		}
		to, err := parseTarget(&h)
		if err != nil || to.isTunnel {
			return
		}
		var sent strings.Builder
		writeHead(&sent, request{head: &h, target: to})
		again, err := parse("X" + strings.Replace(sent.String(), " "+to.path+" ", " http://"+to.authority()+to.path+" ", 1))
		if err != nil {
			t.Fatalf("what was sent, %q, is not read: %v", sent.String(), err)
		}
		if again.method != "X"+h.method || again.length != h.length || again.chunked != h.chunked {
			t.Errorf("%+v was sent as %+v", h, again)
		}
		for _, field := range again.fields {
			if isHopByHop(field.name) && !strings.Contains("Connection Host Content-Length Transfer-Encoding", field.name) {
				t.Errorf("%s was sent on", field.name)
			}
		}
	})
}

func sameAs(t *testing.T, h head, theirs *http.Request) {
	t.Helper()
	length := h.length
	if h.chunked {
		length = -1
	}
	if h.method != theirs.Method || h.target != theirs.RequestURI || length != theirs.ContentLength {
		t.Errorf("%s %s (%s) is %s %s (%s) to net/http", h.method, h.target, strconv.FormatInt(length, 10),
			theirs.Method, theirs.RequestURI, strconv.FormatInt(theirs.ContentLength, 10))
	}
}

func TestTheLengthOfABodyIsThatOfItsHead(t *testing.T) {
	for name, c := range map[string]struct {
		fields  string
		length  int64
		chunked bool
		wrong   bool
	}{
		"none":                    {"", 0, false, false},
		"a number":                {"Content-Length: 12\r\n", 12, false, false},
		"chunks":                  {"Transfer-Encoding: chunked\r\n", 0, true, false},
		"chunks in capitals":      {"Transfer-Encoding: Chunked\r\n", 0, true, false},
		"another coding":          {"Transfer-Encoding: gzip\r\n", 0, false, true},
		"an empty coding":         {"Transfer-Encoding: \r\n", 0, false, true},
		"both":                    {"Content-Length: 12\r\nTransfer-Encoding: chunked\r\n", 0, false, true},
		"two numbers":             {"Content-Length: 12\r\nContent-Length: 12\r\n", 0, false, true},
		"a number that is no one": {"Content-Length: 0x12\r\n", 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := parse("POST http://a/ HTTP/1.1\r\nHost: a\r\n" + c.fields + "\r\n")
			if (err != nil) != c.wrong {
				t.Fatalf("error %v, want one: %v", err, c.wrong)
			}
			if !c.wrong && (h.length != c.length || h.chunked != c.chunked) {
				t.Errorf("length %d, chunked %v", h.length, h.chunked)
			}
		})
	}
}

func TestAHeadOfAClientThatHasGoneIsNoHead(t *testing.T) {
	for _, text := range []string{"", "GET http://a/ HT", "GET http://a/ HTTP/1.1\r\nHost: a\r\n", "GET http://a/ HTTP/1.1\r\nHo"} {
		if _, err := parse(text); !errors.Is(err, io.EOF) {
			t.Errorf("%q: %v, want the end of the input", text, err)
		}
		left := 1 << 10
		if _, err := readLine(bufio.NewReader(strings.NewReader("no end")), &left); !errors.Is(err, io.EOF) {
			t.Errorf("a line without an end: %v", err)
		}
	}
}
