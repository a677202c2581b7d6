package loop

import "testing"

func TestTheMemoryOfALoopIsInItsOwnFolder(t *testing.T) {
	for name, want := range map[string]bool{
		".loops/fix/STATE.md": true, ".loops/fix/run-log.md": true,
		".loops/fix/loop.config.yaml": false, ".loops/fix/STATE.md.broken-1": false, ".loops/STATE.md": false, ".loops/a/b/STATE.md": false,
		"STATE.md": false, "src/.loops/fix/STATE.md": false, "x.loops/fix/run-log.md": false, "": false,
	} {
		if got := IsStateFile(name); got != want {
			t.Errorf("IsStateFile(%q) = %v, want %v", name, got, want)
		}
	}
}
