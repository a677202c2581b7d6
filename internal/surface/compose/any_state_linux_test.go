package compose_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// wreck is what a process leaves that was killed at some point, and what people,
// programs and disks did to it since.
type wreck struct {
	*fixture

	obstacles []string // files that only a person can remove: another program may be at work
	logged    bool     // somebody has changed the run log, which its audit then says
}

// damages are the ways in which rows and files are found. Each one is real, or as
// bad as one that is: a full disk, a power cut, `git gc`, a backup that was put
// back, a person who tidies up. A damage that has nothing to act on does nothing.
var damages = map[string]func(w *wreck){
	// Objects and refs.
	"garbage is collected":          func(w *wreck) { w.maybe("gc", "--quiet", "--prune=now") },
	"candidate refs are deleted":    func(w *wreck) { w.deleteRefs("refs/pawl/candidates") },
	"snapshot refs are deleted":     func(w *wreck) { w.deleteRefs("refs/pawl/snapshots") },
	"proposed branches are deleted": func(w *wreck) { w.deleteRefs("refs/heads/pawl") },
	"all refs are packed":           func(w *wreck) { w.git("pack-refs", "--all") },
	"the candidate refs are cut":    func(w *wreck) { w.overwrite(".git/refs/pawl/candidates/*/*", "") },
	"the proposed branch is taken":  func(w *wreck) { w.git("update-ref", "refs/heads/pawl/fix/1", "main") },
	"the snapshot is taken":         func(w *wreck) { w.git("update-ref", "refs/pawl/snapshots/fix/1", "main") },
	"objects of nobody are deleted": func(w *wreck) { w.maybe("prune", "--expire=now") },
	"a snapshot is locked":          func(w *wreck) { w.plant(".git/refs/pawl/snapshots/fix/1.lock", "") },
	"the candidates are locked": func(w *wreck) {
		w.each(filepath.Join(w.root, ".git/refs/pawl/candidates/*"), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "1.lock"), nil, 0o600)
		})
	},
	"the proposed branch is locked":   func(w *wreck) { w.plant(".git/refs/heads/pawl/fix/1.lock", "") },
	"the packed refs are locked":      func(w *wreck) { w.obstruct(".git/packed-refs.lock") },
	"the index is locked":             func(w *wreck) { w.obstruct(".git/index.lock") },
	"the journal of a landing is cut": func(w *wreck) { w.plant(".git/pawl-advance", `{"Branch":"ma`) },

	// Copies and folders of runs in pawl's home.
	"the copies are gone":       func(w *wreck) { w.each("trees/run_*", os.RemoveAll) },
	"the copies are files":      func(w *wreck) { w.each("trees/run_*", replaceByFile) },
	"the copies cannot be read": func(w *wreck) { w.each("trees/run_*", func(p string) error { return os.Chmod(p, 0) }) },
	"the copies are empty":      func(w *wreck) { w.each("trees/run_*/*", os.RemoveAll) },
	"the git of the copies is broken": func(w *wreck) {
		w.each("trees/run_*/.git", replaceByFile)
		w.each("trees/run_*/upper/.git", replaceByFile)
	},
	"the records of copies are cut":  func(w *wreck) { w.each("trees/.run_*.layers", replaceByFile) },
	"the records of copies are gone": func(w *wreck) { w.each("trees/.run_*", os.RemoveAll) },
	"a copy was half made": func(w *wreck) {
		w.each("trees/run_*", func(p string) error { return os.Rename(p, filepath.Join(filepath.Dir(p), "."+filepath.Base(p)+".new")) })
	},
	"layers and packed histories are gone": func(w *wreck) {
		w.each("layers", os.RemoveAll)
		w.each("mirrors", os.RemoveAll)
	},
	"the folders of turns are gone":  func(w *wreck) { w.each("runs/*/*", os.RemoveAll) },
	"the folders of runs are gone":   func(w *wreck) { w.each("runs/*", os.RemoveAll) },
	"the folders of runs are files":  func(w *wreck) { w.each("runs/*", replaceByFile) },
	"the locks of files are written": func(w *wreck) { w.each("written/*", replaceByFile) },

	// The loop's memory.
	"STATE.md is gone":    func(w *wreck) { w.each(w.loops("STATE.md"), os.Remove) },
	"STATE.md is cut":     func(w *wreck) { w.each(w.loops("STATE.md"), func(p string) error { return os.Truncate(p, 60) }) },
	"STATE.md is empty":   func(w *wreck) { w.each(w.loops("STATE.md"), func(p string) error { return os.Truncate(p, 0) }) },
	"STATE.md is foreign": func(w *wreck) { w.each(w.loops("STATE.md"), replaceByFile) },
	"STATE.md is binary":  func(w *wreck) { w.overwrite(".loops/fix/STATE.md", "\x00\xff\xfe## Priority\n\x00") },
	"STATE.md is in conflict": func(w *wreck) {
		w.each(w.loops("STATE.md"), func(p string) error {
			text, err := os.ReadFile(p)
			return errors.Join(err, os.WriteFile(p, []byte("<<<<<<< HEAD\n"+string(text)+"=======\n"+string(text)+">>>>>>> other\n"), 0o600))
		})
	},
	"the run log is cut": func(w *wreck) {
		w.logged = true
		w.each(w.loops("run-log.md"), func(p string) error {
			info, err := os.Stat(p)
			return errors.Join(err, os.Truncate(p, info.Size()-min(info.Size(), 10)))
		})
	},
	"the run log is gone": func(w *wreck) { w.logged = true; w.each(w.loops("run-log.md"), os.Remove) },

	// Rows.
	"the lease is past":               func(w *wreck) { w.lapse() },
	"the holder is of another host":   func(w *wreck) { w.heldBy(loop.Holder{PID: 1, Start: 1, Boot: "b", Host: "elsewhere"}) },
	"the holder is a process of old":  func(w *wreck) { w.sql(`UPDATE runs SET fence = fence + 7 WHERE state IN ('running', 'settling')`) },
	"the run was asked to stop":       func(w *wreck) { w.sql(`UPDATE runs SET cancel = 'enough' WHERE state IN ('running', 'settling')`) },
	"the iterations are open":         func(w *wreck) { w.sql(`UPDATE iterations SET verdict = 'intended'`) },
	"the effects are only requested":  func(w *wreck) { w.effects(loop.EffectRequested) },
	"the effects are being applied":   func(w *wreck) { w.effects(loop.EffectApplying) },
	"the effects are done":            func(w *wreck) { w.effects(loop.EffectDone) },
	"the effects have failed":         func(w *wreck) { w.effects(loop.EffectFailed) },
	"the effects were refused":        func(w *wreck) { w.effects(loop.EffectRefused) },
	"the approval has an answer":      func(w *wreck) { w.sql(`UPDATE approvals SET state = 'approved' WHERE state = 'open'`) },
	"the approval was rejected":       func(w *wreck) { w.sql(`UPDATE approvals SET state = 'rejected' WHERE state = 'open'`) },
	"the time of the approval is out": func(w *wreck) { w.sql(`UPDATE approvals SET expires_ms = 1`) },
	"the approval is open again":      func(w *wreck) { w.sql(`UPDATE approvals SET state = 'open'`) },

	// The checkout.
	"the checkout is dirty":          func(w *wreck) { w.overwrite("src/a.txt", "by a person\n") },
	"files of the checkout are gone": func(w *wreck) { w.each(filepath.Join(w.root, "src"), os.RemoveAll) },
	"another branch is checked out":  func(w *wreck) { w.git("checkout", "-q", "-B", "side") },
	"no branch is checked out":       func(w *wreck) { w.git("checkout", "-q", "--detach") },
	"the branch has moved":           func(w *wreck) { w.git("commit", "-q", "--allow-empty", "-m", "by a person") },
	"the branch was rewritten": func(w *wreck) {
		w.git("commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
		w.git("reflog", "expire", "--expire=now", "--all")
		w.maybe("gc", "--quiet", "--prune=now")
	},
}

