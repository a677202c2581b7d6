package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// diary works on its goal, looks at a command and at its memory first, and writes a
// line about everything.
type diary struct{}

func (diary) Open(_ context.Context, v engine.View) (engine.Session, error) {
	if _, err := v.Files.Read(".loops/w/log.md"); err != nil {
		return nil, err
	}
	s := &diarySession{scribeSession: scribeSession{boardSession{boardLike{}, v}}}
	return s, nil
}

type diarySession struct{ scribeSession }

func (s *diarySession) Sources() []engine.Source {
	if s.v.Definition.Sense == loop.SenseGates {
		return []engine.Source{{Name: "gates", Gates: true, Quiet: engine.QuietOnPass}}
	}
	return (&pinned{s.boardSession}).Sources()
}

func (s *diarySession) Candidates(sensed engine.Sensed, now time.Time) []plan.Candidate {
	return (&pinned{s.boardSession}).Candidates(sensed, now)
}

// flow is something that the engine does in a loop that was prepared for it.
type flow struct {
	prepare func(r *rig, target *engine.Target) engine.Firing
	do      func(ctx context.Context, r *rig, target engine.Target, f engine.Firing) (loop.Run, error)
	want    loop.Outcome
	readsAt []string // points behind which much is read
}

func fires(ctx context.Context, r *rig, target engine.Target, f engine.Firing) (loop.Run, error) {
	return r.engine.Run(ctx, target, f)
}

