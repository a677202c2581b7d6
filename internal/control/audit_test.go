package control

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // edits a store behind its back
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/protocol/spine"
	"github.com/pawl-run/pawl/internal/store"
)

// edit changes rows of the store as somebody would who has the file.
func (r *rig) edit(statements ...string) {
	r.t.Helper()
	info, err := r.Store.Info(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", info.Location+"?_pragma=busy_timeout(5000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, q := range statements {
		if _, err := db.ExecContext(r.t.Context(), q); err != nil {
			r.t.Fatalf("%s: %v", q, err)
		}
	}
}

func (r *rig) audit(name string) Audit {
	r.t.Helper()
	a, err := r.Audit(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// breaks are all of an audit, as people read them.
func breaks(a Audit) string {
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
			r := newRig(t)
			r.define("tidy", writesTwo)
			for range 3 {
				r.run(RunRequest{Loop: "tidy"})
			}
			if a := r.audit("tidy"); !a.Intact || a.Chains[0].Lines != 3 {
				t.Fatalf("before: %d lines, %s", a.Chains[0].Lines, breaks(a))
			}
			r.edit(c.edits...)
			a := r.audit(All)
			if a.Intact || !strings.Contains(breaks(a), c.says) {
				t.Errorf("breaks:\n%swant %q", breaks(a), c.says)
			}
		})
	}
}

// told makes accounts of runs that all have a line.
func told(n int, at time.Time) []account {
	var list []account
	for i := range n {
		outcomes := []loop.Outcome{loop.OutcomeQuiet, loop.OutcomeProposed, loop.OutcomeFailed}
		list = append(list, account{
			N: int64(i + 1), Outcome: outcomes[i%3], Branch: fmt.Sprintf("pawl/x/%d", i+1), Commit: "c", Tokens: int64(i), at: at.Add(time.Duration(i) * time.Minute),
		})
	}
	return list
}

func logOf(list []account) []string {
	lines := strings.SplitAfter(spine.LogHeader("x"), "\n")
	lines = lines[:len(lines)-1]
	for _, a := range list {
		if forms := a.lines("log"); forms != nil {
			lines = append(lines, forms[0]+"\n")
		}
	}
	return lines
}

func TestEveryEditOfALogIsFoundAtItsLine(t *testing.T) {
	at := time.Date(2026, 9, 3, 8, 0, 0, 0, time.UTC)
	const header = 2
	rapid.Check(t, func(t *rapid.T) {
		list := told(rapid.IntRange(2, 8).Draw(t, "runs"), at)
		lines := logOf(list)
		if f := compareLog(strings.Join(lines, ""), "log", at, list); len(f.breaks) > 0 || f.lines != len(list) {
			t.Fatalf("an untouched log: %d lines, %v", f.lines, f.breaks)
		}
		i := rapid.IntRange(header, len(lines)-1).Draw(t, "line")
		var want int
		switch rapid.SampledFrom([]string{"edit", "remove", "insert", "repeat", "swap", "cut"}).Draw(t, "deed") {
		case "edit":
			text := []byte(lines[i])
			j := rapid.IntRange(len("2026-09-03T08:00:00Z  "), len(text)-2).Draw(t, "byte")
			text[j] ^= 1
			lines[i], want = string(text), i+1
		case "remove":
			lines, want = slices.Delete(lines, i, i+1), i+1
		case "insert":
			lines, want = slices.Insert(lines, i, strings.Replace(lines[i], "run#", "run#9", 1)), i+1
		case "repeat":
			lines, want = slices.Insert(lines, i, lines[i]), i+2
		case "swap":
			j := max(i-1, header)
			lines[i], lines[j] = lines[j], lines[i]
			if want = i + 1; i == j {
				return
			}
		case "cut":
			lines, want = lines[:i], i+1
		}
		f := compareLog(strings.Join(lines, ""), "log", at, list)
		if !slices.ContainsFunc(f.breaks, func(b Break) bool { return b.Line == want }) {
			t.Fatalf("no break at line %d: %v\n%s", want, f.breaks, strings.Join(lines, ""))
		}
	})
}

func TestALineThatTheChainWantsIsThatLineThoughTheClockWasSetBack(t *testing.T) {
	at := time.Date(2026, 9, 3, 8, 0, 0, 0, time.UTC)
	list := told(3, at)
	f := compareLog(strings.Join(logOf(list), ""), "log", at.Add(2*time.Hour), list)
	if len(f.breaks) > 0 || f.lines != 3 || len(f.earlier) != 0 {
		t.Errorf("%d lines, %d earlier, breaks %v; want the 3 lines of the chain", f.lines, len(f.earlier), f.breaks)
	}
}

func TestLinesFromBeforeTheChainAreCountedAndNotVouchedFor(t *testing.T) {
	at := time.Date(2026, 9, 3, 8, 0, 0, 0, time.UTC)
	old := "2026-06-22T14:05:00Z run#142 action=reported pr=412 outcome=escalated tokens=18420\n"
	list := told(2, at)
	lines := logOf(list)
	above := strings.Join(slices.Insert(slices.Clone(lines), 2, old), "")
	if f := compareLog(above, "log", at, list); len(f.breaks) > 0 || len(f.earlier) != 1 {
		t.Errorf("above: %v, %d earlier", f.breaks, len(f.earlier))
	}
	// What another program left is no line of the chain that somebody changed: a line
	// that was cut off, a remark, a run of the second in which the chain begins.
	cut, remark, same := old[:40]+"\n", "moved here\n", strings.Replace(old, "2026-06-22T14:05:00Z", "2026-09-03T08:00:00Z", 1)
	goesOn := slices.Clone(list)
	for i := range goesOn {
		goesOn[i].N += 142
	}
	adopted := strings.Join(slices.Insert(logOf(goesOn), 2, remark, old, cut, same, cut), "")
	if f := compareLog(adopted, "log", at, goesOn); len(f.breaks) > 0 || len(f.earlier) != 5 {
		t.Errorf("adopted: %v, %d earlier", f.breaks, len(f.earlier))
	}
	if f := compareLog(remark+strings.Join(lines, ""), "log", at, list); len(f.breaks) != 1 {
		t.Errorf("a remark above a log that nobody adopted: %v, want a break", f.breaks)
	}
	below := strings.Join(append(slices.Clone(lines), old), "")
	if f := compareLog(below, "log", at, list); len(f.breaks) != 1 || f.breaks[0].Line != 5 {
		t.Errorf("below the chain's own lines: %v, want a break at line 5", f.breaks)
	}
}

func TestAnAuditWhileRunsEndIsNoFalseAlarm(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	r.run(RunRequest{Loop: "tidy"})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 10 {
			p, err := r.Prepare(t.Context(), RunRequest{Loop: "tidy"})
			if err == nil {
				_, err = r.Start(t.Context(), p)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	for n := 0; ; n++ {
		if a := r.audit(All); !a.Intact {
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
	r := newRig(t)
	r.define("tidy", findsNone)
	r.run(RunRequest{Loop: "tidy"})
	log := filepath.Join(r.Root(), ".loops/tidy/run-log.md")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.Root(), ".loops/tidy/run-log.md", "something else\n")
	live := r.fire("tidy", r.self)
	if _, err := r.RewriteLog(t.Context(), ann, "tidy"); !isHeld(err) {
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
	l, err := r.RewriteLog(t.Context(), ann, "tidy")
	if err != nil || !l.Changed || l.Kept == "" {
		t.Fatalf("rewrite = %+v, %v", l, err)
	}
	if after, err := os.ReadFile(log); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the log is\n%s\nand was\n%s, %v", after, before, err)
	}
	if kept, err := os.ReadFile(filepath.Join(r.Root(), l.Kept)); err != nil || string(kept) != "something else\n" {
		t.Errorf("kept = %q, %v", kept, err)
	}
	if a := r.audit("tidy"); !a.Intact {
		t.Error(breaks(a))
	}
	r.edit(`UPDATE audit SET body = '{}' WHERE kind = 'run'`)
	_, err = r.RewriteLog(t.Context(), ann, "tidy")
	wantFault(t, err, loop.ExitError, "make the run log of tidy", "was changed", "audit verify tidy")
}

func isHeld(err error) bool {
	_, held := errors.AsType[*loop.HeldError](err)
	return held
}

func TestALogThatCouldNotBeOpenedIsHealedToWhatTheChainSays(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	r.run(RunRequest{Loop: "tidy"})
	log := filepath.Join(r.Root(), ".loops/tidy/run-log.md")
	if err := errors.Join(os.Rename(log, log+".away"), os.Mkdir(log, 0o755)); err != nil {
		t.Fatal(err)
	}
	r.run(RunRequest{Loop: "tidy"})
	if a := r.audit("tidy"); a.Intact || !strings.Contains(breaks(a), "not a regular file") {
		t.Errorf("breaks = %s", breaks(a))
	}
	if err := errors.Join(os.Remove(log), os.Rename(log+".away", log)); err != nil {
		t.Fatal(err)
	}
	if a := r.audit("tidy"); !strings.Contains(breaks(a), "run-log.md:4: the line of run #2 is missing") {
		t.Errorf("breaks = %s", breaks(a))
	}
	r.run(RunRequest{Loop: "tidy"})
	if a := r.audit("tidy"); !a.Intact || a.Chains[0].Lines != 3 {
		t.Errorf("healed: %+v %s", a, breaks(a))
	}
}

func TestACopyIsVerifiedWithoutTheStore(t *testing.T) {
	r := newRig(t)
	r.define("tidy", writesTwo)
	r.run(RunRequest{Loop: "tidy"})
	var copied bytes.Buffer
	if err := r.ExportAudit(t.Context(), All, &copied); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(copied.String(), "\n"), "\n")
	for name, c := range map[string]struct {
		text string
		says string // empty: intact; !: unreadable
	}{
		"whole":                  {strings.Join(lines, ""), ""},
		"without the last":       {strings.Join(lines[:len(lines)-1], ""), "are missing"},
		"without the first":      {lines[0] + strings.Join(lines[2:], ""), "entry 1 is missing"},
		"nothing but the head":   {lines[0], "are missing"},
		"one entry twice":        {strings.Join(lines, "") + "\n" + lines[1], "is missing"},
		"another schema":         {strings.Replace(strings.Join(lines, ""), "audit/v1", "audit/v9", 1), "!line 1"},
		"empty":                  {"", "!line 1"},
		"an entry of no chain":   {lines[0] + `{"chain":"lp_other","seq":1}`, "!line 2"},
		"a line that is no JSON": {lines[0] + "seven\n", "!line 2"},
	} {
		a, err := AuditCopy(strings.NewReader(c.text))
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
	r := newRig(t)
	r.define("tidy", findsNone)
	r.run(RunRequest{Loop: "tidy"})
	var copied bytes.Buffer
	if err := r.ExportAudit(t.Context(), All, &copied); err != nil {
		t.Fatal(err)
	}
	r.run(RunRequest{Loop: "tidy"})
	against := func() Audit {
		t.Helper()
		a := r.audit(All)
		if err := a.Against(bytes.NewReader(copied.Bytes())); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := against(); !a.Intact {
		t.Errorf("a store that went on: %s", breaks(a))
	}
	// Everything is written anew, with every hash and every row.
	r.edit(`DELETE FROM audit`, `DELETE FROM chains`)
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		id := catalog.LoopID(r.ws.ID, loop.ProtocolSpine, "tidy")
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
	if err := os.Remove(filepath.Join(r.Root(), ".loops/tidy/run-log.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.RewriteLog(t.Context(), ann, "tidy"); err != nil {
		t.Fatal(err)
	}
	if a := r.audit(All); !a.Intact {
		t.Errorf("without the copy it cannot be told: %s", breaks(a))
	}
	if a := against(); !strings.Contains(breaks(a), "copy: entry 1 is another one than in the copy") {
		t.Errorf("with the copy: %s", breaks(a))
	}
}

func FuzzACopyNeverVerifiesWithOtherEntries(f *testing.F) {
	links := []loop.Link{}
	s, err := store.Open(context.Background(), store.Options{Database: filepath.Join(f.TempDir(), "p.db"), Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.Update(context.Background(), func(tx *store.Tx) error {
		for i := range 3 {
			if err := tx.Link(context.Background(), "lp", loop.LinkKill, "", map[string]int{"i": i}); err != nil {
				return err
			}
		}
		var err error
		links, err = tx.Chain(context.Background(), "lp")
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	head := fmt.Sprintf(`{"schema":"pawl.audit/v1","chains":[{"chain":"lp","links":3,"head":%q}]}`, links[2].Hash)
	var body strings.Builder
	for _, l := range links {
		line, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		body.WriteString(string(line) + "\n")
	}
	f.Add(body.String())
	f.Add(strings.Replace(body.String(), `"seq":2`, `"seq":3`, 1))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		chains, err := readCopy(strings.NewReader(head + "\n" + text))
		if err != nil || !audited(chains).Intact {
			return
		}
		for i, l := range chains[0].links {
			if l != links[i] {
				t.Errorf("entry %d is %+v, want %+v", i+1, l, links[i])
			}
		}
	})
}
