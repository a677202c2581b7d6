package compose_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// ann is who asks for changes.
var ann = loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "test"}

const secretText = "the secret is 7f3a-91cc"

// attackedFiles are what an attacked repository holds, beside its loop.
var attackedFiles = map[string]string{"src/a.txt": "one\n", "README.md": "hello\n", "secret.txt": secretText + "\n"}

// victim is a workspace on the program's own composition, whose agent is a
// shell script that does what the attack says.
type victim struct {
	*fixture
	d       *compose.Parts
	svc     *api.Workspace
	main    string // where the branch stood before
	outside string // a folder beside the repository
	tier    string // of the sandbox
}

// attacked makes the workspace. Files are added to attackedFiles; keys replace
// those of the definition, and an empty value leaves one out.
func attacked(t *testing.T, script string, files map[string]string, keys ...string) *victim {
	t.Helper()
	return attackedIn(t, os.Environ(), script, files, keys...)
}

func attackedIn(t *testing.T, environ []string, script string, files map[string]string, keys ...string) *victim {
	t.Helper()
	v := &victim{fixture: &fixture{t: t, root: t.TempDir(), home: newHome(t)}, outside: t.TempDir(), tier: bare}
	if i := slices.Index(keys, "sandbox"); i >= 0 {
		v.tier = keys[i+1]
	}
	v.fill(script, files, keys...)
	v.open(environ)
	return v
}

