//go:build unix

package git

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

var when = time.Unix(1_700_000_000, 0)

func open(t *testing.T, dir string) *Repo {
	t.Helper()
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatalf("Open(%s) = %v", dir, err)
	}
	return r
}

func base(t *testing.T, r *Repo) Base {
	t.Helper()
	b, err := r.Base(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantFault fails unless err is a fault with this exit status and a fix.
func wantFault(t *testing.T, err error, exit int, fix string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit || !strings.Contains(f.Advice().String(), fix) {
		t.Fatalf("error = %#v, want a fault with exit %d and a fix that says %q", err, exit, fix)
	}
}
