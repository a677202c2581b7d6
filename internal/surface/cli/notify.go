package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newNotifyCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "notify", Short: "Say where notices are sent, try it, and see whether they were delivered", Args: exactArgs(0),
		Long: `Say where the notices of all loops of the store are sent. Some need you: a question, a step that was handed over, a run that
gave up, a loop without budget, a loop that does not come. The others are for information. Each matter is told once, and once
when it is over. pawl up delivers them.`,
		Example: "  pawl notify add ntfy https://ntfy.sh/my-topic --only needs-you\n  pawl notify test\n  pawl notify log",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNotifyAddCommand(a), newNotifyListCommand(a), newNotifyRmCommand(a), newNotifyTestCommand(a), newNotifyLogCommand(a))
	return cmd
}

func newNotifyAddCommand(a *app) *cobra.Command {
	var c loop.Channel
	var only string
	cmd := &cobra.Command{
		Use: "add KIND [TARGET]", Short: "Add a channel", Args: rangeArgs(1, 2),
		ValidArgs: []string{"command", "webhook", "ntfy", "desktop"},
		Long: `Add a channel for the notices of all loops of the store. The kinds:

  command LINE  a line for the shell of this node. The notice is JSON on its standard input, and in variables PAWL_NOTICE_*
  webhook URL   a POST of a CloudEvent, signed as Standard Webhooks; it needs a secret
  ntfy URL      a topic of an ntfy server, like https://ntfy.sh/my-topic
  desktop       the notifications of this node's desktop

The store keeps no secret: name the variable or the file that has it. Each node that delivers needs it.`,
		Example: `  pawl notify add ntfy https://ntfy.sh/my-topic --only needs-you
  pawl notify add ntfy https://ntfy.example.org/loops --name team --secret-env NTFY_TOKEN
  pawl notify add webhook https://example.org/pawl --secret-file ~/.config/pawl/hook.key
  pawl notify add command 'jq -r .title >> notices.txt'
  pawl notify add desktop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			c.Kind, c.Target = loop.ChannelKind(args[0]), strings.Join(args[1:], "")
			var err error
			if c.Only, err = notices.ParseOnly(only); err != nil {
				return err
			}
			if err := checkChannelFlags(c); err != nil {
				return err
			}
			if c.SecretFile != "" {
				c.SecretFile = a.absPath(c.SecretFile)
			}
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				added, err := api.AddChannel.Call(cmd.Context(), ask, c)
				if err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(addedChannel{"pawl.channel/v1", added})
				}
				p.Line("channel %s is added; try it: pawl notify test %s", added.Name, added.Name)
				return p.Err()
			})
		},
	}
	cmd.Flags().StringVar(&c.Name, "name", "", "`name` of the channel; without it the kind")
	cmd.Flags().StringVar(&only, "only", "", "send only notices of this `kind`: needs-you or information")
	cmd.Flags().StringVar(&c.SecretEnv, "secret-env", "", "`variable` with the secret of a webhook (whsec_…) or the token of ntfy")
	cmd.Flags().StringVar(&c.SecretFile, "secret-file", "", "`file` with it")
	cmd.Flags().StringVar(&c.Click, "click", "", "`URL` that a tap on a message of ntfy opens")
	return cmd
}

type addedChannel struct {
	Schema string `json:"schema"`
	loop.Channel
}

// checkChannelFlags refuses flags and arguments that a kind of channel does not have.
func checkChannelFlags(c loop.Channel) error {
	secret := c.SecretEnv != "" || c.SecretFile != ""
	fault := func(what, fix string) error { return &loop.Fault{Exit: loop.ExitUsage, What: what, Fix: fix} }
	switch {
	case c.SecretEnv != "" && c.SecretFile != "":
		return fault("--secret-env and --secret-file are both given", "leave one out")
	case c.Kind.OfHost() && secret:
		return fault(fmt.Sprintf("a channel of the kind %s has no secret", c.Kind), "leave out --secret-env and --secret-file")
	case c.Kind != loop.ChannelNtfy && c.Click != "":
		return fault("--click is for ntfy only", "leave it out")
	case c.Kind == loop.ChannelDesktop && c.Target != "":
		return fault("a desktop has no target", fmt.Sprintf("leave out %q", c.Target))
	}
	return nil
}

func newNotifyListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the channels, and whether they deliver", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				list, err := api.ListChannels.Call(cmd.Context(), ask, verb.None{})
				if err != nil {
					return err
				}
				return printChannels(a.printer(), list)
			})
		},
	}
}

func printChannels(p *output.Printer, all []notices.View) error {
	return output.List[notices.View]{
		Schema: "pawl.channels/v1", Heading: []string{"CHANNEL", "KIND", "TARGET", "ONLY", "NODE", "PENDING", "LAST"},
		Empty: "No channel for notices yet. Add one: pawl notify add ntfy https://ntfy.sh/TOPIC   (`pawl notify add --help` names the kinds)",
		Cells: func(v notices.View) []string {
			last := joinNonEmpty(" ", string(v.Last), excerpt(v.Error, 60))
			if v.Ended != nil {
				last = joinNonEmpty(" ", string(v.Last), p.Ago(v.Ended), excerpt(v.Error, 60))
			}
			return []string{
				output.CleanLine(v.Name), string(v.Kind), orDash(excerpt(v.Target, 60)), orDash(strings.ReplaceAll(string(v.Only), "_", "-")),
				orDash(output.CleanLine(v.NodeName)), fmt.Sprint(v.Pending), orDash(last),
			}
		},
	}.Print(p, all)
}

func newNotifyRmCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a channel, and what it has not delivered", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				if _, err := api.RemoveChannel.Call(cmd.Context(), ask, api.ChannelRef{Channel: args[0]}); err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(map[string]string{"schema": "pawl.channel_removed/v1", "name": args[0]})
				}
				p.Line("channel %s is removed", output.CleanLine(args[0]))
				return p.Err()
			})
		},
	}
}

func newNotifyTestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "test [NAME]", Short: "Send a test notice through one channel, or through all, and say what came of it", Args: rangeArgs(0, 1),
		Long: `Send a test notice at once, from this process, and say for each channel what came of it. The exit status is 1 if one
failed. Channels of other nodes (command, desktop) are named and not tried; tried by name, they fail.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.Join(args, "")
			return a.withParts(cmd.Context(), true, func(parts *compose.Parts) error {
				list, err := parts.Notices().Test(cmd.Context(), name)
				if err != nil {
					return err
				}
				if err := printTried(a.printer(), list); err != nil {
					return err
				}
				for _, t := range list {
					if t.Result == notices.Failed || name != "" && t.Result == notices.Elsewhere {
						return quietError(loop.ExitError)
					}
				}
				return nil
			})
		},
	}
}

