package compose_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

// attacker has the URL of a database, and nothing else of the node that uses it.
type attacker struct {
	*always

	sql   *pgx.Conn
	v     *api.Workspace
	fix   loop.Loop
	owned string // a file that only a command of the attacker makes
	n     int64  // runs that were written
}

func newAttacker(t *testing.T) *attacker {
	t.Helper()
	s := newFixture(t, storetest.PostgreSQL(t))
	a := &attacker{always: &always{fixture: s, happened: make(chan daemon.Happened, 100)}, owned: filepath.Join(t.TempDir(), "owned"), n: 90}
	a.opens()
	var err error
	if a.v, err = a.parts.Verbs(t.Context(), s.root); err != nil {
		t.Fatal(err)
	}
	if _, err := a.v.Loops.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := a.v.Lookup.Loop(t.Context(), "fix")
	if err != nil {
		t.Fatal(err)
	}
	a.fix = l.Row
	if a.sql, err = pgx.Connect(t.Context(), s.database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.sql.Close(t.Context()) })
	return a
}

func (a *attacker) exec(query string, args ...any) {
	a.t.Helper()
	if _, err := a.sql.Exec(a.t.Context(), query, args...); err != nil {
		a.t.Fatal(err)
	}
}

func (a *attacker) wantNothingRun(after string) {
	a.t.Helper()
	if _, err := os.Lstat(a.owned); err == nil {
		a.t.Errorf("%s: a command of a row has run", after)
		_ = os.Remove(a.owned)
	}
}

func (a *attacker) wantRun(after string) {
	a.t.Helper()
	if err := os.Remove(a.owned); err != nil {
		a.t.Errorf("%s: %v, want that the command has run", after, err)
	}
}

