package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

func (a *app) cmdAudit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Prove what the runs of a loop did", Args: exactly(0),
		Long: `Every run, effect, approval, definition, kill and removal is an entry of a loop's audit chain, and each
entry holds the hash of the one before it.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.cmdAuditVerify(), a.cmdAuditExport(), a.cmdAuditLog())
	return cmd
}

type verifyOptions struct {
	loop, file, against string
}

func (a *app) cmdAuditVerify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use: "verify [LOOP]", Short: "Walk the audit chains, offline, and compare the run logs with them",
		Args: between(0, 1), ValidArgsFunction: a.completeLoops,
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
				return usage(cmd, "--file looks at the copy alone, without LOOP and --against")
			}
			found, err := a.audit(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.printAudit(found)
		},
	}
	cmd.Flags().StringVar(&o.file, "file", "", "verify an exported `copy`, without the store (- reads standard input)")
	cmd.Flags().StringVar(&o.against, "against", "", "also see that the store holds all of an exported `copy`")
	return cmd
}

func (a *app) audit(ctx context.Context, o verifyOptions) (found control.Audit, err error) {
	if o.file != "" {
		err = a.withFile(o.file, func(from io.Reader) error {
			found, err = control.AuditCopy(from)
			return err
		})
		return found, err
	}
	err = a.reading(ctx, func(s *compose.Verbs) error {
		if found, err = s.Audit(ctx, o.loop); err != nil || o.against == "" {
			return err
		}
		return a.withFile(o.against, found.Against)
	})
	return found, err
}

// withFile opens a file that a flag names.
func (a *app) withFile(name string, do func(io.Reader) error) error {
	if name == "-" {
		return do(a.In)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.Dir, name)
	}
	file, err := os.Open(name)
	if err != nil {
		exit := loop.ExitUnreadable
		if errors.Is(err, os.ErrNotExist) {
			exit = loop.ExitNotFound
		}
		return &loop.Fault{Exit: exit, What: "read " + name, Why: err.Error(), Fix: "name a file that `pawl audit export` wrote", Err: err}
	}
	defer func() { _ = file.Close() }()
	return do(file)
}

func (a *app) printAudit(found control.Audit) error {
	if err := a.listAudit(found); err != nil || found.Intact {
		return err
	}
	for _, c := range found.Chains {
		if len(c.Breaks) > 0 {
			return &loop.Fault{
				Exit: loop.ExitError, What: "the audit of " + chainName(c) + " is broken", Why: c.Breaks[0].String(),
				Fix: "see who could write there; `pawl audit log " + firstOf(c.Loop, "LOOP") + " --rewrite` makes a run log anew from an intact chain, and a broken store is restored from a backup",
			}
		}
	}
	return nil
}

func chainName(c control.AuditChain) string { return firstOf(c.Loop, "the workspace") }

func (a *app) listAudit(found control.Audit) error {
	if a.json {
		return a.printJSON(found)
	}
	p := printer{w: a.Out}
	if len(found.Chains) == 0 {
		p.line("There is nothing to verify yet: no loop has run.")
	}
	s := a.style()
	for _, c := range found.Chains {
		mark := s.green("✓")
		if len(c.Breaks) > 0 {
			mark = s.red("✗")
		}
		entries := number(c.Links) + " entries"
		if c.Links == 1 {
			entries = "1 entry"
		}
		text := entries + ", head " + orDash(shortHash(c.Head))
		if c.Log != "" {
			text += "; run log: " + count(c.Lines, "line")
		}
		if c.Earlier > 0 {
			text += fmt.Sprintf(" and %d from before the chain, which nothing vouches for", c.Earlier)
		}
		p.line("%s %s · %s", mark, s.bold(cleanLine(chainName(c))), text)
		for _, b := range c.Breaks {
			p.line("    %s", cleanLine(b.String()))
			if b.Found != "" {
				p.line("      there:   %s", excerpt(b.Found, 300))
			}
			if b.Want != "" {
				p.line("      written: %s", excerpt(b.Want, 300))
			}
		}
	}
	return p.err
}

func (a *app) cmdAuditExport() *cobra.Command {
	return &cobra.Command{
		Use: "export [LOOP]", Short: "Print the audit chains as lines of JSON, to be kept elsewhere",
		Args: between(0, 1), ValidArgsFunction: a.completeLoops,
		Long: `Print the audit chain of a loop, or of all, as lines of JSON, schema pawl.audit/v1: first how long each
chain is and where it ends, then every entry. ` + "`pawl audit verify --file`" + ` verifies it without the store.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				name := control.All
				if len(args) == 1 {
					name = args[0]
				}
				if a.jq != "" {
					return usage(cmd, "--jq cannot be combined with lines of JSON, which would no longer verify")
				}
				return s.ExportAudit(cmd.Context(), name, a.Out)
			})
		},
	}
}

func (a *app) cmdAuditLog() *cobra.Command {
	rewrite, yes := false, false
	cmd := &cobra.Command{
		Use: "log LOOP", Short: "Print the run log as the audit chain has it, or write it anew",
		Args: exactly(1), ValidArgsFunction: a.completeLoops,
		Long: `Print run-log.md as the loop's audit chain has it: exactly the bytes that its runs would have written.

With --rewrite the file is written anew, and the old one is kept beside it. Lines from before the chain
began are taken over as they are. It is refused while a run of the loop is live, and for a broken chain.
Without a terminal --rewrite requires --yes.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if rewrite {
				command := "pawl audit log " + args[0] + " --rewrite"
				if err := a.consent(yes, "overwrites the run log of "+args[0]+" and keeps the old one beside it", command); err != nil {
					return err
				}
				return a.writing(cmd.Context(), nil, func(s *compose.Verbs) error {
					l, err := s.RewriteLog(cmd.Context(), a.actor(""), args[0])
					if err != nil {
						return err
					}
					return a.printRewritten(l)
				})
			}
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				l, err := s.RunLog(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(l)
				}
				_, err = io.WriteString(a.Out, clean(l.Text))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&rewrite, "rewrite", false, "write the file anew")
	yesFlag(cmd, &yes)
	return cmd
}

func (a *app) printRewritten(l control.RunLog) error {
	if a.json {
		return a.printJSON(l)
	}
	p := printer{w: a.Out}
	if !l.Changed {
		p.line("✓ %s is what its runs have written; nothing was changed", cleanLine(l.Path))
		return p.err
	}
	p.line("✓ %s is written anew: %s", cleanLine(l.Path), count(l.Lines+l.Earlier, "line"))
	p.field("  ", "kept", l.Kept)
	return p.err
}
