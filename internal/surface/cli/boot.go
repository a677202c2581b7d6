package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newBootCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "boot", Short: "Make, check and read a workspace of the boot protocol", Args: exactArgs(0),
		Long: `A workspace of the boot protocol links to a read-only boot repository, which has its rules, stop lines and schemas, and keeps all
of its memory in git: AGENT_LINK.md, agent/STATE.json, agent/TODO.json, CHANGELOG.md. Another machine clones it and goes on.

Its loop is called boot: pawl run, show, why, pause and doctor take it as any other. Keys such as agent, verify and cadence are
written to .loops/boot/loop.config.yaml, which need not be there.`,
		Example: `  pawl boot init --boot acme/boot@v1.0.0
  pawl boot check
  pawl boot status
  pawl run boot --request "Write the parser"`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBootInitCommand(a), newBootCheckCommand(a), newBootStatusCommand(a), newBootMigrateCommand(a), newBootLogCommand(a))
	return cmd
}

func newBootInitCommand(a *app) *cobra.Command {
	var r boots.InitRequest
	var yes bool
	cmd := &cobra.Command{
		Use: "init", Short: "Make the files of a workspace of the boot protocol", Args: exactArgs(0),
		Long: `Make AGENT_LINK.md, the state, the tasks, the changelog and the directories of a workspace. The boot repository is loaded first; its
version becomes the expected one. No file is written over, and nothing is committed: what belongs into a commit is said. Nothing is
written before you said yes, or --yes did.

The test command that is found, as pawl init finds it, becomes the gate (verify) of .loops/boot/loop.config.yaml, and sessions push what
passes. Without a gate that file has land_via: human: a session ends waiting_human, and its commits are pushed when you approve.

--boot names a repository and a branch, a tag or a commit: owner/repo, a URL or a path. --new-boot makes a small boot repository of
your own in a folder, with a tag.`,
		Example: `  pawl boot init --boot acme/boot@v1.0.0
  pawl boot init --boot ../boot@main --project parser --yes
  pawl boot init --new-boot ../boot --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			r.Dir = a.workDir()
			return initBoot(cmd.Context(), a, r, yes)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Boot, "boot", "", "the boot repository and its reference, `REPOSITORY@REF`")
	f.StringVar(&r.NewBoot, "new-boot", "", "a `folder` in which a boot repository is made")
	f.StringVar(&r.Project, "project", "", "what is worked on, a `name` (default: that of the folder)")
	f.StringVar(&r.Verify, "verify", "", "the gate `command`, or none (default: the tests that are found)")
	f.BoolVar(&yes, "yes", false, "write it, ask nothing")
	return cmd
}

func initBoot(ctx context.Context, a *app, r boots.InitRequest, yes bool) error {
	return a.withCaller(ctx, nil, func(ask verb.Caller) error {
		plan, err := boots.PlanBoot.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		p := a.printer()
		if !p.JSON {
			printBegun(p, plan)
		}
		if !yes && !a.agreesTo("Write this?") {
			return printUnwritten(p, plan)
		}
		made, err := boots.InitBoot.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		if p.JSON {
			return p.WriteJSON(made)
		}
		p.Line("")
		p.Line("✓ written; commit it: git add %s && git commit -m 'Follow the boot protocol'", output.CleanLine(strings.Join(made.Commit, " ")))
		if made.New != "" {
			p.Line("  the rules are yours: %s", output.CleanLine(made.New))
		}
		p.Line("next:  pawl boot check     is all of it in order?")
		p.Line("       pawl run boot       one session, live; agent: NAME in .loops/boot/loop.config.yaml, or --agent NAME, says who works")
		return p.Err()
	})
}

func printBegun(p *output.Printer, b boots.Begun) {
	p.Line("boot        %s at %s, version %s", output.CleanLine(b.Repository), output.CleanLine(b.Reference), b.Version)
	if b.New != "" {
		p.Line("repository  %s is made, with one commit", output.CleanLine(b.New))
	}
	switch {
	case b.Verify != "":
		p.Line("gate        %s", output.CleanLine(b.Verify))
	case b.LandVia != "":
		p.Line("gate        none: nothing is pushed before you said yes (land_via: %s)", output.CleanLine(b.LandVia))
	}
	for _, f := range b.Files {
		p.Line("%-11s %s", map[bool]string{true: "line in", false: "file"}[f.Adds], output.CleanLine(f.Path))
	}
	for _, dir := range b.Folders {
		p.Line("folder      %s", output.CleanLine(dir))
	}
	for _, name := range b.Kept {
		p.Line("kept        %s, which is there already", output.CleanLine(name))
	}
}

// agreesTo asks for a yes where somebody can give it.
func (a *app) agreesTo(question string) bool { return a.canAsk() && a.confirm(question) }

// printUnwritten says that nothing of a plan was carried out.
func printUnwritten(p *output.Printer, plan any) error {
	if p.JSON {
		return p.WriteJSON(plan)
	}
	p.Note("nothing was written; --yes writes it")
	return p.Err()
}

func newBootCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check the link, the boot repository and the memory, as a run would", Args: exactArgs(0),
		Long: `Do what a run does before it plans: read AGENT_LINK.md, load the boot repository, read and validate the memory. Nothing is written
to the workspace. Standard output has one line for each finding: path:line:column: what is wrong (reason code). What a run would
mend by itself is marked with repair.

The exit status is that of such a run: 3 without a link, 4 for files that cannot be used, 5 if the boot repository cannot be reached or is
incomplete, 10 if its version does not fit, 11 if the state is lost.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				c, err := boots.CheckBoot.Call(cmd.Context(), ask, verb.None{})
				if err != nil {
					return err
				}
				return printBootCheck(a.printer(), c)
			})
		},
	}
}

