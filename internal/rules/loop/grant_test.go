package loop_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestALoopOfAGrantIsOfAWorkspace(t *testing.T) {
	t.Parallel()
	g, err := loop.ParseGrant("ws_1/ci, ws_2/ci,ws_1/spec:a")
	want := &loop.Grant{Loops: []loop.GrantedLoop{{Workspace: "ws_1", Loop: "ci"}, {Workspace: "ws_2", Loop: "ci"}, {Workspace: "ws_1", Loop: "spec:a"}}}
	if d := cmp.Diff(want, g); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff([]string{"ci", "spec:a"}, g.NamesIn("ws_1")); d != "" || g.NamesIn("ws_3") != nil {
		t.Errorf("loops of a workspace (-want +got):\n%s", d)
	}
	if again, err := loop.ParseGrant(g.List()); err != nil || !cmp.Equal(g, again) {
		t.Errorf("%s is read as %+v, %v", g.List(), again, err)
	}
	none := &loop.Grant{}
	for _, text := range []string{"ci", "ws_1/ci,la", "/ci", "ws_1/", "", none.List()} {
		_, err := loop.ParseGrant(text)
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUsage || f.Fix == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
	var all *loop.Grant
	if all.List() != "" || (&loop.Grant{Inside: &loop.Inside{}}).List() != "" {
		t.Error("who is not limited to loops has a list of them")
	}
}
