package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/credential"
)

func (a *app) cmdAgentLogin() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login", Short: "List and exchange the logins that are kept", Args: exactly(0),
		Long: `A login that is lent to a run may come back as another one. The file of its program gets it only after a run that
was not refused, in which the host that renews the login was seen answering, and only if no other account is
named. Else it is kept beside that file, and so is every login that was replaced.`,
		Example: "  pawl agent login list\n  pawl agent login swap claude",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.cmdLoginList(), a.cmdLoginSwap())
	return cmd
}

func (a *app) cmdLoginList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the logins that are kept, never what is in them", Args: exactly(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.logins(cmd.Context(), true, func(l control.Logins) error {
				all, err := l.Lender.List()
				if err != nil {
					return err
				}
				return a.printLogins(all)
			})
		},
	}
}

func (a *app) printLogins(all []credential.KeptLogin) error {
	if a.json {
		return a.printJSON(listOf("pawl.logins/v1", all))
	}
	table := [][]string{{"ID", "AGENT", "FILE", "KEPT", "WHY"}}
	for _, k := range all {
		table = append(table, []string{cleanLine(k.ID), cleanLine(k.Agent), cleanLine(k.From), ago(a.Now(), &k.At), cleanLine(k.Why)})
	}
	return a.columns(table)
}

func (a *app) cmdLoginSwap() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "swap AGENT|ID", Short: "Put a kept login into the file of its program, and keep what is there", Args: exactly(1),
		Long: `Exchange the login in the file of a program with the newest one that is kept of it, or with the one of an id. The one
that was in the file is kept, so a second swap undoes the first. Without a terminal it needs --yes.`,
		Example: "  pawl agent login swap claude\n  pawl agent login swap claude-1f2e3d4c --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.human(); err != nil {
				return err
			}
			return a.logins(cmd.Context(), false, func(l control.Logins) error { return a.swapLogin(cmd.Context(), l, args[0], yes) })
		},
	}
	yesFlag(cmd, &yes)
	return cmd
}

func (a *app) swapLogin(ctx context.Context, l control.Logins, name string, yes bool) error {
	k, err := l.Lender.Find(name)
	if err != nil {
		return err
	}
	if !yes && !a.json {
		p := printer{w: a.Out}
		p.field("  ", "login", cleanLine(k.ID))
		p.field("  ", "into", cleanLine(k.From))
		p.field("  ", "kept", cleanLine(ago(a.Now(), &k.At)+": "+k.Why))
		if p.err != nil {
			return p.err
		}
	}
	if err := a.consent(yes, "replaces "+k.From+" and keeps the login that is there", "pawl agent login swap "+k.ID); err != nil {
		return err
	}
	s, err := l.Swap(ctx, a.actor(""), k.ID)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(s)
	}
	text := cleanLine(k.From) + " holds " + cleanLine(k.ID)
	if s.Kept != "" {
		text += "; `pawl agent login swap " + cleanLine(s.Kept) + "` brings back the one before"
	}
	_, err = fmt.Fprintln(a.Out, text)
	return err
}
