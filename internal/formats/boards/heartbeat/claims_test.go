package heartbeat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/boardload"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// workEnv makes the test binary a process with agents: DATABASE, FIRST, LAST, BEGAN and FILE
// for its history.
const workEnv = "PAWL_TEST_BOARD_WORK"

func runWorker(text string) int {
	f := strings.Split(text, "\t")
	first, _ := strconv.Atoi(f[1])
	last, _ := strconv.Atoi(f[2])
	nanos, _ := strconv.ParseInt(f[3], 10, 64)
	ctx := context.Background()
	// Nobody extends the leases here, and a write may wait for longer than one lasts.
	s, err := store.Open(ctx, store.Options{Database: f[0], Now: clock.System{}.Now, Lease: time.Hour})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	out, err := os.OpenFile(f[4], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer out.Close()
	var handles []string
	for n := first; n < last; n++ {
		handles = append(handles, boardload.Handle(n))
	}
	if err := boardload.Work(ctx, s, handles, func() time.Duration { return time.Since(time.Unix(0, nanos)) }, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A claim is a compare-and-set of who has a task: it is won if nobody has it, or if the run
// of whoever has it is over.
type claim struct{ agent string }

// claims is what may happen to one task: its state is the agent that has it. That the claims
// of a process that was killed are free again is in no history: such a task may change hands.
func claims(mayChange bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			has, in := state.(string), input.(claim)
			won, known := output.(bool)
			switch {
			case !known: // Its process was killed: either may have happened.
				return true, has
			case won:
				return has == "" || mayChange, in.agent
			}
			return has != "" && has != in.agent || mayChange, has
		},
	}
}

func TestNoTaskIsClaimedTwiceByProcessesOfManyAgents(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			size := boardload.Size{Agents: sample.Size(20, 1000), Boards: sample.Size(4, 50), Tasks: sample.Size(100, 10_000)}
			const processes = 10
			url := database(t)
			s, err := store.Open(t.Context(), store.Options{Database: url, Now: clock.System{}.Now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if err := boardload.Fill(t.Context(), s, size); err != nil {
				t.Fatal(err)
			}
			dir, began := t.TempDir(), time.Now()
			start := func(n int) *exec.Cmd {
				each := size.Agents / processes
				cmd := exec.Command("/proc/self/exe")
				cmd.Env = append(os.Environ(), workEnv+"="+strings.Join([]string{
					url, strconv.Itoa(n * each), strconv.Itoa((n + 1) * each), strconv.FormatInt(began.UnixNano(), 10), filepath.Join(dir, fmt.Sprintf("%d.jsonl", n)),
				}, "\t"), "PGAPPNAME="+sessionsOf(n))
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill() })
				return cmd
			}
			var all []*exec.Cmd
			for n := range processes {
				all = append(all, start(n))
			}
			// One in ten is killed while it has claims, and its leases are over: another process takes its place.
			killed := all[0]
			for {
				if text, _ := os.ReadFile(filepath.Join(dir, "0.jsonl")); strings.Count(string(text), "\n") > size.Agents/4 {
					break
				}
				if time.Since(began) > 5*time.Minute {
					t.Fatal("no claim was made")
				}
				time.Sleep(time.Millisecond)
			}
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = killed.Wait()
			awaitSessionsEnd(t, s, sessionsOf(0))
			endRuns(t, s, killed.Process.Pid)
			all = append(all[1:], start(0))
			for _, cmd := range all {
				if err := cmd.Wait(); err != nil {
					t.Errorf("a process of agents: %v", err)
				}
			}
			took := time.Since(began)

			done, open := 0, 0
			for _, row := range allTasks(t, s) {
				switch row.State {
				case string(board.Done):
					done++
				default:
					open++
				}
			}
			if done != size.Tasks {
				t.Errorf("%d of %d tasks are done, %d are not", done, size.Tasks, open)
			}
			history, times := readHistory(t, dir)
			for task, ops := range history {
				ofKilled := slices.ContainsFunc(ops, func(o porcupine.Operation) bool {
					return o.Input.(claim).agent < boardload.Handle(size.Agents/processes)
				})
				result := porcupine.CheckOperationsTimeout(claims(ofKilled), ops, 10*time.Second)
				if result == porcupine.Illegal {
					t.Errorf("%s was claimed twice: %v", task, ops)
				}
			}
			slices.Sort(times)
			t.Logf("%d agents in %d processes, %d tasks: %s, %d claims, median %s, p99 %s, longest %s", size.Agents, processes, size.Tasks, took.Round(time.Millisecond), len(times), times[len(times)/2], times[len(times)*99/100], times[len(times)-1])
		})
	}
}

// sessionsOf is the name of the sessions of a process at PostgreSQL.
func sessionsOf(n int) string { return fmt.Sprintf("agents %d", n) }

// awaitSessionsEnd waits until PostgreSQL has carried out or dropped all that a killed process
// has sent.
func awaitSessionsEnd(t *testing.T, s *store.Store, name string) {
	t.Helper()
	for pool := s.PostgresPool(); pool != nil; time.Sleep(time.Millisecond) {
		var n int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// endRuns ends the leases of the runs of a process that was killed.
func endRuns(t *testing.T, s *store.Store, pid int) {
	t.Helper()
	pattern := fmt.Sprintf("%%\\_%d", pid)
	const end = `UPDATE runs SET lease_until_ms = 1, state = 'ended', outcome = 'interrupted', holder = '' WHERE state = 'running' AND id LIKE $1 ESCAPE '\'`
	err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
		if pg := tx.Postgres(); pg != nil {
			_, err = pg.Exec(t.Context(), end, pattern)
		} else {
			_, err = tx.SQLite().ExecContext(t.Context(), end, pattern)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func allTasks(t *testing.T, s *store.Store) (all []loop.Row) {
	t.Helper()
	err := s.View(t.Context(), func(r *store.Reader) (err error) {
		all, err = r.Rows(t.Context(), boardload.Workspace, loop.RowQuery{Set: board.SetTasks, Limit: 100_000})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// readHistory returns the claims of each task, and how long the claims took.
func readHistory(t *testing.T, dir string) (history map[string][]porcupine.Operation, times []time.Duration) {
	t.Helper()
	history = map[string][]porcupine.Operation{}
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	client := 0
	clients := map[string]int{}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		begun := map[string]boardload.Op{} // by agent and task
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var op boardload.Op
			if json.Unmarshal(lines.Bytes(), &op) != nil {
				continue // Cut off by the kill.
			}
			key := op.Agent + " " + op.Task
			if _, known := clients[op.Agent]; !known {
				clients[op.Agent], client = client, client+1
			}
			if !op.Done {
				begun[key] = op
				continue
			}
			history[op.Task] = append(history[op.Task], porcupine.Operation{
				ClientId: clients[op.Agent], Input: claim{op.Agent}, Call: int64(begun[key].At), Output: op.Won, Return: int64(op.At),
			})
			times = append(times, op.At-begun[key].At)
			delete(begun, key)
		}
		_ = file.Close()
		for _, op := range begun {
			history[op.Task] = append(history[op.Task], porcupine.Operation{ClientId: client, Input: claim{op.Agent}, Call: int64(op.At), Return: int64(time.Hour)})
			client++
		}
	}
	return history, times
}
