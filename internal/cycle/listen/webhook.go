package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/webhook"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Bounds of deliveries.
const (
	MostBody    = 1 << 20 // bytes of one
	mostWaiting = 100     // that wait for one loop; the sender tries again later
)

// WebhookPath begins the path of a webhook; its name follows.
const WebhookPath = "/webhooks/"

// Secrets finds the secrets of webhooks on this node.
type Secrets struct {
	Home    string // pawl's own folder
	Environ []string
}

// Variable is the variable that can hold the secret of a webhook.
func (s Secrets) Variable(name string) string {
	return "PAWL_WEBHOOK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// File is the file that can hold it.
func (s Secrets) File(name string) string { return filepath.Join(s.Home, "webhooks", name+".key") }

// Key reads the key of a webhook. The error is a *loop.Fault with the fix.
func (s Secrets) Key(name string) (webhook.Key, error) {
	fault := func(why string, err error) error {
		return &loop.Fault{
			Exit: loop.ExitNotReady, What: "the webhook " + name + " has no secret that can be used", Why: why, Err: err,
			Fix: fmt.Sprintf("make one: (umask 077; mkdir -p %[1]s; { printf whsec_; openssl rand -base64 32; } > %[2]s), or set %[3]s, and give it to the sender",
				filepath.Dir(s.File(name)), s.File(name), s.Variable(name)),
		}
	}
	text, where := proc.LookupVariable(s.Environ, s.Variable(name)), s.Variable(name)
	if strings.TrimSpace(text) == "" {
		where = s.File(name)
		info, err := os.Stat(where)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return webhook.Key{}, fault("anybody could fire its loops: neither "+s.Variable(name)+" nor "+where+" is there", err)
		case err != nil:
			return webhook.Key{}, fault(err.Error(), err)
		case !info.Mode().IsRegular() || info.Size() > 4<<10:
			return webhook.Key{}, fault(where+" is not a small file", nil)
		}
		body, err := os.ReadFile(where)
		if err != nil {
			return webhook.Key{}, fault(err.Error(), err)
		}
		text = string(body)
	}
	key, err := webhook.ParseSecret(strings.TrimSpace(text))
	if err != nil {
		err = fault(where+": "+err.Error(), err)
	}
	return key, err
}

// CheckWebhooks returns the first fault of the webhooks of the loops that listen: a secret
// that is missing.
func (n *Listener) CheckWebhooks(ctx context.Context, s Secrets) error {
	if err := n.readLoops(ctx); err != nil {
		return err
	}
	for _, l := range n.listens(loop.OnWebhook) {
		if _, err := s.Key(l.on.What); err != nil {
			return err
		}
	}
	return nil
}

// Webhooks lists the names of the webhooks that loops listen to.
func (n *Listener) Webhooks() (names []string) {
	for _, l := range n.listens(loop.OnWebhook) {
		names = append(names, l.on.What)
	}
	return names
}

// Handler receives deliveries and serves nothing else. What is wrong with a request is said
// to its sender only as far as that helps nobody to forge one.
func (n *Listener) Handler(s Secrets) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, said := n.receive(w, r, s)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "60")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, said+"\n")
	})
}

// receive verifies a delivery and records it. It returns the answer.
func (n *Listener) receive(w http.ResponseWriter, r *http.Request, s Secrets) (status int, said string) {
	name, ok := strings.CutPrefix(r.URL.Path, WebhookPath)
	var list []listening
	for _, l := range n.listens(loop.OnWebhook) {
		if l.on.What == name {
			list = append(list, l)
		}
	}
	switch {
	case !ok || len(list) == 0:
		return http.StatusNotFound, "nobody listens here"
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, "send a POST"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MostBody))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", MostBody)
	}
	if err != nil {
		return http.StatusBadRequest, "the body cannot be read"
	}
	key, err := s.Key(name)
	if err != nil {
		n.Tell(list[0].Loop, list[0].subject(), err)
		return http.StatusServiceUnavailable, "the receiver has no secret"
	}
	id, err := key.Verify(r.Header, body, n.Now())
	if err != nil {
		return http.StatusUnauthorized, err.Error()
	}
	status, err = n.recordDelivery(r.Context(), list, id, string(body))
	if err != nil {
		n.logError(r.Context(), "record a delivery", err)
		return http.StatusServiceUnavailable, "the delivery cannot be recorded now"
	}
	switch status {
	case http.StatusConflict:
		said = "the delivery came before"
	case http.StatusServiceUnavailable:
		said = "too many deliveries wait"
	default:
		n.Wake()
		said = "recorded"
	}
	return status, said
}

// recordDelivery records a delivery for each loop that listens, or for none.
func (n *Listener) recordDelivery(ctx context.Context, list []listening, id, body string) (status int, err error) {
	if err := beforeRecord.Hit(ctx); err != nil {
		return 0, err
	}
	errRefused := errors.New("refused")
	err = n.Store.Update(ctx, func(tx *store.Tx) error {
		status = http.StatusAccepted
		fresh := 0
		for _, s := range list {
			waiting, err := tx.CountWaiting(ctx, s.ID, s.on.String())
			if err != nil {
				return err
			}
			if waiting >= mostWaiting {
				status = http.StatusServiceUnavailable
				return errRefused
			}
			added, err := tx.AddEvent(ctx, loop.FiringEvent{LoopID: s.ID, ID: "wh_" + id, Source: s.on.String(), Payload: n.bound(body)}, nil)
			if err != nil {
				return err
			}
			if added {
				fresh++
			}
		}
		if fresh == 0 {
			status = http.StatusConflict
			return errRefused
		}
		return nil
	})
	if errors.Is(err, errRefused) {
		return status, nil
	}
	if err != nil {
		return 0, err
	}
	return status, afterRecord.Hit(ctx)
}
