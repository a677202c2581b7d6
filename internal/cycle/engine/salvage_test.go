package engine_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// lostAt runs the loop of a keeper until it hits a point for the k-th time, where its
// process dies.
func (r *rig) lostAt(target engine.Target, point string, k int) {
	r.t.Helper()
	gone := loop.Holder{PID: 7, Start: 1, Host: r.deps.Self.Host, Node: r.deps.Self.Node}
	r.deps.HolderState = deadIf(gone)
	r.engine = engine.New(r.deps)
	dies := new(fault.Plan).Do(point, k, func(context.Context) error {
		r.steal("lp_w", gone)
		return loop.ErrLeaseLost
	})
	if run, err := r.engine.Run(fault.With(r.t.Context(), dies), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
		r.t.Fatalf("run = %+v, %v, want it lost", run, err)
	}
}

// copies are the folders of the runs' copies, which fn changes.
func (r *rig) copies(fn func(dir string) error) {
	r.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(r.home, "trees", "run_*"))
	if err != nil || len(dirs) == 0 {
		r.t.Fatalf("copies: %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		if err := fn(dir); err != nil {
			r.t.Fatal(err)
		}
	}
}

func replacedByAFile(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("what is this?\n"), 0o600))
}

// forgotten removes the candidates of all runs, and what only they reach.
func (r *rig) forgotten() {
	r.t.Helper()
	for ref := range strings.FieldsSeq(gittest.Run(r.t, r.root, "for-each-ref", "--format=%(refname)", "refs/pawl/candidates")) {
		gittest.Run(r.t, r.root, "update-ref", "-d", ref)
	}
	gittest.Run(r.t, r.root, "prune", "--expire=now")
}

func TestWhatCannotBeKeptOfADeadRunIsSaidAndTheRestIsKept(t *testing.T) {
	const none, candidate, copied = "", "refs/pawl/snapshots/w/1-candidate", "refs/pawl/snapshots/w/1"
	for name, c := range map[string]struct {
		at     string
		damage func(r *rig)
		lost   []string // what is said of it; none: nothing is lost
		kept   string
		aside  bool // the copy is kept as it lies
	}{
		"its copy is intact": {"engine.verify.before", func(*rig) {}, nil, copied, false},
		"it had no copy yet": {"engine.sense.before", func(*rig) {}, nil, none, false},
		"it had worked, and its copy is gone": {
			"engine.gather.before", func(r *rig) { r.copies(os.RemoveAll) },
			[]string{"no snapshot of its work could be made (its copy is gone); nothing is left in ", "-act, and what was done only there is lost"},
			none, false,
		},
		"it had a candidate, and its copy is gone": {
			"engine.verify.before", func(r *rig) { r.copies(os.RemoveAll) },
			[]string{"(its copy is gone); what iteration 1 had done is kept in " + candidate + "; nothing is left in "},
			candidate, false,
		},
		"its copy is a file": {
			"engine.verify.before", func(r *rig) { r.copies(replacedByAFile) },
			[]string{"no snapshot of its work could be made (", "; what iteration 1 had done is kept in " + candidate + "; its files are kept as they lie in "},
			candidate, true,
		},
		"its copy is a file, and the candidate is gone": {
			"engine.verify.before", func(r *rig) { r.copies(replacedByAFile); r.forgotten() },
			[]string{"; its files are kept as they lie in "},
			none, true,
		},
		"its candidate is gone": {"engine.verify.before", (*rig).forgotten, nil, copied, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, target := keeper(t)
			r.lostAt(target, c.at, 1)
			c.damage(r)
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted || rec.Run.State != loop.RunEnded {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			for _, words := range c.lost {
				if !strings.Contains(rec.Lost, words) {
					t.Errorf("it says %q, which lacks %q", rec.Lost, words)
				}
			}
			if (rec.Lost == "") != (c.lost == nil) || !strings.HasSuffix(rec.Run.Detail, rec.Lost) || c.lost != nil && !strings.Contains(strings.Join(r.notes(), "\n"), rec.Lost) {
				t.Errorf("it says %q, its row %q, and the notes are %q", rec.Lost, rec.Run.Detail, r.notes())
			}
			if rec.Run.Snapshot != c.kept || c.kept != "" && gittest.Run(t, r.root, "show", c.kept+":src/a.txt") != "by "+rec.Run.ID {
				t.Errorf("kept in %q, want %q", rec.Run.Snapshot, c.kept)
			}
			copies, err := engine.KeptCopies(r.home)
			if err != nil || (len(copies) == 1) != c.aside || c.aside && (copies[0].RunID != rec.Run.ID || copies[0].When.IsZero() || !strings.Contains(rec.Lost, copies[0].Dir)) {
				t.Errorf("copies = %+v, %v", copies, err)
			}
			r.comesToAGoodEnd(target, c.kept != "")
		})
	}
}

