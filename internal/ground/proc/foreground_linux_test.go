package proc

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestAForegroundProgramStaysInOurGroupAndSession(t *testing.T) {
	var out bytes.Buffer
	res, err := Foreground{}.Run(t.Context(), Spec{
		Argv: []string{"/bin/sh", "-c", "cut -d' ' -f5,6 /proc/$$/stat; exit 3"}, Stdout: &out,
	})
	if err != nil || res.Exit != 3 || res.Ended != Exited {
		t.Fatalf("result %+v, %v", res, err)
	}
	session, err := syscall.Getpgid(0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(out.String()); len(got) != 2 || got[0] != fmt.Sprint(session) {
		t.Errorf("process group and session = %q, want group %d", got, session)
	}
}
