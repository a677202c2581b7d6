package audit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func auditOf(r *verbtest.Rig, name string) audit.Findings {
	r.T.Helper()
	a, err := r.Audit.Verify(r.T.Context(), name)
	if err != nil {
		r.T.Fatal(err)
	}
	return a
}

// breaks are all of an audit, as people read them.
func breaks(a audit.Findings) string {
	var b strings.Builder
	for _, c := range a.Chains {
		for _, br := range c.Breaks {
			b.WriteString(br.String() + "\n")
		}
	}
	return b.String()
}

func TestWhatWasDoneToAStoreIsNamedWithItsPlace(t *testing.T) {
	const last = `(SELECT max(seq) FROM audit WHERE kind = 'run')`
	for name, c := range map[string]struct {
		edits []string
		says  string
	}{
		"an entry was edited": {
			[]string{`UPDATE audit SET body = body || ' ' WHERE seq = 3`}, "chain: entry 3 was changed",
		},
		"an entry was removed": {[]string{`DELETE FROM audit WHERE seq = 2`}, "chain: entry 2 is missing"},
		"the last entries were removed": {
			[]string{`DELETE FROM audit WHERE seq >= 4`}, "chain: entry 4 and all behind it are missing",
		},
		"the last entries were removed, and the head moved": {
			[]string{`DELETE FROM audit WHERE seq >= 4`, `UPDATE chains SET links = 3, head = (SELECT hash FROM audit WHERE seq = 3)`},
			"runs: run #2 has ended and has no entry in the chain",
		},
		"the last entries were removed, and the head moved, and the rows of the runs too": {
			[]string{
				`DELETE FROM audit WHERE seq >= 4`, `UPDATE chains SET links = 3, head = (SELECT hash FROM audit WHERE seq = 3)`,
				`DELETE FROM changes`, `DELETE FROM effects WHERE run_id IN (SELECT id FROM runs WHERE n > 1)`,
				`DELETE FROM iterations WHERE run_id IN (SELECT id FROM runs WHERE n > 1)`, `DELETE FROM runs WHERE n > 1`,
			},
			"runs: run #2 is gone",
		},
		"everything was removed": {
			[]string{`DELETE FROM audit`, `DELETE FROM chains`, `DELETE FROM changes`, `DELETE FROM effects`, `DELETE FROM iterations`, `DELETE FROM runs`},
			"runs: run #3 is gone",
		},
		"the outcome of a run was edited": {
			[]string{`UPDATE runs SET outcome = 'landed' WHERE n = 1`}, "runs: run #1 says something else than its entry",
		},
		"the entry of a run is another one": {
			[]string{`UPDATE audit SET run_id = 'run_x' WHERE seq = ` + last}, "was changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := verbtest.New(t)
			r.DefineLoop("tidy", verbtest.WritesTwo)
			for range 3 {
				r.RunLoop(runs.StartRequest{Loop: "tidy"})
			}
			if a := auditOf(r, "tidy"); !a.Intact || a.Chains[0].Lines != 3 {
				t.Fatalf("before: %d lines, %s", a.Chains[0].Lines, breaks(a))
			}
			r.EditStore(c.edits...)
			a := auditOf(r, loops.All)
			if a.Intact || !strings.Contains(breaks(a), c.says) {
				t.Errorf("breaks:\n%swant %q", breaks(a), c.says)
			}
		})
	}
}

