package setup_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

func TestTheDoctorSaysByHowMuchTheClockIsWrong(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		for name, c := range map[string]struct {
			wrong       time.Duration
			state, says string
		}{
			"right": {0, setup.StateOK, "as the database"},
			"a bit": {3 * time.Second, setup.StateOK, "ahead of the database"},
			"far":   {-5 * time.Minute, setup.StateWarn, "behind the database, whose clock decides about leases, approvals and budgets"},
		} {
			now := func() time.Time { return time.Now().Add(c.wrong) }
			s, err := store.Open(t.Context(), store.Options{Database: databaseOf(t, r), ReadOnly: true, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ws := *r.Workspace
			ws.Store = s
			rows := setup.Doctor{
				Service: setup.New(&ws, r.Engine, r.Budgets.Show), Dir: r.Root, Home: r.Home,
				Probe: probe.Prober{Exec: proc.Plain{}, Home: t.TempDir(), Now: now()},
			}.MachineRows(t.Context())
			for _, row := range rows {
				if row.Check != "clock" {
					continue
				}
				if row.State != c.state || !strings.HasSuffix(row.Detail, c.says) || (row.Fix != "") != (c.state == setup.StateWarn) {
					t.Errorf("%s: %+v, want %s and %q", name, row, c.state, c.says)
				}
			}
		}
	})
}

// databaseOf is what opens the database of a rig.
func databaseOf(t *testing.T, r *verbtest.Rig) string {
	t.Helper()
	info, err := r.Store.Info(t.Context())
	if err != nil || info.Driver == "sqlite" && !filepath.IsAbs(info.Location) {
		t.Fatalf("%+v, %v", info, err)
	}
	return info.Location
}
