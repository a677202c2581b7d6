package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestADaemonIsReadyUnlessItEndsOrHangsOrItsStoreDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{Database: storetest.SQLite(t), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(st api.Status) (status int, says string) {
		server := api.Server{Feed: event.Feed{Store: s}, Status: func() api.Status { return st }}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
		r.Host = "pawl"
		server.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	want := func(st api.Status, status int, says string) {
		t.Helper()
		if got, text := ask(st); got != status || !strings.Contains(text, says) {
			t.Errorf("%+v: it says %d %s, want %d with %q", st, got, text, status, says)
		}
	}
	want(api.Status{}, http.StatusOK, "ready")
	want(api.Status{Ending: true}, http.StatusServiceUnavailable, "pawl is ending")
	want(api.Status{Hangs: true}, http.StatusServiceUnavailable, "it has stopped looking for loops that are due")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want(api.Status{}, http.StatusInternalServerError, "closed")
}
