package compose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// always is a daemon over the one loop of a fixture, in this process.
type always struct {
	*fixture

	parts    *compose.Parts
	daemon   *daemon.Daemon
	happened chan daemon.Happened
	quiet    bool // it sends no notices
}

// startDaemon starts a daemon whose loop runs a command as its agent, in no sandbox. The
// loop is due.
func startDaemon(t *testing.T, s *fixture, agent string) *always {
	t.Helper()
	const worker = "agent_command: "
	text, _, _ := strings.Cut(fixConfig, worker)
	text = strings.Replace(text, "verify: grep -q three src/a.txt", "verify: grep -q two src/a.txt", 1)
	config := text + worker + "'" + agent + "'\nsandbox: none\n"
	if err := os.WriteFile(filepath.Join(s.root, ".loops/fix/loop.config.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	d := &always{fixture: s, happened: make(chan daemon.Happened, 100)}
	d.opens()
	v, err := d.parts.Verbs(t.Context(), s.root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Loops.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.makeDue()
	return d
}

func (d *always) opens() {
	d.t.Helper()
	settings, err := config.Load(config.Settings{Home: d.home, Database: d.database}, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.parts, err = compose.New(d.t.Context(), compose.Options{Settings: settings, Environ: os.Environ(), Log: compose.Log(nil)})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := d.parts.Close(); err != nil {
			d.t.Error(err)
		}
	})
}

// makeDue makes the loop due now.
func (d *always) makeDue() {
	d.t.Helper()
	err := d.parts.Store().Update(d.t.Context(), func(tx *store.Tx) error {
		ids, err := tx.WorkspaceIDs(d.t.Context())
		if err != nil {
			return err
		}
		for _, id := range ids {
			l, err := tx.LoopNamed(d.t.Context(), id, loop.ProtocolSpine, "fix")
			if err != nil {
				return err
			}
			if err := tx.PlanNext(d.t.Context(), l.ID, tx.Now(), tx.Now(), l.Ticked); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *always) starts() {
	d.t.Helper()
	var err error
	d.daemon, err = d.parts.Daemon(d.t.Context(), compose.DaemonOptions{Workers: 2, Notices: !d.quiet, Tell: func(h daemon.Happened) { d.happened <- h }})
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.daemon.Start(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// next waits for what happens next, in words.
func (d *always) next() string {
	d.t.Helper()
	// The time is that after which a hanging test is given up.
	select {
	case h := <-d.happened:
		switch {
		case h.Fired != nil:
			return fmt.Sprintf("%s#%d fires", h.Loop, h.Fired.N)
		case h.Ended != nil:
			return fmt.Sprintf("%s#%d %s", h.Loop, h.Ended.N, h.Ended.Outcome)
		case h.Recovered != nil:
			return fmt.Sprintf("%s#%d recovered %s", h.Recovered.Loop, h.Recovered.Run.N, h.Recovered.Run.Outcome)
		}
		return "wrong: " + h.Wrong.Error()
	case <-time.After(time.Minute):
		return "nothing"
	}
}

func (d *always) want(list ...string) {
	d.t.Helper()
	for _, want := range list {
		if got := d.next(); got != want {
			d.t.Fatalf("it happens that %s, want %s", got, want)
		}
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for t.Context().Err() == nil {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no file %s", path)
}

func onBothDatabases(t *testing.T, test func(t *testing.T, s *fixture)) {
	t.Helper()
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"sqlite": nil, "postgres": storetest.PostgreSQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := ""
			if database != nil {
				url = database(t)
			}
			test(t, newFixture(t, url))
		})
	}
}

func TestADaemonThatEndsWaitsForItsRunsAndFiresNoMore(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		flags := t.TempDir()
		d := startDaemon(t, s, fmt.Sprintf("touch %[1]s/begun; until test -f %[1]s/go; do sleep 0.02; done; echo two > src/a.txt", flags))
		d.starts()
		d.want("fix#1 fires")
		waitForFile(t, flags+"/begun")
		stopped := make(chan bool)
		go func() {
			d.daemon.Stop(context.Background())
			close(stopped)
		}()
		d.makeDue()
		select {
		case <-stopped:
			t.Fatal("it has ended before its run")
		case <-time.After(100 * time.Millisecond):
		}
		if err := os.WriteFile(flags+"/go", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		<-stopped
		d.want("fix#1 proposed")
		if n := len(d.happened); n > 0 {
			t.Errorf("it also happens that %s", d.next())
		}
		// What was due meanwhile fires when the next one starts. The proposal has no answer.
		d.starts()
		// A worker may look for queued runs before it is told that one was fired.
		happened := []string{d.next(), d.next()}
		slices.Sort(happened)
		if diff := cmp.Diff([]string{"fix#2 fires", "fix#2 quiet"}, happened); diff != "" {
			t.Errorf("it happens (-want +got):\n%s", diff)
		}
		d.daemon.Stop(t.Context())
	})
}

func TestADaemonThatCannotWaitInterruptsItsRunsAndTheirWorkIsKept(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		flags := t.TempDir()
		d := startDaemon(t, s, fmt.Sprintf("echo two > src/a.txt; touch %s/begun; exec sleep 607.0231", flags))
		d.starts()
		d.want("fix#1 fires")
		waitForFile(t, flags+"/begun")
		now, cancel := context.WithCancel(t.Context())
		cancel()
		d.daemon.Stop(now)
		h := <-d.happened
		if h.Ended == nil || h.Ended.Outcome != loop.OutcomeInterrupted || h.Ended.Snapshot == "" || !strings.Contains(h.Ended.Detail, "pawl was asked to end") {
			t.Errorf("it happens that %+v, run %+v", h, h.Ended)
		}
	})
}

func TestADaemonConcludesWhatWasLostBeforeItFires(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		if v := s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1"); v != nil {
			t.Fatalf("the run was not killed: %+v", v)
		}
		d := startDaemon(t, s, "echo two > src/a.txt")
		d.starts()
		d.want("fix#1 recovered interrupted", "fix#2 fires", "fix#2 proposed")
		d.daemon.Stop(t.Context())
	})
}

