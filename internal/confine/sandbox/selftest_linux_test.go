package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// confiningTiers returns the tiers that promise something and that this kernel can
// enforce.
func confiningTiers(t *testing.T) []Tier {
	t.Helper()
	if hasLandlockTCP(t) {
		return []Tier{Full, Landlock}
	}
	return []Tier{Full}
}

// hasLandlockTCP reports whether this kernel can enforce tier landlock. If it cannot,
// as before Linux 6.7, it checks that the tier is refused with the fix.
func hasLandlockTCP(t *testing.T) bool {
	t.Helper()
	if stage.LandlockVersion() >= 4 {
		return true
	}
	home := t.TempDir()
	open755(t, home)
	fault, ok := errors.AsType[*loop.Fault](Check(t.Context(), home, Landlock))
	if !ok || fault.Exit != loop.ExitMissing || !strings.Contains(fault.Advice().String(), "Linux ") {
		t.Errorf("Check of a tier that Linux %s does not have = %v", kernelRelease(), fault)
	}
	return false
}

func TestEveryRowOfTheSelfTestHolds(t *testing.T) {
	for _, tier := range append(confiningTiers(t), None) {
		t.Run(string(tier), func(t *testing.T) {
			dir := t.TempDir()
			open755(t, dir)
			began := time.Now()
			r, err := Test(t.Context(), tier, dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range r.Rows {
				t.Logf("%-8s %-8s %s: %s", row.Want, row.Got, row.Action, row.Detail)
			}
			t.Logf("box %v, all %v, absent %v", r.Took, time.Since(began), r.Absent)
			for _, row := range r.Failed() {
				t.Errorf("%s: %s, want %s (%s)", row.Action, row.Got, row.Want, row.Detail)
			}
		})
	}
}

func TestTheSelfTestHoldsWhereNamesAreTooLongForASocket(t *testing.T) {
	for _, tier := range confiningTiers(t) {
		home := t.TempDir()
		open755(t, home)
		dir := filepath.Join(home, strings.Repeat("long", 25))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := Test(t.Context(), tier, dir)
		if err != nil || len(r.Failed()) > 0 {
			t.Errorf("%s: %+v, %v", tier, r.Failed(), err)
		}
	}
}
