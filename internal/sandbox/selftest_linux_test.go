package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryRowOfTheSelfTestHolds(t *testing.T) {
	for _, tier := range []Tier{Full, Landlock, None} {
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
	for _, tier := range []Tier{Full, Landlock} {
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
