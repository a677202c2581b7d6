package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newAuditCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Prove what the runs of a loop did", Args: exactArgs(0),
		Long: `Every run, effect, approval, definition, kill and removal is an entry of a loop's audit chain, and each
entry holds the hash of the one before it.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerifyCommand(a), newAuditExportCommand(a), newAuditLogCommand(a))
	return cmd
}

type verifyOptions struct {
	loop, file, against string
}

func newAuditVerifyCommand(a *app) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use: "verify [LOOP]", Short: "Walk the audit chains, offline, and compare the run logs with them",
		Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		Long: `Walk the audit chain of a loop, or of all, offline: every hash, the order, gaps, and entries that are
missing at the end. Then compare the chain with the rows of the runs, and run-log.md with the chain, line
by line. The exit status is 0 if all of it is intact, and 1 if something is not; each place is named with
what is there and what was written.

It cannot tell when somebody who can write the store has made the chain anew from some entry on, with all
hashes, the rows of the runs and the log. A copy that is kept where nobody can write proves more:

  pawl audit export >audit.ndjson             keep it elsewhere
  pawl audit verify --file audit.ndjson       the copy itself is whole; needs no store
  pawl audit verify --against audit.ndjson    the store still holds all that the copy holds`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.loop = args[0]
			}
			if o.file != "" && (o.loop != "" || o.against != "") {
				return usageError(cmd, "--file looks at the copy alone, without LOOP and --against")
			}
			found, err := verifyAudit(cmd.Context(), a, o)
			if err != nil {
				return err
			}
			return printAudit(a.printer(), found)
		},
	}
	cmd.Flags().StringVar(&o.file, "file", "", "verify an exported `copy`, without the store (- reads standard input)")
	cmd.Flags().StringVar(&o.against, "against", "", "also see that the store holds all of an exported `copy`")
	return cmd
}

func verifyAudit(ctx context.Context, a *app, o verifyOptions) (found audit.Findings, err error) {
	if o.file != "" {
		err = a.readFile(o.file, func(from io.Reader) error {
			found, err = audit.VerifyCopy(from)
			return err
		})
		return found, err
	}
	err = a.withReadOnlyVerbs(ctx, func(s *api.Workspace) error {
		if found, err = s.Audit.Verify(ctx, o.loop); err != nil || o.against == "" {
			return err
		}
		return a.readFile(o.against, found.Against)
	})
	return found, err
}

// readFile reads an exported copy; - is standard input.
func (a *app) readFile(name string, read func(io.Reader) error) error {
	if name == "-" {
		return read(a.In)
	}
	name = a.absPath(name)
	file, err := os.Open(name)
	if err != nil {
		exit := loop.ExitUnreadable
		if errors.Is(err, os.ErrNotExist) {
			exit = loop.ExitNotFound
		}
		return &loop.Fault{Exit: exit, What: "read " + name, Why: err.Error(), Fix: "name a file that `pawl audit export` wrote", Err: err}
	}
	defer func() { _ = file.Close() }()
	return read(file)
}

// printAudit prints what was found of each chain. The first break is the error.
func printAudit(p *output.Printer, found audit.Findings) error {
	if p.JSON {
		if err := p.WriteJSON(found); err != nil {
			return err
		}
	} else {
		if len(found.Chains) == 0 {
			p.Line("There is nothing to verify yet: no loop has run.")
		}
		for _, c := range found.Chains {
			printChain(p, c)
		}
		if p.Err() != nil {
			return p.Err()
		}
	}
	if found.Intact {
		return nil
	}
	for _, c := range found.Chains {
		if len(c.Breaks) > 0 {
			return auditFault(c)
		}
	}
	return nil
}

// auditFault says what is wrong with a chain, and what helps: a log is made from a chain that
// is intact, and nothing makes a chain.
func auditFault(c audit.Chain) error {
	f := &loop.Fault{Exit: loop.ExitError, What: "the audit of " + cmp.Or(c.Loop, "the workspace") + " is broken", Why: c.Breaks[0].String()}
	rewrite := loop.PawlCommand("audit log", c.Loop).WithFlag("rewrite")
	switch c.Mend() {
	case audit.MendRewrite:
		return f.WithAdvice(loop.Advise("see who could write there; {1} makes the log anew from its chain, which is intact, and keeps the old one", rewrite))
	case audit.MendMove:
		return f.WithAdvice(loop.Advise("move it away; {1} makes it anew from its chain, which is intact", rewrite))
	case audit.MendRestore:
	}
	return f.WithAdvice(loop.Advise("see who could write there; a chain is not made anew: {1} brings a backup from before back", loop.PawlCommand("store restore", "FILE").WithBlanks("FILE")))
}

func printChain(p *output.Printer, c audit.Chain) {
	mark := p.Style.Green("✓")
	if len(c.Breaks) > 0 {
		mark = p.Style.Red("✗")
	}
	text := formatNumber(c.Links) + " entries"
	if c.Links == 1 {
		text = "1 entry"
	}
	text += ", head " + orDash(shortHash(c.Head))
	if c.Log != "" {
		text += "; run log: " + pluralize(c.Lines, "line")
	}
	if c.Earlier > 0 {
		text += fmt.Sprintf(" and %d from before the chain, which nothing vouches for", c.Earlier)
	}
	p.Line("%s %s · %s", mark, p.Style.Bold(output.CleanLine(cmp.Or(c.Loop, "the workspace"))), text)
	for _, b := range c.Breaks {
		p.Line("    %s", output.CleanLine(b.String()))
		if b.Found != "" {
			p.Line("      there:   %s", excerpt(b.Found, 300))
		}
		if b.Want != "" {
			p.Line("      written: %s", excerpt(b.Want, 300))
		}
	}
}

func newAuditExportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "export [LOOP]", Short: "Print the audit chains as lines of JSON, to be kept elsewhere",
		Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		Long: `Print the audit chain of a loop, or of all, as lines of JSON, schema pawl.audit/v1: first how long each
