package boots_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func (r *rig) status(request string) boots.Status {
	r.t.Helper()
	v, err := r.Status(r.t.Context(), boots.StatusRequest{Request: request})
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func TestAStatusSaysWhatARunWouldWorkOnAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		state   string
		tasks   []string
		request string
		task    string
		reason  loop.Reason
		asks    bool
	}{
		"a request":             {"", []string{task("t1", "pending", "critical")}, "Write the parser", bootstate.RequestID("Write the parser"), loop.ReasonPlanRequest, false},
		"the next intent":       {`"nextIntent": "t2"`, []string{task("t1", "pending", "high"), task("t2", "pending", "low")}, "", "t2", loop.ReasonPlanIntent, false},
		"the highest priority":  {"", []string{task("t1", "pending", "low"), task("t2", "pending", "high")}, "", "t2", loop.ReasonPlanPriority, false},
		"nothing to do":         {"", []string{task("t1", "done", "low")}, "", "", loop.ReasonPlanNothing, true},
		"two tasks in progress": {"", []string{task("t1", "in-progress", "low"), task("t2", "in-progress", "low")}, "", "", loop.ReasonConflictProgress, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newWorkspace(t, nil)
			r.write("agent/STATE.json", state(c.state))
			r.write("agent/TODO.json", tasks(c.tasks...))
			v := r.status(c.request)
			if v.Next.Task != c.task || v.Next.Reason != c.reason || (v.Next.Question != "") != c.asks || v.Next.Why == "" {
				t.Errorf("next = %+v, want %s by %s", v.Next, c.task, c.reason)
			}
			for _, one := range v.Tasks {
				if (one.ID == c.task) != (one.Reason == "") || (one.ID == c.task) != (one.Title == v.Next.Title) {
					t.Errorf("task %+v beside %+v", one, v.Next)
				}
			}
			if v.Project != "demo" || v.Phase != "idle" || v.Branch != "main" || r.git("status", "--porcelain", "CHANGELOG.md") != "" {
				t.Errorf("status = %+v", v)
			}
		})
	}
}

func TestAStatusCountsWhatOriginHasNot(t *testing.T) {
	r := newWorkspace(t, nil)
	if v := r.status(""); v.Remote != "" || v.Unpushed != nil || v.Last != nil {
		t.Errorf("without an origin: %+v", v)
	}
	remote := t.TempDir()
	gittest.Run(t, remote, "init", "-q", "--bare")
	r.git("remote", "add", "origin", remote)
	if v := r.status(""); v.Remote != "origin/main" || v.Unpushed != nil {
		t.Errorf("before the first push: %+v", v)
	}
	r.git("push", "-q", "origin", "main")
	r.write("agent/STATE.json", state(`"nextIntent": "t1"`))
	commit := r.commit(r.root, bootstate.Session{Brief: "plan"}.Message())
	v := r.status("")
	if v.Unpushed == nil || *v.Unpushed != 1 || v.Last == nil || v.Last.Commit != commit || v.Last.Brief != "plan" {
		t.Errorf("after a session: %+v", v)
	}
}

func TestAStatusWithoutTheBootRepositoryUsesTheSchemasOfTheFormat(t *testing.T) {
	r := newWorkspace(t, nil)
	r.write("AGENT_LINK.md", link("../gone", "v1.0.0", "1.0.0"))
	if v := r.status(""); v.Boot == "" || v.Next.Task != "t2" {
		t.Errorf("status = %+v", v)
	}
}

func TestAStatusOfAMemoryThatNoRunCanUseSaysWhy(t *testing.T) {
	r := newWorkspace(t, nil)
	r.remove("agent/STATE.json")
	_, err := r.Status(t.Context(), boots.StatusRequest{})
	wantFault(t, err, loop.ExitNoSuccess, "pawl boot check")
	r.remove("AGENT_LINK.md")
	_, err = r.Status(t.Context(), boots.StatusRequest{})
	wantFault(t, err, loop.ExitNotFound, "pawl boot init")
}

// Commits of people change the state, too, and are not sessions.
func TestALogHasTheNewestSessionsOnly(t *testing.T) {
	r := newWorkspace(t, nil)
	var want []boots.Session
	for i := range 30 {
		r.write("agent/STATE.json", state(fmt.Sprintf(`"nextIntent": "%d"`, i)))
		if i%10 != 0 {
			r.commit(r.root, "by hand")
			continue
		}
		s := bootstate.Session{Brief: fmt.Sprint("session ", i), State: "nextIntent", Tasks: "t1 done", Summary: "all of it"}
		commit := r.commit(r.root, s.Message())
		want = append([]boots.Session{{Commit: commit, Brief: s.Brief, State: s.State, Tasks: s.Tasks, Summary: s.Summary}}, want...)
	}
	for limit, most := range map[int]int{0: 3, 2: 2, 1: 1, 99: 3} {
		got, err := r.Log(t.Context(), boots.LogRequest{Limit: limit})
		for i := range got {
			got[i].When = got[i].When.Truncate(0)
			if got[i].When.IsZero() {
				t.Errorf("session without a time: %+v", got[i])
			}
			got[i].When = want[0].When
		}
		if d := cmp.Diff(want[:most], got); err != nil || d != "" {
			t.Errorf("log of %d, %v (-want +got):\n%s", limit, err, d)
		}
	}
}

// What a run would count before it plans, the status counts too: it never names a task that
// no run would work on.
func TestTheStatusNamesWhatARunWorksOnAfterSessionsThatNeverEnded(t *testing.T) {
	for attempts, want := range map[int]string{1: "a", bootstate.MostAttempts: "b"} {
		r := newWorkspace(t, nil)
		var list []string
		for n := range attempts {
			list = append(list, fmt.Sprintf(`{"run":"run_%d","began":"2026-01-01T00:00:00Z"}`, n))
		}
		r.write("agent/TODO.json", `{"version":"1.0.0","tasks":[{"id":"b","title":"B","status":"pending","priority":"low"},
			{"id":"a","title":"A","status":"in-progress","priority":"high","metadata":{"attempts":[`+strings.Join(list, ",")+`]}}]}`)
		if v := r.status(""); v.Next.Task != want {
			t.Errorf("after %d sessions: %+v, want %s", attempts, v.Next, want)
		}
	}
}
