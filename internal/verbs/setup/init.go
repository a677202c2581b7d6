package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
)

// Names and texts of the first loop that is proposed.
const (
	firstLoop = "keep-tests-green"
	firstGoal = "Keep the tests green: when one fails, find the cause and report it, and from L2 on repair the code with the smallest change; " +
		"never touch tests, CI configuration, deploys or secrets."
)

// CompleteRequest fills the empty fields of a request for a first loop from the survey.
// Fields for which nothing was found stay empty.
func (v Survey) CompleteRequest(r loops.ScaffoldRequest) loops.ScaffoldRequest {
	set := func(at *string, text string) {
		if *at == "" {
			*at = text
		}
	}
	proposal, first := v.proposal(), v.firstName()
	set(&r.Name, first)
	set(&r.Pattern, "ci-watch")
	set(&r.Cadence, readiness.DefaultCadence)
	if r.Tier == "" {
		r.Tier = loop.TierReport
	}
	if r.Name == first {
		set(&r.Goal, firstGoal)
	}
	if p, known := pattern.Find(r.Pattern); known {
		set(&r.Goal, p.Goal)
	}
	if r.Verify != "" && proposal.Guard.Line == proposal.Verify.Line {
		set(&r.Guard, r.Verify) // A person who names another test does not want the one that was found.
	}
	set(&r.Verify, proposal.Verify.Line)
	set(&r.Guard, proposal.Guard.Line)
	set(&r.SetupFound, proposal.Setup.Line)
	set(&r.LandVia, "human")
	if r.Verify != "" && r.Pattern == "ci-watch" {
		set(&r.Sense, loop.SenseGates) // Its goal is that the gates pass.
	}
	if r.Scope == nil {
		r.Scope = proposal.Scope
	}
	if r.AgentCommand == "" && r.Agent == "" {
		v.chooseAgent(&r)
	}
	if r.AgentCommand != "" && r.Agent == "" {
		r.Agent = "command"
	}
	return r
}

// firstName returns a name for the proposed loop.
func (v Survey) firstName() string {
	if v.Package == "" || v.Package == "." {
		return firstLoop
	}
	return firstLoop + "-" + strings.Trim(notKebab.ReplaceAllString(strings.ToLower(v.Package), "-"), "-")
}

var notKebab = lazyregexp.New(`[^a-z0-9]+`)

// ExistingLoop returns the name of the loop that would be proposed if it exists already;
// empty if it does not, if the request has a name, or if it forces.
func (v Survey) ExistingLoop(r loops.ScaffoldRequest) string {
	if r.Name != "" || r.Force {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(v.Root, ".loops", v.firstName(), definition.ConfigFile)); err != nil {
		return ""
	}
	return v.firstName()
}

// chooseAgent takes the first installed agent with a login, or else the first one.
func (v Survey) chooseAgent(r *loops.ScaffoldRequest) {
	best := -1
	for i, a := range v.Agents {
		if best < 0 || a.Login == probe.LoginYes && v.Agents[best].Login != probe.LoginYes {
			best = i
		}
	}
	if best >= 0 {
		r.Agent = v.Agents[best].Name
	}
}

// EstimateFor returns what the loop would cost with the default model.
func EstimateFor(home string, r loops.ScaffoldRequest) (readiness.Cost, error) {
	table, err := budgets.Prices(home, "")
	if err != nil {
		return readiness.Cost{}, err
	}
	cadence, err := schedule.ParseFor(r.Cadence, r.Name)
	if err != nil {
		return readiness.Cost{}, fmt.Errorf("cadence: %w", err)
	}
	name := r.Pattern
	if _, ok := pattern.Find(name); !ok {
		name = pattern.Custom
	}
	return readiness.Estimate(table, readiness.Workload{
		Pattern: name, Model: readiness.DefaultModel, Cadence: r.Cadence, RunsPerDay: cadence.PerDay(),
		Days: readiness.DefaultDays, PrefixFraction: readiness.DefaultPrefixFraction, TTL: readiness.DefaultTTL,
	})
}

// Register records the workspace, and what git would execute in it: if that changes,
// later runs are refused. It may be repeated. A change is recorded only if accept is
// set, as an entry of the workspace's audit chain.
func (s *Service) Register(ctx context.Context, by loop.Actor, accept bool) error {
	hazards, err := hazard.Scan(ctx, s.ws.Repo.Dirs)
	if err != nil {
		return err
	}
	list, err := json.Marshal(hazards)
	if err != nil {
		return err
	}
	return s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.AddWorkspace(ctx, s.ws.Workspace); err != nil {
			return err
		}
		known, _, err := tx.GitFingerprint(ctx, s.ws.ID, s.ws.Node.ID)
		if err != nil || known != "" && !accept {
			return err
		}
		now := hazard.Fingerprint(hazards)
		if known != "" && known != now {
			err = tx.LinkBy(ctx, by, s.ws.ID, loop.LinkGitConfig, "", map[string]any{"verb": "accept", "before": known, "after": now})
		}
		return errors.Join(err, tx.SaveGitFingerprint(ctx, s.ws.ID, s.ws.Node.ID, now, string(list)))
	})
}

// AgentsSection is the section of AGENTS.md about pawl.
const AgentsSection = `## pawl

- Loops live in ` + "`.loops/`" + `. ` + "`loop.config.yaml`" + ` belongs to people; never change anything below ` + "`.loops/`" + `.
- In a run you work on a copy. Change only what the loop's ` + "`scope`" + ` names; leave git alone, pawl commits.
- Tests, lockfiles, CI and build configuration judge your work. Changes to them are refused unless the scope names them.
- Do one step, then stop. pawl runs the gates itself; saying that they pass changes nothing.
- Write your report as JSON to the file in ` + "`$PAWL_REPORT`" + `: outcome (done, blocked, failed, quiet, escalate) and a summary.
- What needs a person is escalated, not done.
`

// agentsFile is the file that agents of all kinds read.
const agentsFile = "AGENTS.md"

// AddAgentsSection appends AgentsSection to AGENTS.md, which it makes if it is missing.
// It reports false if the section is there already.
func (s *Service) AddAgentsSection() (bool, error) {
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return false, err
	}
	defer root.Close()
	text, err := root.ReadFile(agentsFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, &loop.Fault{
			Exit: loop.ExitError, What: "add a section to " + filepath.Join(s.ws.Root, agentsFile), Why: err.Error(), Err: err,
			Fix: "put a regular file there, or add the section by hand; {1} without --agents-md prints it", Actions: []loop.Command{loop.PawlCommand("init")},
		}
	}
	if strings.Contains("\n"+string(text), "\n## pawl\n") {
		return false, nil
	}
	f, err := root.OpenFile(agentsFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return false, err
	}
	lead := ""
	switch {
	case len(text) == 0:
	case !strings.HasSuffix(string(text), "\n"):
		lead = "\n\n"
	default:
		lead = "\n"
	}
	_, err = f.WriteString(lead + AgentsSection)
	return err == nil, errors.Join(err, f.Close())
}
