package setup_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

func TestTheStoreIsNamedAlsoWhenItIsNotThere(t *testing.T) {
	r := verbtest.New(t)
	v, err := r.Setup.StoreInfo(t.Context())
	if err != nil || v.State != setup.StoreReady || v.Driver != "sqlite" || !strings.HasSuffix(v.Location, "/pawl.db") || v.Version < 1 || v.Problem != "" {
		t.Errorf("store = %+v, %v", v, err)
	}
	if got := verbtest.KeysOf(verbtest.JSONObject(t, v)); got != "driver location schema state version" {
		t.Errorf("keys = %s", got)
	}
	none := setup.StoreInfo{Schema: "pawl.store/v1", State: "none_yet"}
	if got, err := r.WithoutStore().Setup.StoreInfo(t.Context()); err != nil || got != none {
		t.Errorf("no store = %+v, %v, want %+v", got, err, none)
	}

	lost := errors.New("somebody pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	if _, err := r.Setup.StoreInfo(ctx); !errors.Is(err, lost) {
		t.Errorf("canceled = %v", err)
	}
}

func TestAStoreThatDoesNotAnswerIsAStateAndNoError(t *testing.T) {
	r := verbtest.New(t)
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := r.Setup.StoreInfo(t.Context())
	if err != nil || v.State != setup.StoreUnreachable || v.Location == "" || v.Version != 0 || v.Problem == "" {
		t.Errorf("store = %+v, %v", v, err)
	}
}