chain is and where it ends, then every entry. ` + "`pawl audit verify --file`" + ` verifies it without the store.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withReadOnlyVerbs(cmd.Context(), func(s *api.Workspace) error {
				name := loops.All
				if len(args) == 1 {
					name = args[0]
				}
				if a.jq != "" {
					return usageError(cmd, "--jq cannot be combined with lines of JSON, which would no longer verify")
				}
				return s.Audit.Export(cmd.Context(), name, a.Out)
			})
		},
	}
}

func newAuditLogCommand(a *app) *cobra.Command {
	rewrite, yes := false, false
	cmd := &cobra.Command{
		Use: "log LOOP", Short: "Print the run log as the audit chain has it, or write it anew",
		Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: `Print run-log.md as the loop's audit chain has it: exactly the bytes that its runs would have written.

With --rewrite the file is written anew, and the old one is kept beside it. Lines from before the chain
began are taken over as they are. It is refused while a run of the loop is live, and for a broken chain.
Without a terminal --rewrite requires --yes.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if rewrite {
				command := "pawl audit log " + args[0] + " --rewrite"
				if err := a.requireConsent(yes, "overwrites the run log of "+args[0]+" and keeps the old one beside it", command); err != nil {
					return err
				}
				return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
					l, err := api.RewriteRunLog.Call(cmd.Context(), c, api.LoopRef{Loop: args[0]})
					if err != nil {
						return err
					}
					return printRewritten(a.printer(), l)
				})
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				l, err := api.ShowRunLog.Call(cmd.Context(), c, api.LoopRef{Loop: args[0]})
				if err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(l)
				}
				p.Text(output.Clean(l.Text))
				return p.Err()
			})
		},
	}
	cmd.Flags().BoolVar(&rewrite, "rewrite", false, "write the file anew")
	addYesFlag(cmd, &yes)
	return cmd
}

func printRewritten(p *output.Printer, l audit.RunLog) error {
	if p.JSON {
		return p.WriteJSON(l)
	}
	if !l.Changed {
		p.Line("✓ %s is what its runs have written; nothing was changed", output.CleanLine(l.Path))
		return p.Err()
	}
	p.Line("✓ %s is written anew: %s", output.CleanLine(l.Path), pluralize(l.Lines+l.Earlier, "line"))
	p.Field("  ", "kept", l.Kept)
	return p.Err()
}
