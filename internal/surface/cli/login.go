package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

func newAgentLoginCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "login", Short: "List the logins that runs have or that are kept, and exchange these", Args: exactArgs(0),
		Long: `A login that is lent to a run may come back as another one. The file of its program gets it only after a run that
was not refused, in which the host that renews the login was seen answering, and only if no other account is
named. Else it is kept beside that file, and so is every login that was replaced. One run has a login at a time, on
all nodes that share a store: the list says which.`,
		Example: "  pawl agent login list\n  pawl agent login swap claude",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLoginListCommand(a), newLoginSwapCommand(a))
	return cmd
}

func newLoginListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the logins that runs have or that are kept, never what is in them", Args: exactArgs(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withLogins(cmd.Context(), true, func(l roster.Logins) error {
				all, err := l.List(cmd.Context())
				if err != nil {
					return err
				}
				return printLogins(a.printer(), all)
			})
		},
	}
}

func printLogins(p *output.Printer, all []roster.Login) error {
	return output.List[roster.Login]{
		Schema: "pawl.logins/v1", Heading: []string{"ID", "AGENT", "FILE", "SINCE", "WHY"},
		Cells: func(k roster.Login) []string {
			return []string{output.CleanLine(k.ID), output.CleanLine(k.Agent), output.CleanLine(k.From), p.Ago(&k.At), output.CleanLine(k.Why)}
		},
	}.Print(p, all)
}

func newLoginSwapCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "swap AGENT|ID", Short: "Put a kept login into the file of its program, and keep what is there", Args: exactArgs(1),
		Long: `Exchange the login in the file of a program with the newest one that is kept of it, or with the one of an id. The one
that was in the file is kept, so a second swap undoes the first. Without a terminal it needs --yes.`,
		Example: "  pawl agent login swap claude\n  pawl agent login swap claude-1f2e3d4c --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.withLogins(cmd.Context(), false, func(l roster.Logins) error { return swapLogin(cmd.Context(), a, l, args[0], yes) })
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}

func swapLogin(ctx context.Context, a *app, logins roster.Logins, name string, yes bool) error {
	k, err := logins.Find(name)
	if err != nil {
		return err
	}
	p := a.printer()
	if !yes && !p.JSON {
		p.Field("  ", "login", output.CleanLine(k.ID))
		p.Field("  ", "into", output.CleanLine(k.From))
		p.Field("  ", "kept", output.CleanLine(p.Ago(&k.At)+": "+k.Why))
		if p.Err() != nil {
			return p.Err()
		}
	}
	if err := a.requireConsent(yes, "replaces "+k.From+" and keeps the login that is there", "pawl agent login swap "+k.ID); err != nil {
		return err
	}
	swap, err := logins.Swap(ctx, a.actor(""), k.ID)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.WriteJSON(swap)
	}
	text := output.CleanLine(k.From) + " holds " + output.CleanLine(k.ID)
	if swap.Kept != "" {
		text += "; `pawl agent login swap " + output.CleanLine(swap.Kept) + "` brings back the one before"
	}
	p.Line("%s", text)
	return p.Err()
}

// withLogins calls fn with the logins that are kept in this home.
func (a *app) withLogins(ctx context.Context, readOnly bool, fn func(roster.Logins) error) error {
	return a.withParts(ctx, readOnly, func(parts *compose.Parts) error { return fn(parts.Logins()) })
}