func TestAnAuditWhileRunsEndIsNoFalseAlarm(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 10 {
			p, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "tidy"})
			if err == nil {
				_, err = r.Runs.Start(t.Context(), p)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	for n := 0; ; n++ {
		if a := auditOf(r, loops.All); !a.Intact {
			t.Fatalf("audit %d: %s", n, breaks(a))
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

func TestALogIsNotWrittenAnewWhileARunIsLiveOrFromABrokenChain(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	log := filepath.Join(r.Root, ".loops/tidy/run-log.md")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	verbtest.Write(t, r.Root, ".loops/tidy/run-log.md", "something else\n")
	live := r.InsertRun("tidy", r.Self)
	if _, err := r.Audit.RewriteLog(t.Context(), verbtest.Ann, "tidy"); !isHeld(err) {
		t.Errorf("while a run is live: %v, want a HeldError", err)
	}
	live.Outcome = loop.OutcomePaused
	err = r.Store.Update(t.Context(), func(tx *store.Tx) error {
		rt, err := tx.Settle(t.Context(), live, loop.PhaseConclude, false)
		if err != nil {
			return err
		}
		return rt.Link(t.Context(), live.LoopID, loop.LinkRun, live.ID, map[string]any{"n": live.N, "outcome": live.Outcome})
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Audit.RewriteLog(t.Context(), verbtest.Ann, "tidy")
	if err != nil || !l.Changed || l.Kept == "" {
		t.Fatalf("rewrite = %+v, %v", l, err)
	}
	if after, err := os.ReadFile(log); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the log is\n%s\nand was\n%s, %v", after, before, err)
	}
	if kept, err := os.ReadFile(filepath.Join(r.Root, l.Kept)); err != nil || string(kept) != "something else\n" {
		t.Errorf("kept = %q, %v", kept, err)
	}
	if a := auditOf(r, "tidy"); !a.Intact {
		t.Error(breaks(a))
	}
	r.EditStore(`UPDATE audit SET body = '{}' WHERE kind = 'run'`)
	_, err = r.Audit.RewriteLog(t.Context(), verbtest.Ann, "tidy")
	verbtest.WantFault(t, err, loop.ExitError, "make the run log of tidy", "was changed", "audit verify tidy")
}

func isHeld(err error) bool {
	_, held := errors.AsType[*loop.HeldError](err)
	return held
}

func TestALogThatCouldNotBeOpenedIsHealedToWhatTheChainSays(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	log := filepath.Join(r.Root, ".loops/tidy/run-log.md")
	if err := errors.Join(os.Rename(log, log+".away"), os.Mkdir(log, 0o755)); err != nil {
		t.Fatal(err)
	}
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	if a := auditOf(r, "tidy"); a.Intact || !strings.Contains(breaks(a), "not a regular file") {
		t.Errorf("breaks = %s", breaks(a))
	}
	if err := errors.Join(os.Remove(log), os.Rename(log+".away", log)); err != nil {
		t.Fatal(err)
	}
	if a := auditOf(r, "tidy"); !strings.Contains(breaks(a), "run-log.md:4: the line of run #2 is missing") {
		t.Errorf("breaks = %s", breaks(a))
	}
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	if a := auditOf(r, "tidy"); !a.Intact || a.Chains[0].Lines != 3 {
		t.Errorf("healed: %+v %s", a, breaks(a))
	}
}

func TestACopyIsVerifiedWithoutTheStore(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.WritesTwo)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	var copied bytes.Buffer
	if err := r.Audit.Export(t.Context(), loops.All, &copied); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(copied.String(), "\n"), "\n")
	for name, c := range map[string]struct {
		text string
		says string // empty: intact; !: unreadable
	}{
		"whole":                   {strings.Join(lines, ""), ""},
		"without the last":        {strings.Join(lines[:len(lines)-1], ""), "are missing"},
		"without the first":       {lines[0] + strings.Join(lines[2:], ""), "entry 1 is missing"},
		"nothing but the head":    {lines[0], "are missing"},
		"one entry twice":         {strings.Join(lines, "") + "\n" + lines[1], "is missing"},
		"another schema":          {strings.Replace(strings.Join(lines, ""), "audit/v1", "audit/v9", 1), "!line 1"},
		"empty":                   {"", "!line 1"},
		"an entry of no chain":    {lines[0] + `{"chain":"lp_other","seq":1}`, "!line 2"},
		"a line that is not JSON": {lines[0] + "seven\n", "!line 2"},
	} {
		a, err := audit.VerifyCopy(strings.NewReader(c.text))
		if place, unreadable := strings.CutPrefix(c.says, "!"); unreadable {
			if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUnreadable || !strings.Contains(f.What, place) {
				t.Errorf("%s: %v, want a fault at %s", name, err, place)
			}
			continue
		}
		if err != nil || a.Intact != (c.says == "") || !strings.Contains(breaks(a), c.says) {
			t.Errorf("%s: %v %s, want %q", name, err, breaks(a), c.says)
		}
	}
}

func TestAStoreThatWasMadeAnewDoesNotHoldWhatItsCopyHolds(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	var copied bytes.Buffer
	if err := r.Audit.Export(t.Context(), loops.All, &copied); err != nil {
		t.Fatal(err)
	}
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	against := func() audit.Findings {
		t.Helper()
		a := auditOf(r, loops.All)
		if err := a.Against(bytes.NewReader(copied.Bytes())); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := against(); !a.Intact {
		t.Errorf("a store that went on: %s", breaks(a))
	}
	// Everything is written anew, with every hash and every row.
	r.EditStore(`DELETE FROM audit`, `DELETE FROM chains`)
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		id := catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, "tidy")
		rows, err := tx.RunEnds(t.Context(), id)
		for _, run := range rows {
			body := map[string]any{"n": run.N, "outcome": run.Outcome}
			err = errors.Join(err, tx.Link(t.Context(), id, loop.LinkRun, run.ID, body))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.Root, ".loops/tidy/run-log.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Audit.RewriteLog(t.Context(), verbtest.Ann, "tidy"); err != nil {
		t.Fatal(err)
	}
	if a := auditOf(r, loops.All); !a.Intact {
		t.Errorf("without the copy it cannot be told: %s", breaks(a))
	}
	if a := against(); !strings.Contains(breaks(a), "copy: entry 1 is another one than in the copy") {
		t.Errorf("with the copy: %s", breaks(a))
	}
}