func TestACandidateThatIsGoneIsReplacedByItsCopyAndThatByNothing(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(r *rig)
		lost   []string
		kept   bool
	}{
		"its copy is there": {
			func(*rig) {}, []string{"what the gates saw cannot be kept (keep the candidate of run ", "); the copy that it was taken from is kept instead"}, true,
		},
		"its copy is gone":   {func(r *rig) { r.copies(os.RemoveAll) }, []string{"no snapshot of its work could be made (keep the candidate of run ", "; nothing is left in "}, false},
		"its copy is a file": {func(r *rig) { r.copies(replacedByAFile) }, []string{"no snapshot of its work could be made (keep the candidate of run ", "; its files are kept as they lie in "}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, target := keeper(t)
			r.lostAt(target, "engine.effect.apply.before", 1)
			c.damage(r)
			r.forgotten()
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeFailed || rec.Run.Reason != loop.ReasonEffectFailed || rec.Run.Branch != "" {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			for _, words := range c.lost {
				if !strings.Contains(rec.Lost, words) {
					t.Errorf("it says %q, which lacks %q", rec.Lost, words)
				}
			}
			if !strings.HasSuffix(rec.Run.Detail, "; "+rec.Lost) {
				t.Errorf("its row says %q", rec.Run.Detail)
			}
			if (rec.Run.Snapshot != "") != c.kept || c.kept && gittest.Run(t, r.root, "show", rec.Run.Snapshot+":src/a.txt") != "by "+rec.Run.ID {
				t.Errorf("kept in %q", rec.Run.Snapshot)
			}
			r.comesToAGoodEnd(target, c.kept)
		})
	}
}

// A disk that is full may have room later, and by then nothing is lost.
func TestARunIsNotConcludedWithoutItsWorkWhereALaterTryMayKeepIt(t *testing.T) {
	for name, c := range map[string]struct{ at, then string }{
		"a candidate that is gone":                                {"engine.effect.apply.before", ""},
		"a candidate that is gone, whose effect is known to fail": {"engine.effect.apply.before", `UPDATE effects SET state = 'failed', error = 'no route'`},
		"a copy": {"engine.verify.before", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, target := keeper(t)
			r.lostAt(target, c.at, 1)
			r.forgotten()
			if err := r.exec(c.then); err != nil {
				t.Fatal(err)
			}
			full, err := fault.Parse("workspace.snapshot.before=ENOSPC")
			if err != nil {
				t.Fatal(err)
			}
			if rec, err := r.engine.Recover(fault.With(t.Context(), full), target); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("recover = %+v, %v, want that the disk is full", rec, err)
			}
			if run := r.runs("lp_w")[0]; run.State == loop.RunEnded {
				t.Fatalf("the run has ended %s %q", run.Outcome, run.Detail)
			}
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || gittest.Run(t, r.root, "show", cmp.Or(rec.Run.Branch, rec.Run.Snapshot)+":src/a.txt") != "by "+rec.Run.ID {
				t.Fatalf("recover = %+v, %v, want its work kept", rec, err)
			}
			r.comesToAGoodEnd(target, true)
		})
	}
}

func TestACopyThatWasKeptAsItLiesBecomesASnapshotLater(t *testing.T) {
	r, target := keeper(t)
	r.lostAt(target, "engine.verify.before", 1)
	failing, err := fault.Parse("workspace.snapshot.before=EIO")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.engine.Recover(fault.With(t.Context(), failing), target)
	if err != nil || rec == nil || !strings.Contains(rec.Lost, "its files are kept as they lie in ") {
		t.Fatalf("recover = %+v, %v", rec, err)
	}
	copies, err := engine.KeptCopies(r.home)
	if err != nil || len(copies) != 1 || read(t, filepath.Join(copies[0].Dir, "src/a.txt")) != "by "+rec.Run.ID+"\n" {
		t.Fatalf("copies = %+v, %v", copies, err)
	}
	ref, commit, err := r.engine.SnapshotKept(t.Context(), r.repo, rec.Run)
	if err != nil || ref != "refs/pawl/snapshots/kept/"+rec.Run.ID || gittest.Run(t, r.root, "rev-parse", ref) != commit || gittest.Run(t, r.root, "show", ref+":src/a.txt") != "by "+rec.Run.ID {
		t.Errorf("snapshot = %s %s, %v", ref, commit, err)
	}
	gittest.WriteFile(t, filepath.Join(copies[0].Dir, "src/a.txt"), "one\n")
	if ref, commit, err = r.engine.SnapshotKept(t.Context(), r.repo, rec.Run); err == nil || !strings.Contains(err.Error(), "nothing in it differs") {
		t.Errorf("snapshot of what changed nothing = %s %s, %v", ref, commit, err)
	}
	if err := os.RemoveAll(copies[0].Dir); err != nil {
		t.Fatal(err)
	}
	if ref, commit, err = r.engine.SnapshotKept(t.Context(), r.repo, rec.Run); err == nil {
		t.Errorf("snapshot of nothing = %s %s", ref, commit)
	}
}

