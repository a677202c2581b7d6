package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/loops"
)

// States of a DoctorRow.
const (
	StateOK   = readiness.StateOK
	StateWarn = readiness.StateWarn // the loop runs, and something will not be as it says
	StateBad  = readiness.StateBad  // the loop will not run as it says
)

// DoctorRow is one thing that a loop needs, and its state.
type DoctorRow struct {
	Loop   string `json:"loop,omitempty"` // empty: of the machine
	State  string `json:"state"`          // ok, warn, bad
	Check  string `json:"check"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // the change to make, as text for a shell

	Actions []loop.Command `json:"actions,omitempty"` // those of Fix, as data
}

func newRow(name, state, check, detail, fix string, actions ...loop.Command) DoctorRow {
	return DoctorRow{name, state, check, detail, loop.Advise(fix, actions...).String(), actions}
}

// OfflineRows returns the rows that need only the definition.
func OfflineRows(c loops.Checked) []DoctorRow {
	p, known := pattern.Find(c.Config.Pattern.Text)
	var rows []DoctorRow
	for _, r := range readiness.DoctorRows(c.Config, p.Tokens.PerRun(), known) {
		rows = append(rows, newRow(c.Name, r.State, r.Check, r.Detail, r.Fix))
	}
	for _, f := range c.OwnErrors() {
		if f.Meant != "" {
			rows = append(rows, newRow(c.Name, StateBad, "keys", fmt.Sprintf("line %d: %s", f.Line, f.Message), "write "+f.Meant+", or remove the key"))
		}
	}
	switch labels := c.Definition.NodeLabels; {
	case c.Unserved != "":
		rows = append(rows, newRow(c.Name, StateBad, "node_labels", c.Unserved, lookup.ServeLabels.Text, lookup.ServeLabels.Actions...))
	case len(labels) > 0:
		rows = append(rows, newRow(c.Name, StateOK, "node_labels", "a machine has "+strings.Join(labels, ", "), ""))
	}
	return rows
}

// Doctor looks at the machine and tries what a run would need. It does not write to a
// store or a checkout.
type Doctor struct {
	Service  *Service // of the repository; nil if missing
	Reason   error    // why there is no Service
	Store    error    // why the store cannot be used; nil if it can, or if there is none yet
	Probe    probe.Prober
	Profiles []agent.Profile // of all drivers
	Dir      string          // where programs and relative paths are looked for
	Home     string          // pawl's home
	Output   io.Writer       // gets what gates print; nil discards it
}

// LoopRows returns the rows of one loop. It runs the gates on the base, and blocks
// until they have ended.
func (d Doctor) LoopRows(ctx context.Context, c loops.Checked) []DoctorRow {
	if d.Service == nil {
		d.Dir = c.Root(d.Dir)
	}
	var rows []DoctorRow
	add := func(state, check, detail, fix string, actions ...loop.Command) {
		rows = append(rows, newRow(c.Name, state, check, detail, fix, actions...))
	}
	d.checkActor(ctx, c.Definition, add)
	d.checkPrice(ctx, c, add)
	d.checkGit(ctx, c.Definition.Tier, add)
	d.checkGatePrograms(ctx, c, add)
	d.checkKillSwitch(ctx, c, add)
	d.checkSandbox(ctx, c.Definition, add)
	d.checkToolchains(ctx, c.Definition, add)
	d.checkGates(ctx, c, add)
	d.checkLate(ctx, c.Name, add)
	return rows
}

// checkLate warns of a loop that has stopped coming.
func (d Doctor) checkLate(ctx context.Context, name string, add adder) {
	if d.Service == nil {
		return
	}
	l, err := d.Service.ws.Loop(ctx, name)
	if err != nil {
		return // The store does not know it yet, or cannot be used, which another row says.
	}
	const minute = "2006-01-02 15:04 UTC"
	switch late, until := d.Service.ws.LateSince(l); {
	case until != nil:
		add(readiness.StateWarn, "late", "the clock was set back, so it comes at "+until.UTC().Format(minute)+" and not at "+late.UTC().Format(minute),
			"set the clock right if it is wrong; {1} does not wait", loop.PawlCommand("run", name))
	case late != nil:
		add(readiness.StateWarn, "late", "it should have come at "+late.UTC().Format(minute), "{1} makes it come, {2} tells what is in its way",
			loop.PawlCommand("up"), loop.PawlCommand("why", name))
	}
}

// adder adds one row.
type adder func(state, check, detail, fix string, actions ...loop.Command)

func (d Doctor) checkGit(ctx context.Context, tier loop.Tier, add adder) {
	writes := tier == loop.TierAssisted || tier == loop.TierUnattended
	p := d.Probe.FindProgram(ctx, d.Dir, "git")
	switch {
	case !p.OK && writes:
		add(readiness.StateBad, "git", p.Problem, p.Fix)
	case !p.OK:
		add(readiness.StateWarn, "git", p.Problem, p.Fix)
	default:
		add(readiness.StateOK, "git", strings.TrimSpace(p.Version+" at "+p.Path), "")
	}
	if !p.OK || !writes {
		return
	}
	if d.Service == nil {
		add(readiness.StateWarn, "worktree", fmt.Sprint(d.Reason), "run it in a repository with a commit: git init, then git commit")
		return
	}
	res, err := d.Probe.Exec.Run(ctx, proc.Spec{
		Argv: []string{p.Path, "-c", "core.fsmonitor=false", "worktree", "list"}, Dir: d.Service.ws.Root, Env: d.Probe.Environ, Timeout: 10 * time.Second,
	})
	if err != nil || res.Exit != 0 {
		add(readiness.StateWarn, "worktree", fmt.Sprintf("git worktree list ended with exit status %d", res.Exit), "git worktree prune, and see what git worktree list says")
		return
	}
	add(readiness.StateOK, "worktree", "git worktree list answers", "")
}

// checkGatePrograms looks for the program of each gate, as the shell would.
func (d Doctor) checkGatePrograms(ctx context.Context, c loops.Checked, add adder) {
	for _, g := range []struct{ key, line string }{
		{"verify", c.Config.Verify.Text}, {"guard", c.Config.Guard.Text}, {"setup", c.Setup},
	} {
		if word, skip := readiness.GateProgram(g.line); !skip && word != "" && g.line != toolset.None {
			d.checkProgram(ctx, g.key, g.key, word, add)
		}
	}
}

// checkProgram adds the row of a program that a command starts. Built-in commands of
// the shell are found too.
func (d Doctor) checkProgram(ctx context.Context, check, key, word string, add adder) {
	p := d.Probe.FindProgram(ctx, d.Dir, word)
	switch {
	case p.OK:
		detail := strings.TrimSpace(p.Word + " " + p.Version)
		if p.Path != "" && p.Path != word {
			detail += " at " + p.Path
		}
		if p.Shim != "" {
			detail += " (" + p.Shim + ")"
		}
		add(readiness.StateOK, check, detail, "")
	case d.isBuiltIn(ctx, word):
		add(readiness.StateOK, check, word+" is a word of the shell", "")
	default:
		fix := p.Fix
		if fix == "" {
			fix = "install " + word + ", or correct " + key
		}
		problem := p.Problem
		if !strings.Contains(problem, word) {
			problem = word + ": " + problem
		}
		add(readiness.StateBad, check, problem, fix)
	}
}

func (d Doctor) isBuiltIn(ctx context.Context, word string) bool {
	if strings.ContainsRune(word, '/') {
		return false
	}
	res, err := d.Probe.Exec.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", `command -v -- "$1" >/dev/null`, "sh", strings.TrimLeft(word, "(")}, Dir: d.Dir, Timeout: 10 * time.Second,
	})
	return err == nil && res.Exit == 0 || word == "!" || word == "("
}

// checkKillSwitch adds a row for each part of the kill switch.
func (d Doctor) checkKillSwitch(ctx context.Context, c loops.Checked, add adder) {
	if !readiness.IsFilled(c.Config.KillSwitch.Text) {
		return
	}
	paths := c.Definition.SwitchPaths()
	if len(paths) == 0 {
		add(readiness.StateWarn, "kill_switch", "it names no path; .loops/PAUSED and .loops/"+c.Name+"/PAUSED always count",
			"write the path of the file that stops the loop, like .loops/"+c.Name+"/PAUSED exists")
	}
	for _, name := range paths {
		dir := path.Dir(name)
		at := dir
		if !filepath.IsAbs(at) {
			at = filepath.Join(d.Dir, at)
		}
		if isDir(at) {
			add(readiness.StateOK, "kill_switch", name+" is watched, and "+dir+" is there", "")
			continue
		}
		add(readiness.StateWarn, "kill_switch", name+" is watched, and there is no folder "+dir, "mkdir -p "+dir+", or correct the path")
	}
	if c.Definition.NamesLabel() {
		d.checkLabel(ctx, c, add)
	}
}

// checkLabel asks the code host for the label once, as a run does.
func (d Doctor) checkLabel(ctx context.Context, c loops.Checked, add adder) {
	const check, label, fix = "kill_switch", "the label " + loop.PauseLabel, "gh auth login, or take the label out of kill_switch"
	if d.Service == nil || d.Service.engine == nil || d.Service.engine.Label == nil {
		add(readiness.StateWarn, check, label+" is not watched: there is no repository here", "run it in the repository of the loop")
		return
	}
	switch on, err := d.Service.engine.Label(ctx, d.Service.ws.Repo); {
	case on != "":
		add(readiness.StateWarn, check, label+" is watched, and is on "+on, "remove the label there")
	case err == nil:
		add(readiness.StateOK, check, label+" is watched, and is not set", "")
	case errors.Is(err, engine.ErrNoCodeHost):
		add(readiness.StateOK, check, label+" is not watched: "+err.Error(), "")
	case c.Definition.Tier == loop.TierUnattended:
		add(readiness.StateBad, check, label+" cannot be asked for, which stops every run at L3: "+err.Error(), fix)
	default:
		add(readiness.StateWarn, check, label+" cannot be asked for, and stops no run: "+err.Error(), fix)
	}
}

// checkGates runs the gates on the tip of the base, so that a broken gate is found
// before an agent costs money.
func (d Doctor) checkGates(ctx context.Context, c loops.Checked, add adder) {
	if d.Service == nil || c.Definition.Verify == "" && c.Definition.Guard == "" {
		return
	}
	defer removeIfNew(d.Home)()
	tries, err := d.Service.TryGates(ctx, c.Name, d.Output)
	if err != nil {
		fix := loop.Advise("repair what it says; a run would meet the same")
		f, ok := errors.AsType[*loop.Fault](err)
		switch {
		case ok && f.Exit == loop.ExitNotReady:
			fix = loop.Advise("{1} says what has to be corrected first", loop.PawlCommand("check", c.Name))
		case ok && f.Exit == loop.ExitNoSuccess:
			fix = f.Advice()
		}
		add(readiness.StateBad, "gates", "not tried: "+agent.OneLine(err.Error(), mostSaid), fix.Text, fix.Actions...)
		return
	}
	red := false
	for _, g := range tries {
		check := g.Name + " on base"
		switch {
		case g.Pass:
			add(readiness.StateOK, check, fmt.Sprintf("passes in %.0f ms", g.MS), "")
		case g.Missing:
			add(readiness.StateBad, check, gateEnded("cannot be run", g), g.Fix)
		case g.Obstacle != "":
			add(readiness.StateBad, check, "cannot start: "+agent.OneLine(g.Obstacle, mostSaid), g.Fix)
		case g.Name == "guard" && !red:
			add(readiness.StateBad, check, gateEnded("fails", g), "repair the base, or correct guard: it has to pass always")
		default:
			red = true
			add(readiness.StateWarn, check, gateEnded("fails", g),
				"right for a loop that is to repair it; else repair the base, or correct "+g.Name)
		}
	}
}

// gateEnded says how a gate ended, with the last line that it printed.
func gateEnded(how string, g GateTry) string {
	text := fmt.Sprintf("%s (exit status %d)", how, g.Exit)
	if last := agent.LastLine(g.Evidence); last != "" {
		text += ": " + last
	}
	return text
}

// mostSaid is how many characters of an error stand in a row.
const mostSaid = 400

func faultIn(err error) loop.Fault {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return *f
	}
	return loop.Fault{What: err.Error()}
}
