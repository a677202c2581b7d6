package httpguard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/httpguard"
)

// reached answers requests that no surface refuses.
var reached = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") })

func TestOnlyProgramsAndPagesOfTheSameAddressAreLetThrough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, host, path string
		header             map[string]string
		o                  httpguard.Options
		want               int
	}{
		"a program":                     {host: "127.0.0.1:8080", path: "/x", want: 200},
		"a program by IPv6":             {host: "[::1]:8080", path: "/x", want: 200},
		"a program, no port":            {host: "[::1]", path: "/x", want: 200},
		"localhost":                     {host: "localhost", path: "/", want: 200},
		"its own name":                  {host: "pawl", path: "/x", o: httpguard.Options{Names: []string{"pawl"}}, want: 200},
		"another's own name":            {host: "pawl", path: "/x", want: 403},
		"a name that leads here":        {host: "evil.example", path: "/x", want: 403},
		"one that ends like ours":       {host: "localhost.evil.example:80", path: "/x", want: 403},
		"an address of the network":     {host: "192.168.1.5", path: "/x", want: 403},
		"no name":                       {host: "", path: "/x", want: 403},
		"a proxy's name, where it may":  {host: "hooks.example", path: "/x", o: httpguard.Options{AnyName: true}, want: 200},
		"another origin":                {method: "POST", host: "localhost", path: "/x", header: map[string]string{"Origin": "http://evil.example"}, want: 403},
		"another port":                  {method: "POST", host: "localhost:1", path: "/x", header: map[string]string{"Origin": "http://localhost:2"}, want: 403},
		"a frame without an origin":     {method: "POST", host: "localhost", path: "/x", header: map[string]string{"Origin": "null"}, want: 403},
		"another origin that reads":     {method: "GET", host: "localhost", path: "/x", header: map[string]string{"Origin": "http://evil.example"}, want: 403},
		"another site's image":          {method: "GET", host: "localhost", path: "/x", header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: 403},
		"a neighbour of the same site":  {method: "HEAD", host: "localhost", path: "/x", header: map[string]string{"Sec-Fetch-Site": "same-site"}, want: 403},
		"a preflight":                   {method: "OPTIONS", host: "localhost", path: "/x", header: map[string]string{"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}, want: 403},
		"through any name, still no":    {method: "POST", host: "hooks.example", path: "/x", o: httpguard.Options{AnyName: true}, header: map[string]string{"Origin": "http://evil.example"}, want: 403},
		"a page of the same address":    {method: "POST", host: "localhost:1", path: "/x", header: map[string]string{"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-origin"}, want: 200},
		"dots":                          {host: "localhost", path: "/a/../../etc/passwd", want: 404},
		"coded dots":                    {host: "localhost", path: "/%2e%2e/%2e%2e/etc/passwd", want: 404},
		"coded slashes":                 {host: "localhost", path: "/a%2f..%2fb", want: 404},
		"empty parts":                   {host: "localhost", path: "//etc//passwd", want: 404},
		"a slash at the end":            {host: "localhost", path: "/x/", want: 404},
		"NUL":                           {host: "localhost", path: "/a%00b", want: 404},
		"a line end":                    {host: "localhost", path: "/a%0d%0ab", want: 404},
		"backslashes are only a letter": {host: "localhost", path: `/a\..\b`, want: 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if c.method != "" {
			r.Method = c.method
		}
		var err error
		if r.URL, err = url.Parse("http://x" + c.path); err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		httpguard.Handler(reached, c.o).ServeHTTP(w, r)
		if w.Code != c.want || (w.Body.String() == "reached") != (c.want == http.StatusOK) {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
		for k, v := range map[string]string{"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer", "Access-Control-Allow-Origin": ""} {
			if got := w.Header().Get(k); got != v {
				t.Errorf("%s: the header %s is %q, want %q", name, k, got, v)
			}
		}
	}
}

func TestASurfaceSaysARefusalInItsOwnForm(t *testing.T) {
	t.Parallel()
	var said *loop.Fault
	h := httpguard.Handler(reached, httpguard.Options{Names: []string{"pawl"}, Refuse: func(w http.ResponseWriter, f *loop.Fault) {
		said = f
		w.WriteHeader(http.StatusTeapot)
	}})
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://evil.example/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusTeapot || said.Exit != loop.ExitRefused || !strings.Contains(said.What, "evil.example") || said.Fix != "use the name pawl or localhost" {
		t.Errorf("%d %+v", w.Code, said)
	}
}
