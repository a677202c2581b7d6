package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// ConfiningTiers returns the tiers that confine a program on some host, the strongest
// first.
func ConfiningTiers() []string {
	return []string{string(sandbox.Full), string(sandbox.Landlock), string(sandbox.Seatbelt)}
}

// CheckConfinement returns nil if this machine keeps what a tier promises, and a
// *loop.Fault with the cause and its fix if it does not. It caches results in home.
func CheckConfinement(ctx context.Context, home, tier string) error {
	return sandbox.Check(ctx, home, sandbox.Tier(tier))
}

// SandboxRows tries a tier on this machine. It returns a row for each action inside the
// sandbox, and one for the whole, with the fix if the machine does not keep what the
// tier promises. It leaves no files behind.
func (d Doctor) SandboxRows(ctx context.Context, tier string) []DoctorRow {
	var rows []DoctorRow
	dir, done, err := d.anyHome()
	if err != nil {
		return []DoctorRow{{State: readiness.StateBad, Check: "sandbox", Detail: err.Error(), Fix: "see whether " + os.TempDir() + " can be written"}}
	}
	defer done()
	result, err := sandbox.Test(ctx, sandbox.Tier(tier), dir)
	for _, r := range result.Rows {
		row := DoctorRow{State: readiness.StateOK, Check: r.Action, Detail: string(r.Got)}
		if r.Detail != "" {
			row.Detail += " (" + r.Detail + ")"
		}
		if !r.OK {
			row.State, row.Detail = readiness.StateBad, row.Detail+", and must be "+map[sandbox.Answer]string{sandbox.Works: "possible", sandbox.Denied: "denied"}[r.Want]
		}
		rows = append(rows, row)
	}
	whole := DoctorRow{State: readiness.StateOK, Check: "sandbox", Detail: fmt.Sprintf(
		"%s holds: %d actions tried in %s, kernel %s, Landlock %d", tier, len(result.Rows), result.Took.Round(time.Millisecond), result.Kernel, result.LandlockABI)}
	if err != nil || len(result.Failed()) > 0 {
		d.checkConfinement(ctx, sandbox.Tier(tier), func(state, check, detail, fix string, actions ...loop.Command) {
			whole = newRow("", state, check, detail, fix, actions...)
		})
	}
	if none := result.NoLayers; none != nil {
		rows = append(rows, copiesRow(none))
	}
	return append(rows, whole)
}

// copiesRow says what follows if no layers can be mounted.
func copiesRow(none *sandbox.NoLayers) DoctorRow {
	return DoctorRow{
		State: readiness.StateWarn, Check: "copies",
		Detail: "each run works in a complete copy of the repository, and its build caches start empty: " + none.Why, Fix: none.Fix + "; runs start faster with layers",
	}
}

// anyHome returns pawl's home or, if there is none, a temporary folder that done
// removes: the doctor makes no home. The folder is beside the future home if possible,
// because how copies can be made depends on the file system.
func (d Doctor) anyHome() (dir string, done func(), err error) {
	if _, err := os.Stat(d.Home); err == nil {
		return d.Home, func() {}, nil
	}
	if dir, err = os.MkdirTemp(filepath.Dir(d.Home), ".pawl-home-"); err != nil {
		dir, err = os.MkdirTemp("", "pawl-home-")
	}
	return dir, func() { _ = sandbox.RemoveTree(dir) }, err
}

// checkSandbox adds the rows about what confines a run of the definition.
func (d Doctor) checkSandbox(ctx context.Context, def loop.Definition, add adder) {
	def = def.WithDefaults()
	switch tier := sandbox.Tier(def.Sandbox); tier {
	case sandbox.None:
		if def.Tier == loop.TierUnattended {
			add(readiness.StateBad, "sandbox", "tier L3 acts without a human, and none confines nothing", "set sandbox: full")
			return
		}
		add(readiness.StateWarn, "sandbox", "none: agents and gates run with your rights, in copies outside of the checkout", "set sandbox: full")
	case sandbox.External:
		add(readiness.StateOK, "sandbox", "external: whatever pawl itself runs in", "")
	case sandbox.Full, sandbox.Landlock, sandbox.Seatbelt:
		d.checkConfinement(ctx, tier, add)
	}
}

// checkConfinement adds a row that says whether this machine keeps what a tier promises.
func (d Doctor) checkConfinement(ctx context.Context, tier sandbox.Tier, add adder) {
	home, done, err := d.anyHome()
	if err != nil {
		add(readiness.StateBad, "sandbox", err.Error(), "see whether "+os.TempDir()+" can be written")
		return
	}
	defer done()
	err = sandbox.Check(ctx, home, tier)
	if err == nil {
		add(readiness.StateOK, "sandbox", string(tier)+": its self-test passed on this machine", "")
		if none := sandbox.WhyNoLayers(home); tier.HasOwnRoot() && none != nil {
			row := copiesRow(none)
			add(row.State, row.Check, row.Detail, row.Fix)
		}
		return
	}
	why, fix := err.Error(), loop.Advise("set sandbox: external inside of a container, or sandbox: none to run without confinement")
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		why, fix = f.Why, f.Advice()
	}
	add(readiness.StateBad, "sandbox", string(tier)+": "+why, fix.Text, fix.Actions...)
}

// checkToolchains adds the rows of the installations of a loop's programs that are not
// the system's, and of the set-up that prepares its dependencies.
func (d Doctor) checkToolchains(ctx context.Context, def loop.Definition, add adder) {
	def = def.WithDefaults()
	if d.Service == nil || d.Service.engine == nil || !sandbox.Tier(def.Sandbox).HasOwnRoot() {
		return
	}
	if def.Agent == "" && def.AgentCommand == "" {
		return // The row of the agent says so already.
	}
	defer removeIfNew(d.Home)()
	tools, err := d.Service.engine.Toolset(ctx, d.Service.ws.Target(def))
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		add(readiness.StateBad, "toolchain", f.What+": "+f.Why, f.Fix, f.Actions...)
		return
	}
	if err != nil {
		add(readiness.StateBad, "toolchain", err.Error(), "")
		return
	}
	for _, t := range tools.Toolchains {
		if len(t.Bind) > 0 {
			add(readiness.StateOK, "toolchain", strings.Join(strings.Fields(t.Program+" "+t.Version+" "+t.Shim+" "+t.Path), " "), "")
		}
	}
	setup, err := tools.PlanSetup(os.DirFS(d.Service.ws.Root), def.Setup)
	switch {
	case err != nil:
		add(readiness.StateBad, "setup", err.Error(), "")
	case setup.Command != "":
		detail := setup.Command
		if setup.Detected {
			detail += " (detected from the lockfiles)"
		}
		if len(setup.Hosts) > 0 {
			detail += ", reaching " + strings.Join(setup.Hosts, " ")
		}
		add(readiness.StateOK, "setup", detail, "")
	}
}