var flows = map[string]flow{
	"a run": {
		readsAt: []string{"engine.claim.commit.after", "engine.decide.commit.after", "engine.conclude.commit.after"},
		prepare: func(*rig, *engine.Target) engine.Firing { return engine.Firing{Trigger: "manual"} },
		do:      fires, want: loop.OutcomeProposed,
	},
	"a run that its gates ask for": {
		readsAt: []string{"engine.sense.before"},
		prepare: func(_ *rig, target *engine.Target) engine.Firing {
			target.Definition.Sense = loop.SenseGates
			return engine.Firing{Trigger: "manual"}
		},
		do: fires, want: loop.OutcomeProposed,
	},
	"a landing that nobody is asked about": {
		readsAt: []string{"engine.verify.gates.after"},
		prepare: func(r *rig, target *engine.Target) engine.Firing {
			locked := func(version string) string {
				return `{"name":"x","lockfileVersion":3,"packages":{"node_modules/a":{"version":"` + version + `","resolved":"https://example.com/a-` +
					version + `.tgz","integrity":"sha512-` + strings.Repeat(version[4:], 86) + `=="}}}` + "\n"
			}
			r.works = "package-lock.json"
			gittest.WriteFile(r.t, filepath.Join(r.root, r.works), locked("1.0.0"))
			gittest.Run(r.t, r.root, "checkout", "-qb", "work")
			gittest.Run(r.t, r.root, "add", "-A")
			gittest.Run(r.t, r.root, "commit", "-qm", "a lockfile")
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(r.t, filepath.Join(req.Dir, r.works), locked("1.0.1"))
				return says(r.t, req, `{"outcome":"done","summary":"written"}`)
			}
			def := &target.Definition
			def.Tier, def.Autoland, def.Scope, def.Sense, def.Verify = loop.TierUnattended, []string{"lockfile-patch"}, []string{r.works}, "false", "true"
			return engine.Firing{Trigger: "manual"}
		},
		do: fires, want: loop.OutcomeLanded,
	},
	"a landing": {
		readsAt: []string{"engine.claim.commit.after", "engine.effect.apply.before"},
		prepare: func(r *rig, target *engine.Target) engine.Firing {
			return engine.Yes(r.run(*target, engine.Firing{}).Approval, loop.Answer{By: "Ada", From: "test"})
		},
		do: fires, want: loop.OutcomeLanded,
	},
	"a rebase": {
		readsAt: []string{"engine.claim.commit.after"},
		prepare: func(r *rig, target *engine.Target) engine.Firing {
			run := r.run(*target, engine.Firing{})
			gittest.WriteFile(r.t, filepath.Join(r.root, "README.md"), "moved\n")
			gittest.Run(r.t, r.root, "commit", "-qam", "moved")
			r.void(run.Approval)
			return engine.Again(run.Approval, loop.Answer{By: "Ada", From: "test"})
		},
		do: fires, want: loop.OutcomeProposed,
	},
	"a question": {
		readsAt: []string{"engine.act.after"},
		prepare: func(r *rig, _ *engine.Target) engine.Firing {
			r.asks()
			return engine.Firing{Trigger: "manual"}
		},
		do: fires, want: loop.OutcomeWaiting,
	},
	"an approved command": {
		readsAt: []string{"engine.claim.commit.after", "engine.approved.before"},
		prepare: func(r *rig, target *engine.Target) engine.Firing {
			works := r.agent
			r.asks()
			id := r.run(*target, engine.Firing{}).Approval
			r.agent = works
			return engine.Yes(id, loop.Answer{By: "Ada", From: "test"})
		},
		do: fires, want: loop.OutcomeProposed,
	},
	"a recovery": {
		readsAt: []string{"engine.recover.claim.after"},
		prepare: func(r *rig, target *engine.Target) engine.Firing {
			failing, err := fault.Parse("engine.effect.apply.before=EIO")
			if err != nil {
				r.t.Fatal(err)
			}
			if run, err := r.engine.Run(fault.With(r.t.Context(), failing), *target, engine.Firing{Trigger: "manual"}); err == nil {
				r.t.Fatalf("run = %+v, want it unfinished", run)
			}
			return engine.Firing{}
		},
		do: recovers, want: loop.OutcomeProposed,
	},
	"a rescue": {
		readsAt: []string{"engine.recover.claim.after"},
		prepare: func(r *rig, target *engine.Target) engine.Firing {
			gone, works := loop.Holder{PID: 7, Start: 1, Host: r.deps.Self.Host}, r.agent
			r.deps.HolderState = deadIf(gone)
			r.engine = engine.New(r.deps)
			r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
				r.agent = works
				res, err := works(ctx, req)
				r.steal("lp_w", gone)
				<-ctx.Done()
				return res, err
			}
			if run, err := r.engine.Run(r.t.Context(), *target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
				r.t.Fatalf("run = %+v, %v, want it lost", run, err)
			}
			return engine.Firing{}
		},
		do: recovers, want: loop.OutcomeInterrupted,
	},
}

// asks makes the agent work a little and then ask for a command.
func (r *rig) asks() {
	r.t.Helper()
	works := r.agent
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		r.agent = works
		res, err := works(ctx, req)
		res.Asks = []agent.Ask{{Argv: []string{"/bin/sh", "-c", "echo allowed >src/b.txt"}, Why: "to make it"}}
		return res, err
	}
}

func recovers(ctx context.Context, r *rig, target engine.Target, _ engine.Firing) (loop.Run, error) {
	rec, err := r.engine.Recover(ctx, target)
	if rec == nil {
		return loop.Run{}, err
	}
	return rec.Run, err
}

// beforeGit is passed by each start of git.
var beforeGit = fault.New("engine_test.git.before")

// keeper is a rig with a loop that keeps a diary and lands what it proposes.
func keeper(t *testing.T) (*rig, engine.Target) {
	t.Helper()
	r := one(t)
	repo, err := git.OpenWith(t.Context(), execFunc(func(ctx context.Context, spec proc.Spec) (proc.Result, error) {
		if err := beforeGit.Hit(ctx); err != nil {
			return proc.Result{}, err
		}
		return proc.Plain{}.Run(ctx, spec)
	}), r.root)
	if err != nil {
		t.Fatal(err)
	}
	r.repo, r.works = repo, "src/a.txt"
	r.deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo)}
	}
	r.deps.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	r.engine = engine.New(r.deps)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "by "+variable(req, "PAWL_RUN")+"\n")
		return says(t, req, `{"outcome":"done","summary":"written"}`)
	}
	gittest.WriteFile(t, filepath.Join(r.root, ".loops/w/log.md"), "")
	def := until("grep -q by src/a.txt", "w", []string{"src/**"})
	def.Verify = "printf 'TAP version 13\n1..1\nok 1 - it works\n'; " + def.Verify // Tests are counted, on the base too.
	return r, r.target("w", diary{}, def)
}

