package meter

import (
	"context"
	"io"
	"net/http"
	"testing"
)

// BenchmarkTransfer moves 64 MiB over TLS, directly and through the proxy.
func BenchmarkTransfer(b *testing.B) {
	const size = 64 << 20
	w := newWorld()
	roots := tlsServer(b, w, func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(rw, endless{}, size)
	})
	for name, c := range clients(b, w) {
		b.Run(name, func(b *testing.B) {
			c.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
			b.SetBytes(size)
			for b.Loop() {
				take(b, c, "https://example.com/")
			}
		})
	}
}

// BenchmarkRequest makes a new connection for each of many small requests.
func BenchmarkRequest(b *testing.B) {
	w := newWorld()
	roots := tlsServer(b, w, hello)
	for name, c := range clients(b, w) {
		b.Run(name, func(b *testing.B) {
			tr := c.Transport.(*http.Transport)
			tr.TLSClientConfig.RootCAs, tr.DisableKeepAlives = roots, true
			for b.Loop() {
				take(b, c, "https://example.com/")
			}
		})
	}
}

func take(b *testing.B, c *http.Client, url string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
}

// clients are one that dials the server itself and one that goes through a
// proxy without tight caps.
func clients(b *testing.B, w *world) map[string]*http.Client {
	b.Helper()
	const plenty = 1 << 60
	e := &Egress{
		Allow: hosts(b, "example.com"), Resolve: w.Resolve, Dial: w.Dial,
		Limits: Limits{Received: plenty, TotalReceived: plenty, Sent: plenty, TotalSent: plenty},
	}
	l := listen(b)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, l) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	direct := clientOf(b, "", nil)
	tr := direct.Transport.(*http.Transport)
	tr.Proxy = nil
	for _, server := range w.servers {
		tr.DialContext = dialTo(server)
	}
	return map[string]*http.Client{"direct": direct, "proxy": clientOf(b, l.Addr().String(), nil)}
}
