package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newOrgCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "org", Short: "Make, check and show an organisation of agents that work from task files", Args: exactArgs(0),
		Long: `An organisation is a folder agents/ with one folder for each agent. TASKS.md, CONTEXT.md, HEARTBEAT.md and INBOX.md are all that an agent
remembers, and people read and edit them. LOOP.md says how often it works and by which rules, org.yaml who reports to whom.

Each agent is a loop with the name of its folder: pawl run, show, why, check and pause take it as any other.`,
		Example: `  pawl org init --chief boss --department engineering=lead,dev,qa
  pawl org check
  pawl org show
  pawl run dev`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOrgInitCommand(a), newOrgCheckCommand(a), newOrgShowCommand(a), newOrgImportCommand(a))
	return cmd
}

func newOrgInitCommand(a *app) *cobra.Command {
	var r orgs.InitRequest
	var yes bool
	cmd := &cobra.Command{
		Use: "init", Short: "Make the files of an organisation, or of more agents", Args: exactArgs(0),
		Long: `Make org.yaml and the files of each agent that is named: a chief, and departments with their leads and members. Where there is an
organisation already, --member adds agents to it. No file is written over, and nothing is committed: what belongs into a commit is said.
Nothing is written before you said yes, or --yes did.`,
		Example: `  pawl org init
  pawl org init --owner Ada --chief boss --department engineering=lead,dev,qa --yes
  pawl org init --member writer --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return initOrg(cmd.Context(), a, r, yes)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Owner, "owner", "", "who answers for all of them, a `name`")
	f.StringVar(&r.Chief, "chief", "", "the `agent` of tier 1 (default: chief)")
	f.StringArrayVar(&r.Departments, "department", nil, "a department, `NAME=LEAD,MEMBER,...`; again for each")
	f.StringArrayVar(&r.Members, "member", nil, "an `agent` without a department; again for each")
	f.BoolVar(&yes, "yes", false, "write it, ask nothing")
	return cmd
}

func initOrg(ctx context.Context, a *app, r orgs.InitRequest, yes bool) error {
	return a.withCaller(ctx, nil, func(ask verb.Caller) error {
		plan, err := orgs.PlanOrg.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		p := a.printer()
		if !p.JSON {
			for _, f := range plan.Files {
				p.Line("file  %s", output.CleanLine(f.Path))
			}
			for _, name := range plan.Kept {
				p.Line("kept  %s, which is there already", output.CleanLine(name))
			}
		}
		if !yes && !a.agreesTo("Write this?") {
			return printUnwritten(p, plan)
		}
		made, err := orgs.InitOrg.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		if p.JSON {
			return p.WriteJSON(made)
		}
		p.Line("")
		p.Line("✓ %s written; commit them: git add agents org.yaml && git commit -m 'Add agents'", pluralize(len(made.Files), "file"))
		p.Line("next:  pawl org check     is all of it in order?")
		p.Line("       pawl org show      who reports to whom")
		return p.Err()
	})
}

func newOrgCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check the files of the organisation and of each agent", Args: exactArgs(0),
		Long: `Check what says who reports to whom, and for each agent seven things: its definition can be used, TASKS.md has a heading, HEARTBEAT.md is
there, INBOX.md has both sections, and CONTEXT.md, IDENTITY.md and SOUL.md are there. Standard output has one line for each finding:
path:line:column: what is wrong. Nothing is written.

The exit status is 10 if a check fails, or the organisation has a fault; a warning changes nothing.`,
		Example: "  pawl org check\n  pawl org check --jq .agents",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				c, err := orgs.CheckOrg.Call(cmd.Context(), ask, verb.None{})
				if err != nil {
					return err
				}
				return printOrgCheck(a.printer(), c)
			})
		},
	}
}

func printOrgCheck(p *output.Printer, c orgs.Checked) error {
	faults := printOrgFindings(p, c)
	if p.JSON {
		if err := p.WriteJSON(c); err != nil {
			return err
		}
	}
	p.Note("%d of %d health checks, %s", c.Passed, c.Checks, pluralize(len(c.Agents), "agent"))
	if err := p.Err(); err != nil || c.Healthy {
		return err
	}
	return &loop.Fault{Exit: loop.ExitNotReady, What: "the organisation is not in order", Why: pluralize(faults, "error"), Fix: "correct what is named above"}
}

// printOrgFindings prints a line for each finding, and returns how many are errors.
func printOrgFindings(p *output.Printer, c orgs.Checked) (faults int) {
	for _, f := range c.Findings {
		if f.Severity == readiness.SeverityError {
			faults++
		} else {
			f.Message = f.Severity + ": " + f.Message
		}
		if !p.JSON {
			p.Line("%s", output.CleanLine(f.String()))
		}
	}
	return faults
}

func newOrgShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show who reports to whom, and how each agent stands", Args: exactArgs(0),
		Long: `Show each agent below whom it reports to, with its tier, its interval, its department, how many of its seven health checks
it passes, how it stands, and how its last cycle ended.`,
		Example: "  pawl org show\n  pawl org show --jq '.agents[].id'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := orgs.ShowOrg.Call(cmd.Context(), ask, verb.None{})
				if err != nil {
					return err
				}
				return printOrg(a.printer(), v)
			})
		},
	}
}

func printOrg(p *output.Printer, v orgs.Shown) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s · %s · %d of %d health checks", p.Style.Bold(output.CleanLine(cmp.Or(v.Name, "organisation"))), pluralize(len(v.Agents), "agent"), v.Passed, v.Checks)
	p.Field("", "owner", cmp.Or(v.Owner, "nobody is named"))
	p.Field("", "chief", cmp.Or(v.Chief, "there is none"))
	p.Line("")
	rows := [][]string{{"AGENT", "TIER", "INTERVAL", "REPORTS TO", "DEPARTMENT", "HEALTH", "STATE", "LAST", "OUTCOME"}}
	for _, agent := range v.Agents {
		rows = append(rows, []string{
			strings.Repeat("  ", len(agent.Chain)) + output.CleanLine(agent.ID), fmt.Sprint(agent.Tier), cmp.Or(agent.Interval, "-"), output.CleanLine(cmp.Or(agent.ReportsTo, "owner")),
			output.CleanLine(cmp.Or(agent.Department, "-")), fmt.Sprintf("%d/%d", agent.Health.Passed, agent.Health.Checks), agent.State, p.Ago(agent.LastRun), cmp.Or(string(agent.Outcome), "-"),
		})
	}
	if err := p.Table(rows); err != nil {
		return err
	}
	for i, d := range v.Told {
		if i == 0 {
			p.Line("")
		}
		first, _, _ := strings.Cut(d.Text, "\n")
		p.Line("told %s, %s: %s: %s", output.CleanLine(d.To), p.Ago(&d.At), output.CleanLine(d.From), output.CleanLine(first))
	}
	return nil
}

func newOrgImportCommand(a *app) *cobra.Command {
	var r orgs.ImportRequest
	var yes bool
	cmd := &cobra.Command{
		Use: "import DIR", Short: "Take over the agents of a tree that exists", Args: exactArgs(1),
		Long: `Take over agents/ and the organisation's file of another tree. Files are copied byte for byte, and none is written over: what is here already
stays as it is, and what is not taken over is said. The tree is checked first. Nothing is written before you said yes, or --yes did.

A tree that is in this workspace already needs no import: its agents are loops as they are.`,
		Example: "  pawl org import ../crew\n  pawl org import ../crew --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			r.Dir, r.Base = args[0], a.workDir()
			return importOrg(cmd.Context(), a, r, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "write it, ask nothing")
	return cmd
}

func importOrg(ctx context.Context, a *app, r orgs.ImportRequest, yes bool) error {
	return a.withCaller(ctx, nil, func(ask verb.Caller) error {
		plan, err := orgs.PlanImport.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		p := a.printer()
		if !p.JSON {
			printImport(p, plan)
		}
		if len(plan.Files) == 0 && !p.JSON {
			p.Note("nothing to copy: each file is here already, or is left")
			return p.Err()
		}
		if !yes && !a.agreesTo("Copy these files?") {
			return printUnwritten(p, plan)
		}
		done, err := orgs.ImportOrg.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		if p.JSON {
			return p.WriteJSON(done)
		}
		p.Line("")
		p.Line("✓ %s copied; pawl org check says whether all of it is in order", pluralize(len(done.Files), "file"))
		return p.Err()
	})
}

func printImport(p *output.Printer, v orgs.Imported) {
	for _, f := range v.Files {
		p.Line("copy  %s", output.CleanLine(f.Path))
	}
	for _, name := range v.Kept {
		p.Line("kept  %s, which is here already", output.CleanLine(name))
	}
	for _, l := range v.Left {
		p.Line("left  %s: %s", output.CleanLine(l.Path), output.CleanLine(l.Why))
	}
	printOrgFindings(p, v.Check)
	p.Line("%s, %d of %d health checks", pluralize(len(v.Agents), "agent"), v.Check.Passed, v.Check.Checks)
}