// trouble begins at a point, or at the very beginning, and lasts until it is mended.
type trouble struct {
	at          string // the point; empty: before anything is done
	hit         int    // of the point
	begin, mend func(r *rig) error
	words       string // of its error
	passes      bool   // it fails once, so that something has failed for sure
	tidying     bool   // what fails is done by Sweep as well
}

// passing is an error at one point and nowhere else.
func passing(at string, hit int) trouble {
	return trouble{
		at: at, hit: hit, words: syscall.EIO.Error(), passes: true, begin: func(*rig) error { return syscall.EIO }, mend: func(*rig) error { return nil },
		tidying: slices.Contains([]string{
			"engine.tree.drop.before", "workspace.remove.before", "workspace.park.before", "workspace.park.after",
			"git.candidate.drop.before", "git.candidate.drop.after",
		}, at),
	}
}

func renames(from, to func(*rig) string) func(*rig) error {
	return func(r *rig) error { return os.Rename(from(r), to(r)) }
}

// away is something whose place is a file until it is mended.
func away(at string, place func(*rig) string) trouble {
	elsewhere := func(r *rig) string { return place(r) + ".away" }
	return trouble{
		at: at, hit: 1,
		begin: func(r *rig) error {
			return errors.Join(renames(place, elsewhere)(r), os.WriteFile(place(r), nil, 0o600))
		},
		mend: func(r *rig) error { return errors.Join(os.Remove(place(r)), renames(elsewhere, place)(r)) },
	}
}

func statements(at, words, begin, mend string) trouble {
	return trouble{
		at: at, hit: 1, words: words,
		begin: func(r *rig) error { return r.exec(begin) }, mend: func(r *rig) error { return r.exec(mend) },
	}
}

func (r *rig) exec(statement string) error {
	return r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		if pg := tx.Postgres(); pg != nil {
			_, err := pg.Exec(r.t.Context(), statement)
			return err
		}
		_, err := tx.SQLite().ExecContext(r.t.Context(), statement)
		return err
	})
}

// Tables that a run writes rows into, whose rows it changes, and that it reads.
var (
	filled  = []string{"definitions", "steps", "iterations", "turns", "effects", "changes", "approvals", "events", "audit", "test_counts"}
	changed = []string{"loops", "runs", "steps", "iterations", "effects", "approvals", "chains"}
	asked   = []string{"definitions", "steps", "iterations", "turns", "effects", "changes", "approvals", "events", "test_counts", "holds", "sessions"}
)

// troubles are those that can meet a flow that hits these points.
func (f flow) troubles(hits []string) map[string]trouble {
	all := map[string]trouble{}
	for what, tables := range map[string][]string{"INSERT": filled, "UPDATE": changed} {
		for _, table := range tables {
			all[what+" of "+table+" fails"] = statements("", "a trouble",
				"CREATE TRIGGER none BEFORE "+what+" ON "+table+" BEGIN SELECT RAISE(ABORT, 'a trouble'); END", "DROP TRIGGER none")
		}
	}
	times := map[string]int{}
	for _, point := range hits {
		times[point]++
	}
	for point, n := range times {
		for hit := 1; hit <= n; hit++ {
			all[fmt.Sprintf("%s fails, hit %d", point, hit)] = passing(point, hit)
		}
	}
	for _, point := range f.readsAt {
		for _, table := range asked {
			all[table+" is away from "+point+" on"] = statements(point, "no such table", "ALTER TABLE "+table+" RENAME TO away", "ALTER TABLE away RENAME TO "+table)
		}
		for _, name := range []string{"objects", "refs"} {
			all[name+" are away from "+point+" on"] = away(point, func(r *rig) string { return filepath.Join(r.root, ".git", name) })
		}
		all["the memory is away from "+point+" on"] = away(point, func(r *rig) string { return filepath.Join(r.root, ".loops/w") })
	}
	return all
}