// besides makes another workspace of the same home of pawl's.
func (v *victim) besides(script string, files map[string]string, keys ...string) *victim {
	v.t.Helper()
	w := &victim{fixture: &fixture{t: v.t, root: v.t.TempDir(), home: v.home}, d: v.d, outside: v.t.TempDir(), tier: v.tier}
	w.fill(script, files, keys...)
	var err error
	if w.svc, err = w.d.Verbs(w.t.Context(), w.root); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// fill makes the repository and its loop.
func (v *victim) fill(script string, files map[string]string, keys ...string) {
	v.t.Helper()
	for _, all := range []map[string]string{attackedFiles, files} {
		for name, text := range all {
			v.write(name, text)
		}
	}
	v.obeys(script)
	v.define(keys...)
	v.git("init", "-q", "-b", "main")
	v.git("add", "-A")
	for name, text := range files {
		if strings.HasPrefix(text, "#!") {
			v.git("update-index", "--chmod=+x", name)
		}
	}
	v.git("commit", "-q", "-m", "first")
	v.git("reset", "-q", "--hard")
	v.main = v.git("rev-parse", "main")
}

func (v *victim) open(environ []string) {
	v.t.Helper()
	settings, err := config.Load(config.Settings{Home: v.home}, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	if v.d, err = compose.New(v.t.Context(), compose.Options{Settings: settings, Environ: environ, Log: compose.Log(environ)}); err != nil {
		v.t.Fatal(err)
	}
	d := v.d
	v.t.Cleanup(func() {
		if err := d.Close(); err != nil {
			v.t.Error(err)
		}
	})
	if v.svc, err = v.d.Verbs(v.t.Context(), v.root); err != nil {
		v.t.Fatal(err)
	}
}

func (v *victim) write(name, text string) {
	v.t.Helper()
	path := filepath.Join(v.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

// obeys sets what the agent does. It then claims to be done.
func (v *victim) obeys(script string) {
	v.t.Helper()
	script = strings.NewReplacer("OUTSIDE", v.outside, "ROOT", v.root).Replace(script)
	script += "\n[ -e \"$PAWL_REPORT\" ] || printf '{\"outcome\":\"done\",\"summary\":\"did it\"}' >\"$PAWL_REPORT\"\n"
	if v.tier == full {
		v.write(".loops/fix/agent.sh", script) // Nothing beside the tree is there.
		return
	}
	if err := os.WriteFile(filepath.Join(v.outside, "agent.sh"), []byte(script), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

func (v *victim) define(keys ...string) {
	v.t.Helper()
	agent := "sh '" + v.outside + "/agent.sh'"
	if v.tier == full {
		agent = "sh .loops/fix/agent.sh"
	}
	lines := [][2]string{
		{"name", "fix"},
		{"pattern", "custom"},
		{"tier", "L2"},
		{"cadence", "1h"},
		{"goal", "Make a.txt say three; change nothing else."},
		{"scope", `["src/**"]`},
		{"verify", "test -d src"},
		{"guard", "true"},
		{"permission_mode", "dontAsk"},
		{"worktree", "true"},
		{"escalation", "anything else"},
		{"budget_tokens", "200000"},
		{"kill_switch", ".loops/fix/PAUSED exists"},
		{"land_via", "human"},
		{"agent", "command"},
		{"agent_command", agent},
		{"max_iterations", "1"},
		{"sandbox", v.tier},
	}
	for i := 0; i+1 < len(keys); i += 2 {
		at := slices.IndexFunc(lines, func(kv [2]string) bool { return kv[0] == keys[i] })
		if at < 0 {
			lines = append(lines, [2]string{keys[i], keys[i+1]})
			continue
		}
		lines[at][1] = keys[i+1]
	}
	var b strings.Builder
	for _, kv := range lines {
		if kv[1] == "" {
			continue
		}
		if !strings.HasPrefix(kv[1], "[") {
			kv[1] = "'" + strings.ReplaceAll(kv[1], "'", "''") + "'"
		}
		fmt.Fprintf(&b, "%s: %s\n", kv[0], kv[1])
	}
	v.write(".loops/fix/"+definition.ConfigFile, b.String())
}

// start carries out one run, or says why there is none.
func (v *victim) start() (runs.View, error) {
	plan, err := v.svc.Runs.Prepare(v.t.Context(), runs.StartRequest{Loop: "fix"})
	if err != nil {
		return runs.View{}, err
	}
	return v.svc.Runs.Start(v.t.Context(), plan)
}

// runs carries out one run. What the run before it proposed is void, because nothing
// works on a step whose proposal has no answer, or a no.
func (v *victim) runs() runs.View {
	v.t.Helper()
	if a, err := v.svc.Approvals.Find(v.t.Context(), "fix"); err == nil && a.State == loop.ApprovalOpen {
		must(v.t, v.d.Store().Update(v.t.Context(), func(tx *store.Tx) error {
			_, err := tx.VoidApproval(v.t.Context(), a.ID, "the test goes on")
			return err
		}))
	}
	run, err := v.start()
	if err != nil {
		v.t.Fatal(err)
	}
	return run
}

// exitOf is the exit status of a fault, or -1.
func exitOf(err error) int {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f.Exit
	}
	return -1
}

// wantRefused holds that a run was refused, that reason and words stand in
// every account of it, and that nothing of it went anywhere.
func (v *victim) wantRefused(run runs.View, reason loop.Reason, words ...string) {
	t := v.t
	t.Helper()
	if run.Outcome != loop.OutcomeRefused || run.Reason != reason || run.Outcome.Meaning().Exit != loop.ExitRefused {
		t.Fatalf("run = %s %s %q, want refused by %s", run.Outcome, run.Reason, run.Detail, reason)
	}
	for _, w := range words {
		if !strings.Contains(run.Detail, w) {
			t.Errorf("detail = %q, want %q in it", run.Detail, w)
		}
	}
	v.accounted(run, "outcome=refused", "reason="+encoded(string(reason)))
	v.nothingLanded(run)
}

func encoded(s string) string { return strings.ReplaceAll(s, "=", "%3D") }

// nothingLanded holds that no branch of people's and no proposal has anything
// of a run, and that the checkout is as it was.
func (v *victim) nothingLanded(run runs.View) {
	t := v.t
	t.Helper()
	if now := v.git("rev-parse", "main"); now != v.main {
		t.Errorf("main is at %s, was %s", now, v.main)
	}
	if refs := v.git("for-each-ref", "--format=%(refname)", "refs/heads/pawl"); refs != "" || run.Branch != "" || run.Approval != "" {
		t.Errorf("proposed: %q, branch %q, approval %q", refs, run.Branch, run.Approval)
	}
	if dirty := v.git("status", "--porcelain", "--untracked-files=no", "--", ":!.loops"); dirty != "" {
		t.Errorf("the checkout was changed:\n%s", dirty)
	}
}

// accounted holds that a run is one line of its log with these words, and one
// link of the chain with its reason.
func (v *victim) accounted(run runs.View, words ...string) {
	t := v.t
	t.Helper()
	text := readFile(t, filepath.Join(v.root, ".loops/fix", loop.LogFile))
	entries, bad := runlog.Parse(text)
	if len(bad) > 0 {
		t.Errorf("the run log has %d bad lines:\n%s", len(bad), text)
	}
	own := slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(l string) bool { return !strings.Contains(l, fmt.Sprintf("  run#%d  ", run.N)) })
	line := strings.Join(own, "")
	if strings.Count(line, "\n") != 1 || len(entries) == 0 || entries[len(entries)-1].Run != run.N {
		t.Errorf("the log has these lines of run #%d: %q", run.N, line)
	}
	for _, w := range words {
		if !strings.Contains(line, w) {
			t.Errorf("log line %q, want %q in it", line, w)
		}
	}
	body := v.link(run)
	for _, w := range []string{fmt.Sprintf("%q", run.Outcome), fmt.Sprintf("%q", run.Reason)} {
		if !strings.Contains(body, w) {
			t.Errorf("link of the run %s, want %s in it", body, w)
		}
	}
	if err := v.svc.Audit.VerifyChain(t.Context(), "fix"); err != nil {
		t.Error(err)
	}
}

// link is what the audit chain says of a run's end.
func (v *victim) link(run runs.View) (body string) {
	v.t.Helper()
	err := v.d.Store().View(v.t.Context(), func(r *store.Reader) error {
		links, err := r.Chain(v.t.Context(), run.Run.LoopID)
		for _, l := range links {
			if l.Kind == loop.LinkRun && l.RunID == run.ID {
				body += l.Body
			}
		}
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return body
}

// wantProposed returns the run's one branch, whose tree is the gated one.
func (v *victim) wantProposed(run runs.View) string {
	v.t.Helper()
	if run.Outcome != loop.OutcomeProposed || run.Branch == "" {
		v.t.Fatalf("run = %s %s %q, want proposed", run.Outcome, run.Reason, run.Detail)
	}
	v.checkBranch(run)
	return run.Branch
}

// wantFailed holds that a run failed for a reason, and that nothing landed. It returns
// the first gate that failed in the last iteration.
func (v *victim) wantFailed(run runs.View, reason loop.Reason) loop.GateResult {
	v.t.Helper()
	if run.Outcome != loop.OutcomeFailed || run.Reason != reason || run.Outcome.Meaning().Exit != loop.ExitNoSuccess {
		v.t.Fatalf("run = %s %s %q, want failed by %s", run.Outcome, run.Reason, run.Detail, reason)
	}
	v.accounted(run, "outcome=failed")
	v.nothingLanded(run)
	var last loop.GateResult
	err := v.d.Store().View(v.t.Context(), func(r *store.Reader) error {
		its, err := r.Iterations(v.t.Context(), run.ID)
		if err == nil && len(its) > 0 && len(its[len(its)-1].Gates) > 0 {
			gates := its[len(its)-1].Gates
			last = gates[max(0, slices.IndexFunc(gates, func(g loop.GateResult) bool { return !g.Pass }))]
		}
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return last
}
