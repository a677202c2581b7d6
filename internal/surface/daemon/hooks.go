package daemon

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/surface/httpguard"
)

const (
	mostHooks = 64               // requests at a time
	hooksEnd  = 10 * time.Second // for those that are being answered when the daemon stops
)

// hooks receives webhooks.
type hooks struct {
	at      net.Listener
	secrets listen.Secrets
}

// ReceiveWebhooks makes the daemon receive webhooks at an address, which it closes when it
// stops. It is called before Start, which then refuses a webhook without a secret.
func (d *Daemon) ReceiveWebhooks(at net.Listener, secrets listen.Secrets) {
	d.hooks, d.listen.Receives = &hooks{at, secrets}, true
}

// serve receives webhooks until ctx ends.
func (h *hooks) serve(ctx context.Context, l *listen.Listener) {
	handler := l.Handler(h.secrets)
	seats := make(chan struct{}, mostHooks)
	seated := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case seats <- struct{}{}:
			defer func() { <-seats }()
			handler.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context()))) // What has arrived is recorded.
		default:
			w.Header().Set("Retry-After", "60")
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		}
	})
	stop := Serve(ctx, h.at, httpguard.Handler(seated, httpguard.Options{AnyName: true}), l.Log)
	<-ctx.Done()
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), hooksEnd)
	defer cancel()
	stop(soon)
}