func printTried(p *output.Printer, list []notices.Tried) error {
	err := output.List[notices.Tried]{
		Schema: "pawl.notify_test/v1", Heading: []string{"CHANNEL", "KIND", "RESULT"},
		Cells: func(t notices.Tried) []string {
			result := t.Result
			switch t.Result {
			case notices.Failed:
				result += ": " + output.CleanLine(t.Error)
			case notices.Elsewhere:
				result = "not tried: only node " + output.CleanLine(t.Node) + " delivers on it; enter the command there"
			}
			return []string{output.CleanLine(t.Channel), string(t.Kind), result}
		},
	}.Print(p, list)
	for _, t := range list {
		if f, ok := errors.AsType[*loop.Fault](t.Fault); ok {
			p.Note("pawl: %s: fix: %s", output.CleanLine(t.Channel), output.CleanLine(f.Advice().String()))
		}
	}
	return err
}

func newNotifyLogCommand(a *app) *cobra.Command {
	var before int64
	var limit int
	cmd := &cobra.Command{
		Use: "log", Short: "List the notices, the newest first, and whether they were delivered", Args: exactArgs(0),
		Long: `List the notices, the newest first, with the state of each delivery: pending, delivered, gave up (it failed for a day), or
dropped (its matter was over, or its channel removed, before it was sent).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || before < 0 {
				return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid --limit %d or --before %d", limit, before), Fix: "write numbers above 0"}
			}
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				list, err := api.ListNotices.Call(cmd.Context(), ask, api.NoticeQuery{Before: before, Limit: limit})
				if err != nil {
					return err
				}
				return printNotices(a.printer(), list)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "list at most `n`")
	cmd.Flags().Int64Var(&before, "before", 0, "list those before the notice with this `number`")
	return cmd
}

func printNotices(p *output.Printer, list []notices.Logged) error {
	return output.List[notices.Logged]{
		Schema: "pawl.notices/v1", Heading: []string{"N", "WHEN", "KIND", "NOTICE", "DELIVERY"}, Empty: "No notices yet.",
		Cells: func(l notices.Logged) []string {
			var became []string
			for _, d := range l.Deliveries {
				text := d.Channel + " " + strings.ReplaceAll(string(d.State), "_", " ")
				if d.Error != "" {
					text += fmt.Sprintf(" (try %d: %s)", d.Tries, d.Error)
				}
				became = append(became, text)
			}
			return []string{fmt.Sprint(l.Seq), p.Ago(&l.At), strings.ReplaceAll(string(l.Kind), "_", "-"), excerpt(l.Title, 70), orDash(excerpt(strings.Join(became, ", "), 100))}
		},
	}.Print(p, list)
}