func printBootCheck(p *output.Printer, c boots.Checked) error {
	errorsFound := 0
	for _, f := range c.Findings {
		if f.Severity == boots.SeverityError {
			errorsFound++
		} else {
			f.Message = f.Severity + ": " + f.Message
		}
		if !p.JSON {
			p.Line("%s", output.CleanLine(f.String()))
		}
	}
	if p.JSON {
		if err := p.WriteJSON(c); err != nil {
			return err
		}
	} else if b := c.Boot; b != nil && b.Commit != "" {
		p.Note("boot repository %s at %s (%.7s), version %s", output.CleanLine(b.Repository), output.CleanLine(b.Reference), b.Commit, cmp.Or(b.Version, "unknown"))
	}
	if err := p.Err(); err != nil {
		return err
	}
	if c.Ready {
		p.Note("a run of boot can begin")
		return nil
	}
	return &loop.Fault{Exit: c.Exit, What: "a run of boot would stop", Why: pluralize(errorsFound, "error"), Fix: "correct what is named above"}
}

func newBootStatusCommand(a *app) *cobra.Command {
	var r boots.StatusRequest
	cmd := &cobra.Command{
		Use: "status", Short: "Say where the work stands, and what a run would work on next", Args: exactArgs(0),
		Long: `Read the memory as a run would, and say where the work stands, which task a run would take up and why, and why not the others. Nothing
is written, and origin is not asked: unpushed commits are counted against what is known of it.`,
		Example: "  pawl boot status\n  pawl boot status --request 'Write the parser'\n  pawl boot status --jq .next.task",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := boots.BootStatus.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				return printBootStatus(a.printer(), v)
			})
		},
	}
	cmd.Flags().StringVar(&r.Request, "request", "", "what the run would be asked for, a `text`")
	return cmd
}

func printBootStatus(p *output.Printer, v boots.Status) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s · %s", p.Style.Bold(output.CleanLine(v.Project)), output.CleanLine(v.Phase))
	if v.Next.Task != "" {
		p.Field("", "next", fmt.Sprintf("%s  %s  (%s)", v.Next.Task, v.Next.Title, v.Next.Why))
	} else {
		p.Field("", "next", "nothing ("+v.Next.Why+")")
	}
	if v.Next.Question != "" {
		question := v.Next.Question
		if len(v.Next.Answers) > 0 {
			question += "  (" + strings.Join(v.Next.Answers, " or ") + ")"
		}
		p.Field("", "question", question)
	}
	if v.NextIntent != "" {
		p.Field("", "intent", v.NextIntent)
	}
	p.Field("", "tasks", countTasks(v.Tasks))
	if v.Errors > 0 {
		p.Field("", "errors", fmt.Sprint(v.Errors)+" recorded")
	}
	for _, note := range v.Repairs {
		p.Field("", "repair", "a run would note: "+note)
	}
	if v.Last != nil {
		p.Field("", "last", fmt.Sprintf("%.7s  %s  %s", v.Last.Commit, p.Ago(&v.Last.When), v.Last.Brief))
	}
	switch {
	case v.Remote == "":
		p.Field("", "branch", cmp.Or(v.Branch, "none")+"; there is no origin")
	case v.Unpushed == nil:
		p.Field("", "branch", v.Branch+", not known on origin; git push -u origin "+v.Branch)
	default:
		p.Field("", "branch", fmt.Sprintf("%s, %s not pushed to %s", v.Branch, pluralize(*v.Unpushed, "commit"), v.Remote))
	}
	for _, id := range v.Waits {
		p.Field("", "waits", "approval "+id)
	}
	if v.Boot != "" {
		p.Note("the boot repository cannot be used, so that the schemas of the format are: %s", output.CleanLine(v.Boot))
	}
	if len(v.Tasks) > 0 {
		p.Line("")
	}
	rows := [][]string{{"TASK", "STATUS", "PRIORITY", "TITLE", "WHY NOT NOW"}}
	for _, t := range v.Tasks {
		rows = append(rows, []string{output.CleanLine(t.ID), t.Status, t.Priority, excerpt(t.Title, 60), excerpt(t.Why, 60)})
	}
	if len(rows) > 1 {
		return p.Table(rows)
	}
	return p.Err()
}

