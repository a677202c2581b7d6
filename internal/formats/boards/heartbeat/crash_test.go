package heartbeat_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// beatEnv makes the test binary a process with one heartbeat: DATABASE, ROOT, HOME, HANDLE.
const beatEnv = "PAWL_TEST_BOARD_BEAT"

func runBeat(text string) int {
	f := strings.Split(text, "\t")
	ctx := context.Background()
	r := &rig{root: f[1]}
	if err := r.open(ctx, f[0], f[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer r.store.Close()
	r.act = func(w worked) string {
		return `{"outcome":"done","no_change":true,"summary":"answer to ` + strings.ReplaceAll(w.step, `"`, "") + `"}`
	}
	if _, err := r.engine.Run(ctx, r.target(f[3]), engine.Firing{Trigger: "manual"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// beatApart is a heartbeat in a process of its own, which may be told where to die. It returns
// the points that it came by.
func (r *rig) beatApart(handle, crashAt string) (points []string, died bool) {
	r.t.Helper()
	trace := filepath.Join(r.t.TempDir(), "points")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), beatEnv+"="+strings.Join([]string{r.database, r.root, r.home, handle}, "\t"), "PAWL_FAULTS=1", "PAWL_FAULT_TRACE="+trace)
	if crashAt != "" {
		cmd.Env = append(cmd.Env, "PAWL_CRASH_AT="+crashAt)
	}
	out, err := cmd.CombinedOutput()
	if exit := cmd.ProcessState; err != nil && !strings.Contains(exit.String(), "killed") {
		r.t.Fatalf("a heartbeat that dies at %q: %v\n%s", crashAt, err, out)
	}
	text, _ := os.ReadFile(trace)
	return strings.Fields(string(text)), err != nil
}

func TestEachMentionAndMessageIsAnsweredOnceWhateverDies(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		crashes := sample.Size(8, 500) // On each of two databases.
		r.team("lead", "dev")
		r.add(task("tk_1", func(t *board.Task) { t.AssigneeID = "lead"; t.Status = board.Backlog }))
		asked := 0
		ask := func() { // A mention and a message.
			asked++
			id := fmt.Sprintf("%03d", asked)
			r.add(board.Comment{ID: "cm_" + id, TaskID: "tk_1", AuthorType: board.ByHuman, AuthorID: board.Human, Content: "@dev number " + id, Mentions: []string{"dev"}},
				board.Subscription{ID: "sb_" + id, AgentID: "dev", TaskID: "tk_1", CommentID: "cm_" + id})
			m := board.Message{ID: "ms_" + id, FromAgentID: "lead", ToAgentID: "dev", MessageType: board.Question, Content: "question " + id}
			if err := r.store.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Send(t.Context(), "ws", m.Delivery(), false); return err }); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		points, _ := r.beatApart("dev", "")
		if len(points) < 10 {
			t.Fatalf("a heartbeat came by %d points only", len(points))
		}
		random := rand.New(rand.NewPCG(7, 7))
		died := 0
		for range crashes {
			ask()
			n := random.IntN(len(points))
			hit := 1
			for _, p := range points[:n] {
				if p == points[n] {
					hit++
				}
			}
			if _, killed := r.beatApart("dev", fmt.Sprintf("%s:%d", points[n], hit)); killed {
				died++
			}
			if _, err := r.engine.Recover(t.Context(), r.target("dev")); err != nil {
				t.Fatal(err)
			}
			r.beatApart("dev", "")
		}
		if died < crashes*3/4 {
			t.Errorf("%d of %d heartbeats died", died, crashes)
		}
		answers := map[string]int{}
		for _, c := range rows[board.Comment](r, loop.RowQuery{Set: board.SetComments, Limit: 10_000}) {
			if c.ParentID != "" {
				answers[c.ParentID]++
			}
		}
		for n := 1; n <= asked; n++ {
			if id := fmt.Sprintf("cm_%03d", n); answers[id] != 1 {
				t.Errorf("mention %s has %d answers", id, answers[id])
			}
		}
		if open := rows[board.Subscription](r, loop.RowQuery{Set: board.SetSubscriptions, Owner: "dev", States: []string{board.SubscriptionWaits}}); len(open) > 0 {
			t.Errorf("%d mentions still wait", len(open))
		}
		back := map[string]int{}
		err := r.store.View(t.Context(), func(rd *store.Reader) error {
			waiting, err := rd.Undelivered(t.Context(), "ws", "@lead", 10_000)
			for _, d := range waiting {
				back[d.Answers]++
			}
			if left, lerr := rd.Undelivered(t.Context(), "ws", "@dev", 10); err == nil && lerr == nil && len(left) > 0 {
				t.Errorf("%d messages still wait", len(left))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= asked; n++ {
			if id := fmt.Sprintf("ms_%03d", n); back[id] != 1 {
				t.Errorf("message %s has %d answers", id, back[id])
			}
		}
		t.Logf("%d mentions and %d messages, %d of %d heartbeats killed at %d points", asked, asked, died, crashes, len(points))
	})
}