// A disk, a repository or a store fails, for a moment or until somebody mends it.
// Wherever that is: it is told, or it has changed nothing; and then the next command
// brings everything to a good end.
func TestATroubleInARunIsToldAndCostsNothing(t *testing.T) { flows["a run"].meetsTroubles(t) }

func TestATroubleInARunThatItsGatesAskForIsToldAndCostsNothing(t *testing.T) {
	flows["a run that its gates ask for"].meetsTroubles(t)
}

func TestATroubleInALandingThatNobodyIsAskedAboutIsToldAndCostsNothing(t *testing.T) {
	flows["a landing that nobody is asked about"].meetsTroubles(t)
}

func TestATroubleInALandingIsToldAndCostsNothing(t *testing.T)  { flows["a landing"].meetsTroubles(t) }
func TestATroubleInARebaseIsToldAndCostsNothing(t *testing.T)   { flows["a rebase"].meetsTroubles(t) }
func TestATroubleInARecoveryIsToldAndCostsNothing(t *testing.T) { flows["a recovery"].meetsTroubles(t) }
func TestATroubleWhereWorkIsRescuedIsToldAndCostsNothing(t *testing.T) {
	flows["a rescue"].meetsTroubles(t)
}

func TestATroubleInAQuestionIsToldAndCostsNothing(t *testing.T) { flows["a question"].meetsTroubles(t) }
func TestATroubleInAnApprovedCommandIsToldAndCostsNothing(t *testing.T) {
	flows["an approved command"].meetsTroubles(t)
}

func (f flow) meetsTroubles(t *testing.T) {
	t.Helper()
	r, target := keeper(t)
	firing, whole := f.prepare(r, &target), new(fault.Plan)
	if run, err := f.do(fault.With(t.Context(), whole), r, target, firing); err != nil || run.Outcome != f.want {
		t.Fatalf("without a trouble: %s %s %q, %v; want %s", run.Outcome, run.Reason, run.Detail, err, f.want)
	}
	for name, tr := range f.troubles(whole.Hits()) {
		if !sampled(t.Name()+name, 10) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, target := keeper(t)
			firing, hits := f.prepare(r, &target), new(fault.Plan)
			if tr.at == "" {
				if err := tr.begin(r); err != nil {
					t.Fatal(err)
				}
			} else {
				hits.Do(tr.at, tr.hit, func(context.Context) error { return tr.begin(r) })
			}
			run, err := f.do(fault.With(t.Context(), hits), r, target, firing)
			said := []string{run.Detail, r.log.String(), fmt.Sprint(err)}
			for _, e := range r.events {
				said = append(said, e.Text)
			}
			told := (err != nil || run.Outcome != f.want || tr.passes) && strings.Contains(strings.Join(said, "\n"), tr.words)
			if !told && (run.Outcome != f.want || tr.passes && !tr.tidying) {
				t.Errorf("%s %s %q, %v; want %s, or what has failed", run.Outcome, run.Reason, run.Detail, err, f.want)
			}
			if tr.at == "" || slices.Contains(hits.Hits(), tr.at) {
				if err := tr.mend(r); err != nil {
					t.Fatalf("after %s %q: mend: %v", run.Outcome, run.Detail, err)
				}
			}
			r.comesToAGoodEnd(target, slices.Contains(hits.Hits(), "engine.act.after"))
		})
	}
}