// countTasks says how many tasks there are of each status.
func countTasks(tasks []boots.Task) string {
	count := map[string]int{}
	for _, t := range tasks {
		count[t.Status]++
	}
	var parts []string
	for _, status := range []string{"in-progress", "pending", "blocked", "done"} {
		if n := count[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func newBootMigrateCommand(a *app) *cobra.Command {
	var r boots.MigrateRequest
	var yes bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring an older link, state and list of tasks into the form of today", Args: exactArgs(0),
		Long: `Bring AGENT_LINK.md of the older form (rows Repo, Branch, Entry), a STATE.json of version 0.9 and files with other field names into the
form of today. The change is shown first; nothing is committed. No value is lost: what has no field is moved to metadata. A second
call changes nothing.`,
		Example: `  pawl boot migrate
  pawl boot migrate --boot-version 1.0.0 --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return migrateBoot(cmd.Context(), a, r, yes)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Boot, "boot", "", "the boot repository, where the link names none: `REPOSITORY@REF`")
	f.StringVar(&r.Version, "boot-version", "", "the expected `version` (default: that of the boot repository)")
	f.StringVar(&r.Project, "project", "", "what is worked on, where the state does not say it, a `name`")
	addYesFlag(cmd, &yes)
	return cmd
}

func migrateBoot(ctx context.Context, a *app, r boots.MigrateRequest, yes bool) error {
	return a.withCaller(ctx, nil, func(ask verb.Caller) error {
		m, err := boots.FindOutdated.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		p := a.printer()
		if len(m.Files) == 0 {
			if p.JSON {
				return p.WriteJSON(m)
			}
			p.Line("nothing to migrate: the link, the state and the tasks have the form of today")
			return p.Err()
		}
		var names []string
		for _, f := range m.Files {
			names = append(names, f.Path)
			if !p.JSON {
				p.Text(output.Clean(f.Diff))
			}
		}
		if p.JSON && !yes {
			if err := p.WriteJSON(m); err != nil {
				return err
			}
		}
		if err := a.requireConsent(yes, "changes "+strings.Join(names, ", "), "pawl boot migrate"); err != nil {
			return err
		}
		if m, err = boots.MigrateBoot.Call(ctx, ask, r); err != nil {
			return err
		}
		if p.JSON {
			return p.WriteJSON(m)
		}
		p.Line("✓ written: %s; look at it and commit it", output.CleanLine(strings.Join(names, ", ")))
		return p.Err()
	})
}

func newBootLogCommand(a *app) *cobra.Command {
	var r boots.LogRequest
	cmd := &cobra.Command{
		Use: "log", Short: "List the newest sessions, as git has them", Args: exactArgs(0),
		Long: `List the newest sessions: the commits of runs that changed the state, here or on any other machine. They are read from git, and no
store is needed.`,
		Example: "  pawl boot log -n 5",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				list, err := boots.ListSessions.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				p := a.printer()
				return output.List[boots.Session]{
					Schema: "pawl.boot-log/v1", Heading: []string{"COMMIT", "WHEN", "SESSION", "TASKS", "SUMMARY"},
					Empty: "No session yet: pawl run boot begins one",
					Cells: func(s boots.Session) []string {
						return []string{s.Commit[:min(7, len(s.Commit))], p.Ago(&s.When), excerpt(s.Brief, 40), excerpt(s.Tasks, 50), excerpt(s.Summary, 60)}
					},
				}.Print(p, list)
			})
		},
	}
	cmd.Flags().IntVarP(&r.Limit, "limit", "n", 0, "at most `n` of them (default: 20)")
	return cmd
}