// acceptAll is a person at this node who accepts what waits.
func (a *attacker) acceptAll(want string) {
	a.t.Helper()
	asked, err := a.parts.Nodes().Asks(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	var ids []string
	for _, one := range asked {
		ids = append(ids, one.ID)
	}
	if !slices.ContainsFunc(asked, func(one nodes.Asked) bool { return strings.Contains(strings.Join(one.Does, "\n"), want) }) {
		a.t.Errorf("pawl nodes accept lists %+v, want one with %q", asked, want)
	}
	if _, err := a.parts.Nodes().Accept(a.t.Context(), loop.Actor{Who: "bob", Role: loop.RoleHuman}, ids); err != nil {
		a.t.Fatal(err)
	}
}

// queue writes a queued run of the loop, with a definition and overrides, and returns its id.
func (a *attacker) queue(d loop.Definition, o loop.Overrides, more ...string) string {
	a.t.Helper()
	a.n++
	id, digest := fmt.Sprintf("run_evil%d", a.n), fmt.Sprintf("evil%d", a.n)
	a.exec(`INSERT INTO definitions (digest, loop_id, body, created_ms) VALUES ($1, $2, $3, 0)`, digest, a.fix.ID, asJSON(a.t, d))
	approval, key, trigger := "", id, "manual"
	if len(more) > 0 {
		approval, key, trigger = more[0], "approval/"+more[0], "approval"
		digest = more[1]
	}
	a.exec(`INSERT INTO runs (id, loop_id, n, run_key, trigger_name, state, phase, definition, overrides, approval, created_ms, workspace_id, seq)
VALUES ($1, $2, $3, $4, $5, 'queued', 'trigger', $6, $7, $8, (extract(epoch from now()) * 1000)::bigint, $9, $10)`,
		id, a.fix.ID, a.n, key, trigger, digest, asJSON(a.t, o), approval, a.v.Lookup.ID, 9000+a.n)
	return id
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// execute takes a queued run up as a daemon of the node does.
func (a *attacker) execute(id string) (loop.Run, error) {
	a.t.Helper()
	var run loop.Run
	var d loop.Definition
	err := a.parts.Store().View(a.t.Context(), func(r *store.Reader) (err error) {
		if run, err = r.Run(a.t.Context(), id); err != nil {
			return err
		}
		d, err = r.Definition(a.t.Context(), run.Definition)
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	t := a.v.Lookup.Target(d)
	t.Loop, t.Protocol = a.fix, a.v.Lookup.Formats.Protocol(a.fix.Protocol)
	return a.parts.Engine().Execute(a.t.Context(), t, id)
}

func wantNotAccepted(t *testing.T, what string, err error) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !errors.Is(err, loop.ErrNotAcceptedHere) || !ok || f.Why == "" || f.Fix == "" {
		t.Errorf("%s: error = %v, want a fault that says why it is not accepted, with a fix", what, err)
	}
}

func (a *attacker) fileDefinition() loop.Definition {
	a.t.Helper()
	d, _, err := a.v.Lookup.Definition(a.t.Context(), "fix")
	if err != nil {
		a.t.Fatal(err)
	}
	return d.WithDefaults()
}

func TestAttack126ANoticeThatIsARowRunsNothing(t *testing.T) {
	t.Parallel()
	a := newAttacker(t)
	_, deliverer := a.parts.Notifying(compose.Log(nil))
	node := a.parts.Self().Node
	deliver := func() {
		t.Helper()
		a.exec(`UPDATE deliveries SET due_ms = 0`)
		if n, err := deliverer.DeliverDue(t.Context()); err != nil || n != 1 {
			t.Fatalf("%d deliveries are tried, %v, want 1", n, err)
		}
	}
	c := loop.Channel{Name: "c", Kind: loop.ChannelCommand, Target: "touch " + a.owned, Node: node}
	a.exec(`INSERT INTO channels (name, kind, node_id, body, created_ms) VALUES ('c', 'command', $1, $2, 0)`, node, asJSON(t, c))
	a.exec(`INSERT INTO notices (id, key, is_over, lasts, body, at_ms) VALUES ('nt_x', 'x', 0, 0, '{"id":"nt_x","event":"test","title":"x"}', 0)`)
	a.exec(`INSERT INTO deliveries (notice_id, channel, state, asked_ms) VALUES ('nt_x', 'c', 'pending', (extract(epoch from now()) * 1000)::bigint)`)
	deliver()
	a.wantNothingRun("a command channel")
	list, err := a.parts.Notices().List(t.Context())
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Error, "not accepted on this machine") || !strings.Contains(list[0].Error, "pawl nodes accept") {
		t.Errorf("pawl notify list = %+v, %v, want why it was not delivered, and the fix", list, err)
	}
	a.acceptAll("touch " + a.owned)
	deliver()
	a.wantRun("a command channel that bob accepted")

	// Another line is another thing, and so is a secret of the machine that goes elsewhere.
	c.Target = "touch " + a.owned + "; true"
	a.exec(`UPDATE channels SET body = $1`, asJSON(t, c))
	a.exec(`UPDATE deliveries SET state = 'pending'`)
	deliver()
	a.wantNothingRun("the line of a channel that was accepted before it was changed")
	c = loop.Channel{Name: "c", Kind: loop.ChannelNtfy, Target: "http://127.0.0.1:1/topic", SecretEnv: "HOME"}
	wantNotAccepted(t, "a variable of the machine", a.parts.Notices().Sender.Send(t.Context(), c, loop.Notice{}))
	c.SecretEnv, c.SecretFile = "", "/etc/hostname"
	wantNotAccepted(t, "a file of the machine", a.parts.Notices().Sender.Send(t.Context(), c, loop.Notice{}))
}

func TestAttack126ADefinitionThatIsARowGetsNothingOfANode(t *testing.T) {
	t.Parallel()
	a := newAttacker(t)
	evil := loop.Definition{Name: "fix", Protocol: loop.ProtocolSpine, Pattern: "custom", Tier: loop.TierReport, Goal: "x", Agent: "command", Sense: "touch " + a.owned + "; echo x"}
	asks := map[string]func(d *loop.Definition){
		"sandbox: none":     func(d *loop.Definition) { d.Sandbox = "none" },
		"sandbox: external": func(d *loop.Definition) { d.Sandbox = "external" },
		"sandbox: landlock": func(d *loop.Definition) { d.Sandbox = "landlock" },
		"setup":             func(d *loop.Definition) { d.Setup = "touch x" },
		"env":               func(d *loop.Definition) { d.Env = []string{"OPENAI_API_KEY"} },
		"network":           func(d *loop.Definition) { d.Network = []string{"example.org"} },
		"mcp":               func(d *loop.Definition) { d.MCP = []string{"x=touch x"} },
		"agent_command":     func(d *loop.Definition) { d.AgentCommand = "touch x" },
		"base_url":          func(d *loop.Definition) { d.Agent, d.BaseURL = "api", "https://example.org" },
		"a lent login":      func(d *loop.Definition) { d.Auth = loop.AuthLend },
		"model_tools":       func(d *loop.Definition) { d.ModelTools = []loop.ModelTool{loop.ToolWebFetch} },
		"autoland":          func(d *loop.Definition) { d.Tier, d.Autoland = loop.TierUnattended, []string{"docs"} },
		"protocol boot":     func(d *loop.Definition) { d.Protocol = loop.ProtocolBoot },
	}
	for name, ask := range asks {
		d := evil
		ask(&d)
		_, err := a.execute(a.queue(d.WithDefaults(), loop.Overrides{}))
		wantNotAccepted(t, name, err)
		a.wantNothingRun(name)
	}
	d := evil
	d.Sandbox = "none"
	id := a.queue(d.WithDefaults(), loop.Overrides{})
	target := a.v.Lookup.Target(d)
	_, err := a.parts.Engine().TryGates(t.Context(), target, nil)
	wantNotAccepted(t, "gates that are tried", err)
	_, err = a.parts.Engine().Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	wantNotAccepted(t, "a run that is fired by its row", err)
	_, err = a.parts.Engine().Ask(t.Context(), target, "touch "+a.owned)
	wantNotAccepted(t, "a command that is listened to", err)
	a.acceptAll("sandbox: none")
	if _, err := a.execute(id); err != nil {
		t.Errorf("a definition that bob accepted: %v", err)
	}
	a.wantRun("a definition that bob accepted")

	// What bob's own file says needs nobody, and lends nothing to a row beside it.
	own := a.fileDefinition()
	over := loop.Overrides{AgentCommand: "touch " + a.owned}
	_, err = a.execute(a.queue(over.Apply(own), over))
	wantNotAccepted(t, "a program in the overrides of a run", err)
	_, err = a.parts.Engine().Ask(t.Context(), a.v.Lookup.Target(own), "touch "+a.owned)
	wantNotAccepted(t, "a command that only the row of the loop listens to", err)
	a.wantNothingRun("what stands beside bob's file")
	if run, err := a.execute(a.queue(own, loop.Overrides{})); err != nil || run.Outcome != loop.OutcomeProposed {
		t.Errorf("a run of what bob's file says ends %s, %v, want proposed", run.Outcome, err)
	}
}

func TestAttack126AnAgentThatIsARowStartsNoProgramAndGetsNoKey(t *testing.T) {
	t.Parallel()
	a := newAttacker(t)
	for name, entry := range map[string]loop.Agent{
		"program": {Driver: "command", Command: "touch " + a.owned},
		"address": {Driver: "api", Provider: "openai", BaseURL: "https://example.org/v1"},
		"login":   {Driver: "claude", Auth: loop.AuthLend},
	} {
		entry.ID, entry.Handle = "ag_"+name, name
		a.exec(`INSERT INTO agents (id, handle, body, created_ms, updated_ms) VALUES ($1, $2, $3, 0, 0)`, entry.ID, entry.Handle, asJSON(t, entry))
		_, err := a.parts.Engine().Actor(t.Context(), loop.Definition{Name: "fix", Agent: name})
		wantNotAccepted(t, name, err)
		_, err = a.v.Lookup.Actor(t.Context(), loop.Definition{Name: "fix", Agent: name})
		wantNotAccepted(t, name+" of a command", err)
	}
	a.wantNothingRun("an agent")

	// To set something else of it accepts nothing; to say it, or to accept it, does.
	entries, model, line := a.parts.Roster(), "m", "touch "+a.owned
	if _, err := entries.Set(t.Context(), "@program", roster.Change{Model: &model}); err != nil {
		t.Fatal(err)
	}
	_, err := a.parts.Engine().Actor(t.Context(), loop.Definition{Name: "fix", Agent: "program"})
	wantNotAccepted(t, "an agent of which bob has set the model", err)
	if _, err := entries.Set(t.Context(), "@program", roster.Change{Command: &line}); err != nil {
		t.Fatal(err)
	}
	a.acceptAll("https://example.org/v1")
	if _, err := entries.Create(t.Context(), "@own", roster.Change{Command: &line}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"program", "address", "own"} {
		if _, err := a.parts.Engine().Actor(t.Context(), loop.Definition{Name: "fix", Agent: name}); err != nil {
			t.Errorf("agent %s that bob accepted: %v", name, err)
		}
	}
}

func TestAttack126APlaceThatIsARowIsNotOpened(t *testing.T) {
	t.Parallel()
	a := newAttacker(t)
	evil := t.TempDir()
	(&fixture{t: t, root: evil}).git("init", "-q", "-b", "main")
	a.exec(`INSERT INTO workspaces (id, old_root, created_ms) VALUES ('ws_evil', 'evil', 0)`)
	a.exec(`INSERT INTO placements (workspace_id, node_id, path, created_ms) VALUES ('ws_evil', $1, $2, 0)`, a.parts.Self().Node, evil)
	a.starts()
	defer a.daemon.Stop(t.Context())
	var wrong error // Start has looked at all places, and said what is wrong with them.
	for len(a.happened) > 0 && !errors.Is(wrong, loop.ErrNotAcceptedHere) {
		wrong = (<-a.happened).Wrong
	}
	wantNotAccepted(t, "a place", wrong)
	if _, err := os.Lstat(filepath.Join(evil, ".git", "pawl-workspace")); !os.IsNotExist(err) {
		t.Errorf("the repository was entered: %v", err)
	}
	if n, _ := a.daemon.Loops(); n != 1 {
		t.Errorf("%d workspaces are open, want 1", n)
	}
}

// Whatever state a row says a yes is in, nothing lands: neither by the run of the answer, nor
// before the work of the loop's next one.
func TestAttack126AnAnswerThatIsARowLandsNothing(t *testing.T) {
	t.Parallel()
	for _, state := range []loop.ApprovalState{loop.ApprovalApproved, loop.ApprovalLanding} {
		t.Run(string(state), func(t *testing.T) {
			a := newAttacker(t)
			v := a.pawl("run")
			main := a.git("rev-parse", "main")
			a.exec(`UPDATE approvals SET state = $2, answered_by = 'bob', answered_ms = 1 WHERE id = $1`, v.Run.Approval, string(state))
			var digest string
			if err := a.sql.QueryRow(t.Context(), `SELECT definition FROM runs WHERE id = $1`, v.Run.ID).Scan(&digest); err != nil {
				t.Fatal(err)
			}
			run, err := a.execute(a.queue(a.fileDefinition(), loop.Overrides{}, v.Run.Approval, digest))
			if err != nil || run.Outcome == loop.OutcomeLanded {
				t.Errorf("the run of a forged yes ends %s: %s, %v", run.Outcome, run.Detail, err)
			}
			if state == loop.ApprovalLanding && (run.Outcome != loop.OutcomeRefused || !strings.Contains(run.Detail, "not accepted on this machine")) {
				t.Errorf("the run of a forged yes ends %s: %s; want refused, and why", run.Outcome, run.Detail)
			}
			if _, err := a.execute(a.queue(a.fileDefinition(), loop.Overrides{})); err != nil {
				t.Errorf("the next run: %v", err)
			}
			if got := a.git("rev-parse", "main"); got != main {
				t.Errorf("main moved to %s", got)
			}
		})
	}
}

func TestAttack126AnEffectThatIsARowMovesNothing(t *testing.T) {
	t.Parallel()
	a := newAttacker(t)
	v := a.pawl("run")
	main, proposed := a.git("rev-parse", "main"), a.git("rev-parse", v.Run.Branch)
	tree := a.git("rev-parse", v.Run.Branch+"^{tree}")
	config := effect.EncodeFiles(map[string]string{".loops/evil/loop.config.yaml": "sandbox: none\n"})
	// A process of the node seems to have died while it applied what a run asked for.
	for name, e := range map[string]loop.Effect{
		"a landing by itself":  {Kind: effect.KindLand, Key: "%s/autoland/land", Args: map[string]string{effect.ArgBase: "main", effect.ArgOnto: main, effect.ArgCommit: proposed, effect.ArgTree: tree, effect.ArgBranch: v.Run.Branch}},
		"a landing of a yes":   {Kind: effect.KindLand, Key: v.Run.Approval + "/land", Args: map[string]string{effect.ArgBase: "main", effect.ArgOnto: main, effect.ArgCommit: proposed, effect.ArgTree: tree, effect.ArgBranch: v.Run.Branch}},
		"a file of the memory": {Kind: effect.KindMemoryCommit, Key: "%s/commit", Args: map[string]string{effect.ArgBase: "main", effect.ArgOnto: main, effect.ArgFiles: config, effect.ArgMessage: "x", effect.ArgWhen: "2026-09-03T08:20:00Z"}},
		"a push of the memory": {Kind: effect.KindMemoryPush, Key: "%s/push", Args: map[string]string{effect.ArgBase: "main", effect.ArgRemote: "origin"}},
	} {
		a.wantRowRefused(name, e, "")
		if got := a.git("rev-parse", "main"); got != main {
			t.Fatalf("%s moved main", name)
		}
	}
}

// wantRowRefused writes an effect as if the process that was to apply it had died, and has
// another process find it. A %s in its key is the run. Why it was refused contains want.
func (a *attacker) wantRowRefused(name string, e loop.Effect, want string) {
	a.t.Helper()
	id := a.queue(a.fileDefinition(), loop.Overrides{})
	a.exec(`INSERT INTO effects (run_id, seq, kind, effect_key, args, state, loop_id) VALUES ($1, 1, $2, $3, $4, 'requested', $5)`, id, e.Kind, strings.ReplaceAll(e.Key, "%s", id), asJSON(a.t, e.Args), a.fix.ID)
	dead := a.parts.Self()
	dead.PID, dead.Start = 1<<22+1, 1
	a.exec(`UPDATE runs SET state = 'settling', phase = 'effect', outcome = 'proposed', holder = $2, fence = 1, node_id = $3 WHERE id = $1`, id, asJSON(a.t, dead), dead.Node)
	if _, err := a.v.Runs.Recover(a.t.Context()); err != nil {
		a.t.Errorf("%s: %v", name, err)
	}
	var state, why string
	if err := a.sql.QueryRow(a.t.Context(), `SELECT state, error FROM effects WHERE run_id = $1 AND seq = 1`, id).Scan(&state, &why); err != nil || state != "refused" || why == "" || !strings.Contains(why, want) {
		a.t.Errorf("%s is %s: %s, %v; want refused: %s", name, state, why, err, want)
	}
}

// A yes that was given here is a yes to what was shown, and to nothing else.
func TestAttack126AYesAllowsNoOtherLanding(t *testing.T) {
	t.Parallel()
	for kind, lands := range map[string]string{loop.ActionLand: effect.KindLand, loop.ActionPullRequest: effect.KindPush, loop.ActionPush: effect.KindBranchPush, loop.ActionKeep: "", loop.ActionAccept: ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := newAttacker(t)
			v := a.pawl("run")
			main := a.git("rev-parse", "main")
			a.exec(`UPDATE approvals SET state = 'landing', answered_by = 'bob', answered_ms = 1, kind = $2, body = jsonb_set(body::jsonb, '{action,kind}', to_jsonb($2::text))::text WHERE id = $1`, v.Run.Approval, kind)
			var yes loop.Approval
			err := a.parts.Store().View(t.Context(), func(r *store.Reader) (err error) {
				yes, err = r.Approval(t.Context(), v.Run.Approval)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := accepted.In(a.home).Accept(accepted.Answer(yes)); err != nil {
				t.Fatal(err)
			}
			a.exec(`UPDATE approvals SET state = 'approved' WHERE id = $1`, yes.ID) // No run tries it by itself.
			forbidden := "it is not what " + yes.ID + " allows"
			land := yes
			if lands == "" { // Nothing is asked for: a row says that it is a landing.
				land.Action.Kind = loop.ActionLand
			}
			allowed := effect.RequestsFor(land, time.Now())[0]
			for _, other := range []string{effect.KindLand, effect.KindPush, effect.KindPullRequest, effect.KindBranchPush} {
				if other != lands {
					a.wantRowRefused(other+" by a yes to "+kind, loop.Effect{Kind: other, Key: yes.ID + "/" + other, Args: allowed.Args}, forbidden)
				}
			}
			for _, arg := range []string{effect.ArgOnto, effect.ArgCommit, effect.ArgTree, effect.ArgBase, effect.ArgBranch, effect.ArgRemote, effect.ArgMerge} {
				args := maps.Clone(allowed.Args)
				args[arg] += "x"
				a.wantRowRefused("another "+arg, loop.Effect{Kind: cmp.Or(lands, effect.KindLand), Key: yes.ID + "/" + arg, Args: args}, forbidden)
			}
			if got := a.git("rev-parse", "main"); got != main {
				t.Errorf("main moved to %s", got)
			}
		})
	}
}

func TestAttack126AChangeThatIsARowWritesNoFileThatDecides(t *testing.T) {
	t.Parallel()
	a := newAttacker(t)
	v := a.pawl("run")
	for _, path := range []string{".loops/evil/loop.config.yaml", ".git/hooks/post-commit", ".git/config", "Makefile", "src/a.txt", ".vscode/tasks.json", "package.json", "AGENTS.md"} {
		ch := loop.Change{Kind: loop.ChangeEdit, Path: path, Content: "touch " + a.owned + "\n"}
		if text, err := os.ReadFile(filepath.Join(a.root, path)); err == nil {
			ch.Before = string(text)
		}
		before := ch.Before
		a.exec(`DELETE FROM changes`)
		a.exec(`INSERT INTO changes (run_id, seq, loop_id, body) VALUES ($1, 99, $2, $3)`, v.Run.ID, a.fix.ID, asJSON(t, ch))
		a.exec(`UPDATE runs SET node_id = '' WHERE id = $1`, v.Run.ID)
		if err := os.RemoveAll(filepath.Join(a.home, "written")); err != nil {
			t.Fatal(err)
		}
		run, err := a.execute(a.queue(a.fileDefinition(), loop.Overrides{}))
		if err == nil && run.Outcome != loop.OutcomeFailed {
			t.Errorf("with a change of %s the run ends %s: %s", path, run.Outcome, run.Detail)
		}
		if text, _ := os.ReadFile(filepath.Join(a.root, path)); string(text) != before {
			t.Errorf("a row has written %s", path)
		}
	}
}

func TestWhatAPersonSaysOnANodeIsAcceptedThere(t *testing.T) {
	t.Parallel()
	a := newAttacker(t)
	bob := loop.Actor{Who: "bob", Role: loop.RoleHuman}
	if _, err := a.parts.Notices().Add(t.Context(), bob, loop.Channel{Kind: loop.ChannelCommand, Target: "touch " + a.owned}); err != nil {
		t.Fatal(err)
	}
	tried, err := a.parts.Notices().Test(t.Context(), "")
	if err != nil || len(tried) != 1 || tried[0].Result != notices.Delivered {
		t.Errorf("pawl notify test = %+v, %v", tried, err)
	}
	a.wantRun("a channel that bob added")
	if v := a.pawl("run"); v.Run.Outcome != loop.OutcomeProposed {
		t.Errorf("bob's run ends %s: %s", v.Run.Outcome, v.Run.Detail)
	}
	if v := a.pawl("approve"); v.Run.Outcome != loop.OutcomeLanded {
		t.Errorf("bob's yes ends %s: %s", v.Run.Outcome, v.Run.Detail)
	}
	asked, err := a.parts.Nodes().Asks(t.Context())
	if err != nil || len(asked) > 0 {
		t.Errorf("%+v, %v waits to be accepted, want nothing", asked, err)
	}
}

// What a person had in a store of this machine alone goes on after it is copied into one that
// machines share.
func TestACopyIntoASharedStoreAsksItsOwnerForNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	alone := &always{fixture: s}
	alone.opens()
	bob, line := loop.Actor{Who: "bob", Role: loop.RoleHuman}, "true"
	if _, err := alone.parts.Verbs(t.Context(), s.root); err != nil {
		t.Fatal(err)
	}
	if _, err := alone.parts.Notices().Add(t.Context(), bob, loop.Channel{Kind: loop.ChannelCommand, Target: line}); err != nil {
		t.Fatal(err)
	}
	if _, err := alone.parts.Roster().Create(t.Context(), "@ada", roster.Change{Command: &line}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(s.home, "accepted")); !os.IsNotExist(err) {
		t.Errorf("with SQLite something is accepted: %v", err)
	}
	from := s.options()
	s.database = pgtest.URL(t)
	if _, err := compose.CopyStore(t.Context(), from, s.database, func(string) {}); err != nil {
		t.Fatal(err)
	}
	shared := &always{fixture: s}
	shared.opens()
	if asked, err := shared.parts.Nodes().Asks(t.Context()); err != nil || len(asked) > 0 {
		t.Errorf("%+v, %v waits to be accepted, want nothing", asked, err)
	}
	tried, err := shared.parts.Notices().Test(t.Context(), "")
	if err != nil || len(tried) != 1 || tried[0].Result != notices.Delivered {
		t.Errorf("pawl notify test = %+v, %v", tried, err)
	}
}
