package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// What was in the log is durable beside it before the log has its name, the new
// log is before it gets that name, and then the name is.
func TestALogThatIsWrittenAnewIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	dir := filepath.Join(r.Root, ".loops/tidy")
	verbtest.Write(t, r.Root, ".loops/tidy/run-log.md", "something else\n")
	var got []string
	stop := durable.WatchSyncs(func(f *os.File) error {
		if !strings.HasPrefix(f.Name(), dir) {
			return nil
		}
		name, _, _ := strings.Cut(filepath.Base(f.Name()), "-2") // What follows is a digest or a time.
		if strings.Contains(name, ".new-") {
			name = "run-log.md.new"
		}
		log, err := os.ReadFile(filepath.Join(dir, "run-log.md"))
		if err != nil {
			return err
		}
		state := "the old log"
		if string(log) != "something else\n" {
			state = "the new log"
		}
		got = append(got, strings.TrimSuffix(name, "-")+", "+state)
		return nil
	})
	defer stop()
	if l, err := r.Audit.RewriteLog(t.Context(), verbtest.Ann, "tidy"); err != nil || !l.Changed {
		t.Fatalf("rewrite = %+v, %v", l, err)
	}
	want := []string{"run-log.md.before, the old log", "run-log.md.new, the old log", "tidy, the new log"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("synced (-want +got):\n%s", d)
	}
}
