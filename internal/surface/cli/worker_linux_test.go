package cli_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestAWorkerFiresAndExecutesTheLoopThatAsksForItsLabel(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t)
	p := newPlace(t, t.TempDir())
	cmd := exec.CommandContext(t.Context(), "pawl", "worker", "--database", database, "--labels", "gpu,linux", "--workers", "1")
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), p.env // The flag alone names the store.
	p.env = append(slices.Clone(p.env), "PAWL_DATABASE="+database)
	withLoop("node_labels", "[gpu]", "cadence", "24h")(p)
	p.pawl("recover") // Registers the repository, which a worker does not.
	if out, status, _ := p.run("pawl", "run", "tidy"); status != 10 || !strings.Contains(out, "no machine that is there has the label gpu") {
		t.Errorf("without the label a run exits %d:\n%s", status, out)
	}

	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	requireNoError(p, err)
	requireNoError(p, cmd.Start())
	ended := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // After which a hanging test is given up.
	defer ended.Stop()
	lines := bufio.NewScanner(out)
	var said []string
	waitFor := func(pattern string) {
		t.Helper()
		for lines.Scan() {
			if said = append(said, lines.Text()); regexp.MustCompile(pattern).MatchString(lines.Text()) {
				return
			}
		}
		_ = cmd.Wait()
		t.Fatalf("it never said %s, but %q and %s", pattern, said, words.String())
	}
	waitFor(`^this node is .* \(labels: gpu linux\)$`)
	waitFor(`^pawl is up: 1 loop in 1 workspace; `)
	conn, err := pgx.Connect(t.Context(), database)
	requireNoError(p, err)
	due, err := conn.Exec(t.Context(), `UPDATE loops SET planned_ms = $1, due_ms = $1 WHERE name = 'tidy' AND due_ms > 0`, time.Now().Add(-26*time.Hour).UnixMilli())
	requireNoError(p, err)
	requireNoError(p, conn.Close(t.Context()))
	if due.RowsAffected() != 1 {
		t.Fatal("the loop is not registered")
	}
	p.pawl("reload")
	waitFor(` tidy#1 fires$`)
	waitFor(` tidy#1 ✓ proposed pawl/tidy/1: `)
	if out := p.pawl("show", "tidy#1", "--jq", ".trigger"); out != "schedule\n" {
		t.Errorf("the run was fired by %q", out)
	}
	if out := p.pawl("down"); out != "pawl up has ended\n" {
		t.Errorf("pawl down says %q", out)
	}
	if err := cmd.Wait(); err != nil || words.Len() > 0 {
		t.Errorf("it ended with %v and said %q", err, words.String())
	}
}
