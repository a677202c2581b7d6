package daemon

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/pawl-run/pawl/internal/listen"
)

// Bounds of the server of webhooks, which anybody may reach who reaches its address.
const (
	hookTime   = 10 * time.Second // for one request
	mostHooks  = 64               // requests at a time
	mostHeader = 16 << 10         // bytes
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
	server := http.Server{
		ReadTimeout: hookTime, WriteTimeout: hookTime, IdleTimeout: hookTime, MaxHeaderBytes: mostHeader,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case seats <- struct{}{}:
				defer func() { <-seats }()
				handler.ServeHTTP(w, r)
			default:
				w.Header().Set("Retry-After", "60")
				http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
			}
		}),
	}
	defer context.AfterFunc(ctx, func() {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
		defer cancel()
		_ = server.Shutdown(soon)
	})()
	_ = server.Serve(h.at) // It ends with Shutdown.
}