// A clone that somebody removed while a run was at work in it.
func TestAWorkspaceThatIsGoneKeepsNoAnswerFromExpiring(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	if v := s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1"); v != nil {
		t.Fatalf("the run was not killed: %+v", v)
	}
	s.lapse()
	d := startDaemon(t, s, "true")
	if err := os.RemoveAll(s.root); err != nil {
		t.Fatal(err)
	}
	if err := d.parts.Store().Update(t.Context(), func(tx *store.Tx) error {
		ids, err := tx.WorkspaceIDs(t.Context())
		if err != nil {
			return err
		}
		runs, err := tx.WorkspaceRuns(t.Context(), ids[0], 0, 1)
		if err != nil {
			return err
		}
		return tx.AskApproval(t.Context(), loop.Approval{
			ID: "ap_old", LoopID: runs[0].LoopID, RunID: runs[0].ID, State: loop.ApprovalOpen, Action: loop.Action{Kind: loop.ActionLand}, Created: tx.Now(), Expires: tx.Now(),
		})
	}); err != nil {
		t.Fatal(err)
	}
	d.starts()
	for state := loop.ApprovalOpen; state == loop.ApprovalOpen && t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
		if err := d.parts.Store().View(t.Context(), func(r *store.Reader) error {
			a, err := r.Approval(t.Context(), "ap_old")
			state = a.State
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	d.daemon.Stop(t.Context())
}

func TestADaemonDoesNotTakeAnotherRepositoryForTheWorkspaceThatLayThere(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		d := startDaemon(t, s, "echo two > src/a.txt")
		d.starts()
		d.want("fix#1 fires", "fix#1 proposed")
		id := strings.TrimSpace(readFile(t, filepath.Join(s.root, ".git/pawl-workspace")))
		if err := os.Rename(s.root, filepath.Join(t.TempDir(), "moved")); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(s.root, "README.md"), "another one\n")
		s.git("init", "-q", "-b", "main")
		s.git("remote", "add", "origin", "https://example.com/other")
		s.git("add", "-A")
		s.git("commit", "-q", "-m", "first")
		d.listener("other", `"file:notes/**"`, "")
		d.makeDue()
		d.daemon.Reload()
		// It is due, and the scan comes: each of them may be the first to notice.
		for told := ""; !strings.HasSuffix(told, s.root+" is not workspace "+id+" any more"); {
			if told = d.next(); !strings.HasPrefix(told, "wrong: ") {
				t.Fatalf("it happens that %s", told)
			}
		}
		d.daemon.Reload()
		d.until("the loop of the other repository is one of another workspace", func(r *store.Reader) (bool, error) {
			loops, err := d.loopRows(r)
			return err == nil && loops["other"].WorkspaceID != "" && loops["other"].WorkspaceID != id && loops["fix"].WorkspaceID == id, err
		})
		d.daemon.Stop(t.Context())
		if n := len(d.happened); n > 0 {
			t.Errorf("it also happens that %s", d.next())
		}
	})
}

// A worker is a daemon that tells nobody. What happens in its runs is told by the daemon
// of any node.
func TestWhatHappensInRunsOfAWorkerIsToldByADaemon(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	d := startDaemon(t, newFixture(t, storetest.PostgreSQL(t)), "echo two > src/a.txt")
	if _, err := d.parts.Notices().Add(t.Context(), ann, loop.Channel{Kind: "command", Target: "cat >>" + told}); err != nil {
		t.Fatal(err)
	}
	cursor := func() (n int) {
		row := d.parts.Store().PostgresPool().QueryRow(t.Context(), `SELECT count(*) FROM notice_cursor`)
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	d.quiet = true
	d.starts()
	d.want("fix#1 fires", "fix#1 proposed")
	d.daemon.Stop(t.Context())
	if n := cursor(); n > 0 {
		t.Error("a worker has looked for what to tell")
	}
	if _, err := os.Stat(told); err == nil {
		t.Error("a worker has told somebody")
	}
	d.quiet = false
	d.starts()
	waitForFile(t, told) // The proposal waits for an answer.
	d.daemon.Stop(t.Context())
}
