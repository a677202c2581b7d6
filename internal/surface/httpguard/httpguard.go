// Package httpguard is what pawl's surfaces over HTTP have in common: requests that each of them
// refuses, the headers of each answer, and the bounds of connections.
//
// It does not ask who a caller is: users, tokens and signatures are checked by the surfaces.
package httpguard

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The bounds of a request and its answer.
const (
	bodyTime = 10 * time.Second // until a body has arrived
	patience = 10 * time.Second // if Options do not say it
	piece    = 64 << 10         // bytes that are sent at once
)

// Options are how a surface differs from the others. The zero Options are those of one that is
// asked by programs on this machine.
type Options struct {
	// Names are names by which the surface is asked, beside localhost and loopback addresses.
	Names []string
	// AnyName is for a surface that proxies lead to and that checks a signature of each request.
	AnyName bool
	// Patience is for how long a client may not read what it is sent before its connection is
	// closed; 0: 10 s.
	Patience time.Duration
	// Refuse answers a request that is refused: with 403, or 404 if the fault is that nothing was
	// found. Nil answers with text.
	Refuse func(w http.ResponseWriter, f *loop.Fault)
}

// Handler passes on the requests to next that no surface refuses.
func Handler(next http.Handler, o Options) http.Handler {
	o.Patience = cmp.Or(o.Patience, patience)
	if o.Refuse == nil {
		o.Refuse = refuse
	}
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &patientWriter{w, http.NewResponseController(w), o.Patience}
		defer out.extend() // The rest of the answer is sent after this.
		setHeaders(w.Header())
		if f := o.fault(r, crossOrigin); f != nil {
			o.Refuse(out, f)
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			// The server takes the deadline away when the body has arrived. A recorder of tests has none.
			_ = out.control.SetReadDeadline(clock.System{}.Now().Add(bodyTime))
		}
		next.ServeHTTP(out, r)
	})
}

// setHeaders keeps an answer out of pages, frames, caches and guesses about its type. A surface
// that serves pages sets what it needs otherwise.
func setHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// fault is why a request is refused, or nil.
func (o Options) fault(r *http.Request, crossOrigin *http.CrossOriginProtection) *loop.Fault {
	if p := r.URL.Path; !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsFunc(p, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return &loop.Fault{Exit: loop.ExitNotFound, What: fmt.Sprintf("there is nothing at %q", p), Why: "a path has no empty parts, dots or control characters", Fix: "write the path as it is documented"}
	}
	if !o.AnyName && !isLoopback(hostOf(r.Host)) && !slices.Contains(o.Names, hostOf(r.Host)) {
		return &loop.Fault{
			Exit: loop.ExitRefused, What: fmt.Sprintf("invalid Host %q", r.Host), Why: "a web page whose own name leads to this machine asks like this",
			Fix: "use the name " + strings.Join(append(slices.Clone(o.Names), "localhost"), " or "),
		}
	}
	asked := r.WithContext(r.Context())
	asked.Method = http.MethodPost // A page of another site is not to read either.
	if err := crossOrigin.Check(asked); err != nil {
		return &loop.Fault{Exit: loop.ExitRefused, What: "the request comes from the page of another site", Why: err.Error(), Err: err, Fix: "ask from a program, or from a page of the same address"}
	}
	return nil
}

// hostOf is the name or address in a Host header.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// refuse says a fault as text.
func refuse(w http.ResponseWriter, f *loop.Fault) {
	status := http.StatusForbidden
	if f.Exit == loop.ExitNotFound {
		status = http.StatusNotFound
	}
	http.Error(w, f.What+": "+f.Why+"\n"+f.Fix, status)
}

// patientWriter closes the connection of a client that does not read.
type patientWriter struct {
	http.ResponseWriter

	control  *http.ResponseController
	patience time.Duration
}

func (w *patientWriter) extend() {
	_ = w.control.SetWriteDeadline(clock.System{}.Now().Add(w.patience))
}

// WriteHeader sends the head of the answer.
func (w *patientWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the answer. A long one takes as long as its client goes on reading.
func (w *patientWriter) Write(b []byte) (sent int, err error) {
	for {
		w.extend()
		n, err := w.ResponseWriter.Write(b[sent:min(len(b), sent+piece)])
		if sent += n; err != nil || sent == len(b) {
			return sent, err
		}
	}
}

// FlushError sends what was written.
func (w *patientWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

// Flush is FlushError for those who do not ask.
func (w *patientWriter) Flush() { _ = w.FlushError() }

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