func replaceByFile(path string) error {
	return errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("what is this?\n"), 0o600))
}

func (w *wreck) loops(name string) string { return filepath.Join(w.root, ".loops", "fix", name) }

// each calls fn with what matches a pattern, below pawl's home unless it is absolute.
func (w *wreck) each(pattern string, fn func(string) error) {
	w.t.Helper()
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(w.home, pattern)
	}
	paths, err := filepath.Glob(pattern)
	for _, path := range paths {
		err = errors.Join(err, fn(path))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
}

func (w *wreck) overwrite(pattern, text string) {
	w.t.Helper()
	w.each(filepath.Join(w.root, pattern), func(path string) error { return os.WriteFile(path, []byte(text), 0o600) })
}

func (w *wreck) plant(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// obstruct plants the lock of another program, which may be at work. Only a person
// knows that it is not.
func (w *wreck) obstruct(name string) {
	w.t.Helper()
	w.plant(name, "")
	w.obstacles = append(w.obstacles, filepath.Join(w.root, name))
}

func (w *wreck) deleteRefs(prefix string) {
	w.t.Helper()
	for line := range strings.Lines(w.git("for-each-ref", "--format=%(refname)", prefix)) {
		if ref := strings.TrimSpace(line); strings.HasPrefix(ref, "refs/") { // Else it is a warning.
			w.maybe("update-ref", "-d", ref)
		}
	}
}

// maybe runs git, which may refuse to work on what is broken already.
func (w *wreck) maybe(args ...string) {
	w.t.Helper()
	_, _ = gittest.Try(w.t.Context(), w.root, args...)
}

func (w *wreck) heldBy(h loop.Holder) {
	w.t.Helper()
	text, err := json.Marshal(h)
	if err != nil {
		w.t.Fatal(err)
	}
	w.sql(fmt.Sprintf(`UPDATE runs SET holder = '%s', lease_until_ms = 1 WHERE state IN ('running', 'settling')`, text))
}

// effects changes the state of the effects of a run that has not ended.
func (w *wreck) effects(to loop.EffectState) {
	w.t.Helper()
	w.sql(fmt.Sprintf(`UPDATE effects SET state = '%s' WHERE run_id IN (SELECT id FROM runs WHERE state = 'settling')`, to))
}

// sql changes rows behind pawl's back.
func (s *fixture) sql(statement string) {
	s.t.Helper()
	where := s.database
	if where == "" {
		where = filepath.Join(s.home, "pawl.db")
	}
	db, err := store.Open(s.t.Context(), store.Options{Database: where, Now: clock.System{}.Now})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.Update(s.t.Context(), func(tx *store.Tx) error {
		if pg := tx.Postgres(); pg != nil {
			_, err := pg.Exec(s.t.Context(), statement)
			return err
		}
		_, err := tx.SQLite().ExecContext(s.t.Context(), statement)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// freshState is a memory with one new item, as a person may write it.
const freshState = "# fix — STATE\n_Updated: 2026-01-01T00:00:00Z · run #%d · readiness 100/100_\n\n" +
	"## Priority   (act on these next)\n- [P1] a.txt is wrong once more\n\n## Watch\n- (none yet)\n\n## Noise\n- (none yet)\n"

// must runs a child until it succeeds. Where it does not, it has to name what a
// person removes, who then does.
func (w *wreck) must(verb string) *told {
	w.t.Helper()
	for {
		v, said := w.try(verb)
		if said == "" {
			return v
		}
		i := slices.IndexFunc(w.obstacles, func(path string) bool { return strings.Contains(said, path) })
		if i < 0 {
			w.t.Fatalf("%s fails, and says nothing that a person could do: %s", verb, said)
		}
		if err := os.Remove(w.obstacles[i]); err != nil {
			w.t.Fatal(err)
		}
		w.obstacles = slices.Delete(w.obstacles, i, i+1)
	}
}

// checkRunnable is the property: recovery leads to a loop that runs, nothing is
// left behind, and what is lost was said.
func (w *wreck) checkRunnable() {
	t := w.t
	t.Helper()
	v := w.must("recover")
	if again := w.must("recover"); len(again.Recovered) > 0 {
		t.Errorf("a second recovery found %v", again.Recovered)
	}
	w.checkSaid(v)
	if len(w.obstacles) == 0 {
		w.nothingLeft()
	}
	if text, err := os.ReadFile(w.loops("STATE.md")); err == nil && strings.HasPrefix(string(text), "<<<<<<< ") { // No run starts until a person resolves it.
		if err := os.WriteFile(w.loops("STATE.md"), fmt.Appendf(nil, freshState, 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next := w.must("run")
	// The memory was lost or had to be put aside, or holds no item any more: a person writes one.
	if next.Run.Outcome == loop.OutcomeQuiet || next.Run.Reason == loop.ReasonMemory {
		if err := os.WriteFile(w.loops("STATE.md"), fmt.Appendf(nil, freshState, next.Run.N), 0o600); err != nil {
			t.Fatal(err)
		}
		next = w.must("run")
	}
	if next.Run.Outcome != loop.OutcomeProposed {
		t.Errorf("the next run is %s %s %q", next.Run.Outcome, next.Run.Reason, next.Run.Detail)
	}
	for _, path := range w.obstacles {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
	w.must("recover")
	w.nothingLeft()
	w.checkAudit()
}

// checkSaid holds that of a run that had done something, the work is kept, or it
// was said that it is not.
func (w *wreck) checkSaid(v *told) {
	w.t.Helper()
	for _, rec := range v.Recovered {
		f := strings.Fields(rec)
		if len(f) == 4 {
			w.git("rev-parse", "--verify", "--quiet", f[3]+"^{tree}")
			continue
		}
		if died := f[1]; (died == "gather" || died == "verify") && v.Lost == "" {
			w.t.Errorf("%q: nothing is kept, and nothing is said of it", rec)
		}
	}
	for _, dir := range strings.FieldsFunc(v.Lost, func(r rune) bool { return r == ' ' || r == ';' }) {
		if _, err := os.Lstat(dir); strings.Contains(dir, "kept-") && err != nil {
			w.t.Errorf("it says %q: %v", v.Lost, err)
		}
	}
}

func (w *wreck) checkAudit() {
	t := w.t
	t.Helper()
	found, err := w.reader().Audit.Verify(t.Context(), "fix")
	if err != nil {
		t.Fatal(err)
	}
	for _, chain := range found.Chains {
		for _, b := range chain.Breaks {
			if !w.logged || !strings.Contains(b.Where, "run-log.md") {
				t.Errorf("audit verify: %s: found %q, want %q", b, b.Found, b.Want)
			}
		}
	}
}

// ownContent makes the change of each run another one.
const ownContent = `echo "$n $PAWL_RUN" > src/a.txt`

func wreckedFixture(t *testing.T, database string) *wreck {
	t.Helper()
	s := newFixture(t, database)
	text := readFile(t, filepath.Join(s.root, ".loops/fix/loop.config.yaml"))
	text = strings.Replace(text, `echo "$n" > src/a.txt`, ownContent, 1)
	if !strings.Contains(text, ownContent) {
		t.Fatal("the agent of the crash tests is another one")
	}
	if err := os.WriteFile(filepath.Join(s.root, ".loops/fix/loop.config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git("commit", "-q", "-a", "-m", "another agent")
	return &wreck{fixture: s}
}

// No state of rows and files may exist from which `pawl recover` does not lead to a
// loop that runs. A state is a run, or a landing, that was killed at any point, with
// up to four damages since. -rapid.checks=N tries N states of each database.
func TestFromAnyStateRecoveryLeadsToALoopThatRuns(t *testing.T) {
	names := slices.Sorted(maps.Keys(damages))
	for _, c := range []struct {
		name string
		some int
	}{{"sqlite", 3}, {"postgres", 1}} {
		t.Run(c.name, func(t *testing.T) {
			sample.SameChecks(t, c.some)
			database := ""
			if c.name == "postgres" {
				database = storetest.PostgreSQL(t)
			}
			running, landing := flowNamed(t, "run").points(t, c.name, database), flowNamed(t, "landing").points(t, c.name, database)
			// Most points are before there is any work, or after it has a branch.
			working := []string{"engine.act.after:2", "engine.gather.candidate.after:2", "engine.verify.gates.after:2", "engine.effect.apply.before:1", "git.candidate.drop.before:1"}
			rapid.Check(t, func(rt *rapid.T) {
				verb, at := "run", ""
				if rapid.IntRange(0, 3).Draw(rt, "verb") == 0 {
					verb, at = "approve", rapid.SampledFrom(landing).Draw(rt, "killed at")
				} else {
					at = rapid.SampledFrom(slices.Concat(working, []string{rapid.SampledFrom(running).Draw(rt, "any point")})).Draw(rt, "killed at")
				}
				done := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(rt, "damages")
				whole := t.Run(verb+" killed at "+at+", "+strings.Join(done, ", "), func(t *testing.T) {
					w := wreckedFixture(t, database)
					if verb == "approve" {
						w.pawl("run")
					}
					w.pawl(verb, "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at)
					for _, name := range done {
						damages[name](w)
					}
					w.checkRunnable()
				})
				if !whole {
					rt.Fatalf("the loop does not run")
				}
			})
		})
	}
}

// Of two sides of a merge nothing says which one counts, so that the memory is not
// opened. What the log says of the run does not depend on it.
func TestARunThatEndsWhileItsMemoryIsBeingMergedStillHasItsLogLine(t *testing.T) {
	w := wreckedFixture(t, "")
	w.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1")
	damages["STATE.md is in conflict"](w)
	merging := readFile(t, w.loops("STATE.md"))
	w.pawl("recover")
	entries, bad := runlog.Parse(readFile(t, w.loops("run-log.md")))
	if len(entries) != 1 || len(bad) > 0 || entries[0].Run != 1 || entries[0].Outcome != "interrupted" {
		t.Errorf("run-log.md has %+v, and lines %v that cannot be read; want the line of run 1", entries, bad)
	}
	if now := readFile(t, w.loops("STATE.md")); now != merging {
		t.Errorf("STATE.md was changed to\n%s", now)
	}
	w.checkRunnable()
	if entries, _ := runlog.Parse(readFile(t, w.loops("run-log.md"))); len(entries) != 2 || entries[0].Run != 1 || entries[1].Run != 2 {
		t.Errorf("after the next run run-log.md has %+v, want one line for each run", entries)
	}
}