func TestAHomeWithoutCopiesThatAreKeptHasNone(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{"", home} {
		if copies, err := engine.KeptCopies(dir); copies != nil || err != nil {
			t.Errorf("in %q: %+v, %v", dir, copies, err)
		}
	}
	gittest.WriteFile(t, filepath.Join(home, "trees", "run_1-act", "a.txt"), "at work\n")
	if copies, err := engine.KeptCopies(home); copies != nil || err != nil {
		t.Errorf("while one works: %+v, %v", copies, err)
	}
	gittest.WriteFile(t, filepath.Join(home, "file", "trees"), "")
	if copies, err := engine.KeptCopies(filepath.Join(home, "file")); err == nil {
		t.Errorf("in a file: %+v", copies)
	}
}

// An item that passed before its process died is proposed, however late it is known.
func TestWhatADeadRunAskedForIsReadOrTheRunIsNotConcluded(t *testing.T) {
	r := one(t)
	gone := loop.Holder{PID: 7, Start: 1, Host: r.deps.Self.Host, Node: r.deps.Self.Node}
	r.deps.HolderState = deadIf(gone)
	r.engine = engine.New(r.deps)
	target := r.target("w", boardLike{nil, []string{"first", "second"}}, loop.Definition{
		Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", MaxItems: 2,
	})
	stolen := untilStopped(t, func() { r.steal("lp_w", gone) })
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		if strings.HasSuffix(variable(req, "PAWL_STEP"), "second") {
			return stolen(ctx, req)
		}
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "first\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	if run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
		t.Fatalf("run = %+v, %v, want it lost", run, err)
	}
	away := new(fault.Plan).Do("engine.recover.claim.after", 1, func(context.Context) error {
		return r.exec("ALTER TABLE effects RENAME TO away")
	})
	if rec, err := r.engine.Recover(fault.With(t.Context(), away), target); err == nil {
		t.Errorf("recover = %+v without what the run had asked for", rec)
	}
	if err := r.exec("ALTER TABLE away RENAME TO effects"); err != nil {
		t.Fatal(err)
	}
	rec, err := r.engine.Recover(t.Context(), target)
	if err != nil || rec == nil || rec.Run.Branch != "pawl/w/1" || gittest.Run(t, r.root, "show", rec.Run.Branch+":src/a.txt") != "first" {
		t.Errorf("recover = %+v, %v, want the first item on its branch", rec, err)
	}
}

// The prompt was written, and nobody noted what became of the turn.
func TestATurnThatNobodySawIsChargedOrItsRunIsNotConcluded(t *testing.T) {
	r, target := keeper(t)
	r.lostAt(target, "engine.verify.before", 1)
	if err := errors.Join(r.exec("DELETE FROM turns"), os.RemoveAll(filepath.Join(r.home, "runs", r.runs("lp_w")[0].ID+".turns")),
		r.exec("CREATE TRIGGER none BEFORE INSERT ON turns BEGIN SELECT RAISE(ABORT, 'a trouble'); END")); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.engine.Recover(t.Context(), target); err == nil {
		t.Errorf("recover = %+v without the row of its turn", rec)
	}
	if err := r.exec("DROP TRIGGER none"); err != nil {
		t.Fatal(err)
	}
	rec, err := r.engine.Recover(t.Context(), target)
	if err != nil || rec == nil || rec.Run.Usage.ChargedTokens() == 0 || len(r.turnRows(rec.Run.ID)) != 1 {
		t.Fatalf("recover = %+v, %v, with %d turns", rec, err, len(r.turnRows(rec.Run.ID)))
	}
	r.comesToAGoodEnd(target, true)
}

func TestADeadRunIsNotConcludedBeforeAllOfItIsRead(t *testing.T) {
	r, target := keeper(t)
	r.lostAt(target, "engine.verify.before", 1)
	if err := r.exec(`UPDATE turns SET body = '{' || body`); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.engine.Recover(t.Context(), target); err == nil || r.runs("lp_w")[0].State == loop.RunEnded {
		t.Errorf("recover = %+v, %v, without its turns", rec, err)
	}
	if err := r.exec(`UPDATE turns SET body = substr(body, 2)`); err != nil {
		t.Fatal(err)
	}
	rec, err := r.engine.Recover(t.Context(), target)
	if err != nil || rec == nil || rec.Run.State != loop.RunEnded || rec.Run.Usage.ChargedTokens() == 0 {
		t.Fatalf("recover = %+v, %v", rec, err)
	}
	r.comesToAGoodEnd(target, true)
}
