package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newSpecCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "spec", Short: "Make and steer LoopSpecs: what you want, and what pawl enforces", Args: exactArgs(0),
		Long: `A LoopSpec says what you want, and what pawl enforces: gates, a budget over its whole life, when to give up, what may be
changed, and what happens to a result. It is kept in the store, with its whole history.

Its id is the name of its loop: pawl run, show, why, trace, pause and approvals take it as any other.`,
		Example: `  pawl spec create --template keep-tests-green --agent claude
  pawl spec create --file spec.json
  pawl spec step lp_k3f9a2b
  pawl approve lp_k3f9a2b`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSpecCreateCommand(a), newSpecGenerateCommand(a), newSpecImportCommand(a), newSpecListCommand(a), newSpecGetCommand(a), newSpecStepCommand(a), newSpecStopCommand(a), newSpecEditCommand(a),
		newSpecFlagCommand(a), newSpecSpawnCommand(a), newSpecExportCommand(a), newSpecDeleteCommand(a),
	)
	return cmd
}

func newSpecCreateCommand(a *app) *cobra.Command {
	var r specs.CreateRequest
	var file string
	var templates []string
	for _, t := range loopspec.Templates {
		templates = append(templates, fmt.Sprintf("  %-17s %s", t.ID, t.What))
	}
	cmd := &cobra.Command{
		Use: "create", Short: "Create a LoopSpec, and print its id", Args: exactArgs(0),
		Long: `Create a LoopSpec from a document, or from a template that is filled with what the repository says of itself, and print its id.
What no phrase of the tables allows is refused with its place, and nothing is created: pawl explain spec lists the phrases.
The templates:

` + strings.Join(templates, "\n"),
		Example: `  pawl spec create --template keep-tests-green --agent claude
  pawl spec create --template coverage-ratchet --agent claude --coverage './coverage.sh'
  pawl spec create --file spec.json
  pawl spec export lp_k3f9a2b | pawl spec create --file -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" && r.Template != "" {
				return &loop.Fault{Exit: loop.ExitUsage, What: "--file and --template are both given", Fix: "leave one out"}
			}
			if file != "" {
				var err error
				if r.Document, err = readDocument(cmd.InOrStdin(), file); err != nil {
					return err
				}
				r.File = file
			}
			return createSpec(cmd.Context(), a, r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "`file` with the JSON of a LoopSpec; - is standard input")
	f.StringVar(&r.Template, "template", "", "`name` of a template")
	f.StringVar(&r.Goal, "goal", "", "the end `state` that is wanted")
	addFillFlags(f, &r.Fill)
	f.BoolVar(&r.DryRun, "dry-run", false, "check it and print the document; create nothing")
	return cmd
}

// addFillFlags adds what a template is filled with.
func addFillFlags(f *pflag.FlagSet, fill *specs.Fill) {
	f.StringVar(&fill.Agent, "agent", "", "who works on it: an `agent` of the roster or a driver")
	f.StringArrayVar(&fill.Paths, "path", nil, "a `path` that may be changed, like /src (repeat it); without it where the sources are")
	f.StringVar(&fill.Test, "test", "", "the `command` that runs the tests; without it what the repository names")
	f.StringVar(&fill.TypeCheck, "typecheck", "", "the `command` that checks types, likewise")
	f.StringVar(&fill.Lint, "lint", "", "the `command` of the linter, likewise")
	f.StringVar(&fill.Coverage, "coverage", "", "the `command` that prints the covered share in percent, alone on its last line")
	f.StringVar(&fill.Source, "source", "", "the `command` that prints what a monitor looks at")
}

func newSpecImportCommand(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "import", Short: "Create a LoopSpec from another program's document, and say what was changed in it", Args: exactArgs(0),
		Long: `Create a LoopSpec from the document of another program, or of another pawl. Its id and its times are kept if they are free. An
invariant that is a command becomes a command gate, and a guardrail that fits no phrase becomes a note, which is not enforced: what
was changed is said on standard error. Everything else is refused as by pawl spec create.`,
		Example: "  pawl spec import --file loop.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := readDocument(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			return createSpec(cmd.Context(), a, specs.CreateRequest{Document: text, File: file, Foreign: true})
		},
	}
	cmd.Flags().StringVar(&file, "file", "-", "`file` with the JSON of a LoopSpec; - is standard input")
	return cmd
}

// createSpec creates a spec and prints its id, or the document of one that is only checked.
func createSpec(ctx context.Context, a *app, r specs.CreateRequest) error {
	return a.withCaller(ctx, nil, func(ask verb.Caller) error {
		v, err := specs.CreateSpec.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		p := a.printer()
		noteFindings(p, v.Notes)
		switch {
		case p.JSON:
			return p.WriteJSON(v)
		case r.DryRun:
			p.Text(string(loopspec.Encode(v.Spec)))
		default:
			p.Line("%s", v.Spec.ID)
		}
		return p.Err()
	})
}

// readDocument reads a document from a file, or from standard input.
func readDocument(in io.Reader, file string) (string, error) {
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			fault := &loop.Fault{Exit: loop.ExitUnreadable, What: "read " + file, Why: err.Error(), Fix: "name a file with the JSON of a LoopSpec, or - for standard input", Err: err}
			if errors.Is(err, os.ErrNotExist) {
				fault.Exit = loop.ExitNotFound
			}
			return "", fault
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, loopspec.MaxBytes+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	return string(text), nil
}

func noteFindings(p *output.Printer, notes []loopspec.Finding) {
	for _, n := range notes {
		p.Note("note: %s", n)
	}
}

func newSpecListCommand(a *app) *cobra.Command {
	var q specs.Query
	cmd := &cobra.Command{
		Use: "list", Short: "List the LoopSpecs of this workspace, the newest change first", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				list, err := specs.ListSpecs.Call(cmd.Context(), ask, q)
				if err != nil {
					return err
				}
				return printSpecs(a.printer(), list)
			})
		},
	}
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "at most `n` of them")
	return cmd
}

func printSpecs(p *output.Printer, all []specs.Row) error {
	return output.List[specs.Row]{
		Schema: "pawl.specs/v1", Heading: []string{"SPEC", "STATUS", "ITERATIONS", "TOKENS", "CHANGED", "AGENT", "GOAL"},
		Empty: "No LoopSpec yet. Create one: pawl spec create --template keep-tests-green --agent AGENT",
		Cells: func(v specs.Row) []string {
			return []string{
				v.ID, string(v.Status), fmt.Sprint(v.Iterations), formatNumber(v.TokensUsed), p.Ago(&v.UpdatedAt), output.CleanLine(v.Agent), excerpt(v.Goal, 60),
			}
		},
	}.Print(p, all)
}

func newSpecGetCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get SPEC", Short: "Show a LoopSpec, its status and its iterations", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := specs.GetSpec.Call(cmd.Context(), ask, specs.SpecRef{Spec: args[0]})
				if err != nil {
					return err
				}
				return printSpec(a.printer(), v)
			})
		},
	}
}

func printSpec(p *output.Printer, v specs.View) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	s := v.Spec
	p.Line("%s · %s", p.Style.Bold(s.ID), v.Status)
	p.Field("", "goal", s.Goal)
	p.Field("", "agent", s.AgentID)
	p.Field("", "trigger", joinNonEmpty(" ", string(s.Trigger.Type), s.Trigger.On))
	p.Field("", "senses", s.StateSource)
	for _, g := range s.Gates {
		p.Field("", "gate", fmt.Sprintf("%s (%s): %s", g.Name, g.Kind, g.Check))
	}
	p.Field("", "budget", fmt.Sprintf("%d of %d iterations, %s of %s tokens, %s", v.Used, s.Budget.MaxIterations,
		formatNumber(v.TokensUsed), formatNumber(s.Budget.MaxTokens), formatMillis(float64(s.Budget.MaxWallClockMs))))
	p.Field("", "gives up", s.GiveUp)
	p.Field("", "on errors", s.ErrorPolicy)
	for _, rail := range s.Guardrails {
		if strings.HasPrefix(rail, "note:") {
			rail += "   (not enforced)"
		}
		p.Field("", "guardrail", rail)
	}
	p.Field("", "a result", s.HumanGate)
	if s.MemoryWrites != "" {
		p.Field("", "remembers", s.MemoryWrites+"   (the agent is asked to propose it)")
	}
	if s.ParentID != "" {
		p.Field("", "parent", s.ParentID)
	}
	printFamily(p, "", lookup.Family{Parent: v.Parent, Depth: v.Depth, MadeBy: v.MadeBy})
	if len(s.ChildIDs) > 0 {
		p.Field("", "children", strings.Join(s.ChildIDs, " "))
	}
	if v.Rubric != nil {
		for _, c := range v.Rubric.Criteria {
			p.Field("", "criterion", c)
		}
	}
	for _, c := range v.Claims {
		p.Field("", "agent says", c)
	}
	if v.Approval != "" {
		p.Field("", "waits", "approval "+v.Approval)
	}
	for _, it := range v.Iterations {
		p.Line("")
		p.Line("%d · %s%s", it.N, it.Verdict, map[bool]string{true: " · " + output.CleanLine(it.Gate)}[it.Gate != ""])
		for _, part := range [][2]string{{"sensed", it.Sensed}, {"decided", it.Decided}, {"acted", it.Acted}, {"feedback", it.Feedback}} {
			if part[1] != "" {
				p.Field("  ", part[0], part[1])
			}
		}
	}
	return p.Err()
}

func newSpecStepCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "step SPEC", Short: "Carry out one iteration of a LoopSpec, in the foreground", Args: exactArgs(1),
		Long: `Carry out one iteration of a LoopSpec, in the foreground. One that is paused goes on. One that waits for a human, is done or gave up
is refused. pawl run SPEC goes on until it has a result or gives up.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runLoop(cmd.Context(), a, runOptions{}, func(ctx context.Context, ask verb.Caller) (runs.View, error) {
				return specs.StepSpec.Call(ctx, ask, specs.SpecRef{Spec: args[0]})
			})
		},
	}
}

func newSpecStopCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "stop SPEC", Short: "Pause a LoopSpec, and end its live run", Args: exactArgs(1),
		Long: "Pause a LoopSpec, and end its live run. One that is done or gave up stays as it is. pawl spec step SPEC continues it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := specs.StopSpec.Call(cmd.Context(), ask, specs.SpecRef{Spec: args[0]})
				if err != nil {
					return err
				}
				return printSpecLine(a.printer(), v, "%s is %s", v.Spec.ID, v.Status)
			})
		},
	}
}

// printSpecLine prints what was done with a spec: a line, or all of it as JSON.
func printSpecLine(p *output.Printer, v specs.View, format string, args ...any) error {
	noteFindings(p, v.Notes)
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line(format, args...)
	return p.Err()
}

func newSpecEditCommand(a *app) *cobra.Command {
	var r specs.EditRequest
	cmd := &cobra.Command{
		Use: "edit SPEC", Short: "Replace the document of a LoopSpec", Args: exactArgs(1),
		Long: `Replace the document of a LoopSpec by a new revision. Its id and its trace stay. An approval that was asked for before is void,
because it was given for another document. One that gave up goes on, if its new budget allows it.`,
		Example: "  pawl spec export lp_k3f9a2b > spec.json\n  pawl spec edit lp_k3f9a2b --file spec.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			r.Spec = args[0]
			var err error
			if r.Document, err = readDocument(cmd.InOrStdin(), r.File); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := specs.EditSpec.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				return printSpecLine(a.printer(), v, "%s has revision %d", v.Spec.ID, v.Revision)
			})
		},
	}
	cmd.Flags().StringVar(&r.File, "file", "-", "`file` with the JSON of the LoopSpec; - is standard input")
	cmd.Flags().Int64Var(&r.Revision, "revision", 0, "refuse if the newest revision is not this `number`")
	return cmd
}

func newSpecFlagCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "flag SPEC TEXT", Short: "Say what was missed: reviewers judge by it from now on", Args: exactArgs(2),
		Long: `Say what was missed. It becomes a criterion of the reviewers, instead of those that contain it. A LoopSpec that is done is opened
again, and its next iteration is told.`,
		Example: `  pawl spec flag lp_k3f9a2b "the error message names the file"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := specs.FlagSpec.Call(cmd.Context(), ask, specs.FlagRequest{Spec: args[0], Text: args[1]})
				if err != nil {
					return err
				}
				return printSpecLine(a.printer(), v, "%s is %s; its reviewers judge by %d criteria", v.Spec.ID, v.Status, len(v.Rubric.Criteria))
			})
		},
	}
}

func newSpecSpawnCommand(a *app) *cobra.Command {
	var r specs.SpawnRequest
	cmd := &cobra.Command{
		Use: "spawn SPEC", Short: "Create a worker of a monitor or a coordinator, and print its id", Args: exactArgs(1),
		Long: `Create a worker of a LoopSpec whose role is monitor or coordinator, and print its id. It has everything of its parent but the
trigger; its budget is taken out of what the parent has left, and what it has not used goes back when it is deleted.`,
		Example: `  pawl spec spawn lp_k3f9a2b --goal "Mend the flaky test in pkg/queue." --iterations 2 --tokens 50000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			r.Parent = args[0]
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := specs.SpawnSpec.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				return printSpecLine(a.printer(), v, "%s", v.Spec.ID)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Goal, "goal", "", "its `goal`; without it the parent's")
	f.Int64Var(&r.Budget.MaxIterations, "iterations", 0, "`n` iterations of the parent's; without it all that is left")
	f.Int64Var(&r.Budget.MaxTokens, "tokens", 0, "`n` tokens of the parent's, likewise")
	f.StringVar((*string)(&r.Concurrency), "concurrency", "", "`sequential` or parallel to others of its board entry")
	return cmd
}

func newSpecExportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "export SPEC", Short: "Print the document of a LoopSpec", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				d, err := specs.ExportSpec.Call(cmd.Context(), ask, specs.SpecRef{Spec: args[0]})
				if err != nil {
					return err
				}
				p := a.printer()
				p.Text(d.Document)
				return p.Err()
			})
		},
	}
}

func newSpecDeleteCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete SPEC", Short: "Remove a LoopSpec and its children; their runs stay", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireConsent(yes, "removes "+args[0]+" and its children, and closes their open approvals", "pawl spec delete "+args[0]); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				gone, err := specs.DeleteSpec.Call(cmd.Context(), ask, specs.SpecRef{Spec: args[0]})
				if err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(gone)
				}
				p.Line("✓ removed: %s; their runs and audit logs stay", readiness.Printable(strings.Join(gone.IDs, ", ")))
				return p.Err()
			})
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}
