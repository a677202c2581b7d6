package projection

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestNothingStaysOpenBehindAReadOrAWrite(t *testing.T) {
	// The collector would close what was forgotten.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	root := folder(t, map[string]string{statePath: "one\n", logPath: header})
	m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1"}
	both := []loop.PendingChange{{RunID: "run_1", Seq: 1, Change: edits("one\n", "two\n")}, {RunID: "run_1", Seq: 2, Change: appends("line 1")}}
	open := func() int {
		t.Helper()
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for name, do := range map[string]func() error{
		"a read":             func() error { _, err := m.Read(statePath); return err },
		"a read elsewhere":   func() error { _, err := ReadFile(root+"/"+logPath, MaxFile); return err },
		"a read of a folder": func() error { _, _ = m.Read(".loops"); return nil },
		"a write":            func() error { _, err := m.Write(t.Context(), loop.Run{}, both); return err },
	} {
		if err := do(); err != nil { // What the first one opens for good is opened.
			t.Fatal(err)
		}
		before := open()
		for range 10 {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		if after := open(); after >= before+10 {
			t.Errorf("%s: %d files are open after ten times, %d before", name, after, before)
		}
	}
}

// Files of the kernel say that they are empty.
func TestAFileThatDoesNotTellItsSizeHasALimitToo(t *testing.T) {
	if got, err := ReadFile("/proc/self/status", 10); err != nil || got != (File{Exists: true, TooBig: true}) {
		t.Errorf("ReadFile = %+v, %v, want one that is too big", got, err)
	}
	if got, err := ReadFile("/proc/self/status", MaxFile); err != nil || !got.Exists || got.Content == "" {
		t.Errorf("ReadFile = %+v, %v, want its content", got, err)
	}
}