// sampled chooses one in n of the cases, always the same ones. All of them are
// tried in `make test-all`, and when bugs are planted.
func sampled(name string, n uint32) bool {
	if sample.All() || os.Getenv("PAWL_TEST_TROUBLES") != "" {
		return true
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%n == 0
}

// comesToAGoodEnd recovers the loop and runs it once more: all runs have ended, what
// was done is kept, the log and the chain are whole, and nothing else is left.
func (r *rig) comesToAGoodEnd(target engine.Target, worked bool) {
	t := r.t
	t.Helper()
	if _, err := r.engine.Recover(t.Context(), target); err != nil {
		t.Fatalf("recover: %v", err)
	}
	next, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	if err != nil || !slices.Contains([]loop.Outcome{loop.OutcomeProposed, loop.OutcomeLanded, loop.OutcomeQuiet, loop.OutcomeWaiting}, next.Outcome) {
		t.Errorf("the next run = %s %s %q, %v", next.Outcome, next.Reason, next.Detail, err)
	}
	log := read(t, filepath.Join(r.root, ".loops/w/log.md"))
	for _, run := range r.runs("lp_w") {
		kept := cmp.Or(run.Branch, run.Snapshot)
		if worked && run.N < next.N && run.Outcome != loop.OutcomeLanded && !strings.Contains(run.Detail, "kept-") && (kept == "" || gittest.Run(t, r.root, "show", kept+":"+r.works) == gittest.Run(t, r.root, "show", kept+"^:"+r.works)) {
			t.Errorf("#%d %s %s: its work is kept in %q", run.N, run.Outcome, run.Detail, kept)
		}
		if _, there, err := r.repo.Ref(t.Context(), fmt.Sprintf("refs/heads/pawl/w/%d", run.N)); err != nil || there && run.Branch == "" {
			t.Errorf("#%d %s %q has a branch that its row does not name: %v", run.N, run.Outcome, run.Detail, err)
		}
		if s := r.step(); run.Outcome == loop.OutcomeWaiting && s.WaitsFor == run.Approval && (s.Snapshot != run.Snapshot || s.Snapshot == "") {
			t.Errorf("#%d waits for an answer; its step goes on from %q, and its work is in %q", run.N, s.Snapshot, run.Snapshot)
		}
		var used loop.Usage
		for _, row := range r.turnRows(run.ID) {
			used = used.Add(row.Usage)
		}
		if used.ChargedTokens() != run.Usage.ChargedTokens() {
			t.Errorf("#%d is charged %d tokens, and its turns have used %d", run.N, run.Usage.ChargedTokens(), used.ChargedTokens())
		}
		if lines := strings.Count(log, fmt.Sprintf("#%d %s\n", run.N, run.Outcome)); run.State != loop.RunEnded || lines > 1 || lines == 0 && run.N == next.N {
			t.Errorf("run %d is %s, %s %q, and the log says\n%s", run.N, run.State, run.Outcome, run.Detail, log)
		}
	}
	if err := r.engine.Sweep(t.Context(), r.repo); err != nil {
		t.Error(err)
	}
	if refs := gittest.Run(t, r.root, "for-each-ref", "refs/pawl/candidates"); refs != "" {
		t.Errorf("candidates are left: %s", refs)
	}
	left, _ := filepath.Glob(filepath.Join(r.root, ".git/pawl-effects-*"))
	for _, dir := range []string{"trees", "runs"} {
		entries, _ := os.ReadDir(filepath.Join(r.home, dir))
		for _, e := range entries {
			left = append(left, e.Name())
		}
	}
	for _, run := range r.runs("lp_w") {
		if strings.Contains(run.Detail, "kept-"+run.ID) { // And so it is said.
			left = slices.DeleteFunc(left, func(name string) bool { return name == "kept-"+run.ID })
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := store.VerifyChain(r.chain("lp_w")); err != nil {
		t.Error(err)
	}
}

func (r *rig) runs(loopID string) (runs []loop.Run) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) {
		runs, err = rd.Runs(r.t.Context(), loopID, 10)
		return err
	})
	return runs
}
