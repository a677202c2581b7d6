package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newMsgCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "msg", Short: "Send and read the messages of agents of boards", Args: exactArgs(0),
		Long: `Agents of boards answer their messages in their next heartbeat. An order goes down only, from a higher layer or along the line of
reports, and goes before what an agent would choose; a report goes up; a question about a task keeps it from being begun until it is
answered; a suggestion binds nobody.`,
		Example: "  pawl msg send --to @ada --kind order --task tk_01j --content 'Do this first.'\n  pawl msg list --to @ada\n  pawl msg show ms_01j",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMsgSendCommand(a), newMsgListCommand(a), newMsgShowCommand(a))
	return cmd
}

func newMsgSendCommand(a *app) *cobra.Command {
	var r boards.SendRequest
	cmd := &cobra.Command{
		Use: "send", Short: "Send a message to an agent, and print its id", Args: exactArgs(0),
		Example: "  pawl msg send --to @ada --kind order --task tk_01j --content 'Do this first.'\n  pawl msg send --from @ada --to @lead --kind report --content 'The footer is done.'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.To == "" || r.Content == "" {
				return usageError(cmd, "a message needs --to, --kind and --content")
			}
			return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
				made, err := boards.SendMessage.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				return printID(a.printer(), made.ID, made)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.From, "from", "", "the `@handle` of who sends it (default: a person)")
	f.StringVar(&r.To, "to", "", "the `@handle` of who gets it")
	f.StringVar(&r.Kind, "kind", "", "`word`: "+joinWords(board.MessageTypes()))
	f.StringVar(&r.Content, "content", "", "a `text` of at most 10000 characters")
	f.StringVar(&r.Task, "task", "", "the `task` that it is about")
	completeFlag(cmd, "kind", offerWords(strings.Split(joinWords(board.MessageTypes()), ", ")...))
	return cmd
}

func newMsgListCommand(a *app) *cobra.Command {
	var q boards.MessageQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List messages, the newest first", Args: exactArgs(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				all, err := boards.ListMessages.Call(cmd.Context(), ask, q)
				if err != nil {
					return err
				}
				p := a.printer()
				return output.List[boards.MessageView]{
					Schema: "pawl.messages/v1", Heading: []string{"ID", "SENT", "FROM", "TO", "KIND", "STATE", "CONTENT"}, Empty: "There are no such messages.",
					Cells: func(m boards.MessageView) []string {
						return []string{
							m.ID, agoMillis(p, m.SentAt), authorName(board.AuthorOf(m.FromAgentID), m.FromAgentID), authorName(board.AuthorOf(m.ToAgentID), m.ToAgentID), string(m.MessageType), messageState(m),
							excerpt(m.Content, 60),
						}
					},
				}.Print(p, all)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.To, "to", "", "list only those to this `@handle`, or to human")
	f.StringVar(&q.From, "from", "", "list only those from this `@handle`, or from human")
	f.IntVar(&q.Limit, "limit", 50, "list at most `n`")
	return cmd
}

func messageState(m boards.MessageView) string {
	switch {
	case m.Response != "":
		return "answered"
	case m.Acknowledged:
		return "taken"
	}
	return "waits"
}

func newMsgShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show MESSAGE", Short: "Show a message and its response", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := boards.ShowMessage.Call(cmd.Context(), ask, boards.MessageRef{Message: args[0]})
				if err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(v)
				}
				p.Line("%s  %s", p.Style.Bold(string(v.MessageType)), v.ID)
				p.Field("  ", "from", authorName(board.AuthorOf(v.FromAgentID), v.FromAgentID))
				p.Field("  ", "to", authorName(board.AuthorOf(v.ToAgentID), v.ToAgentID))
				p.Field("  ", "sent", agoMillis(p, v.SentAt))
				p.Field("  ", "state", messageState(v))
				p.Field("  ", "task", v.TaskID)
				p.Field("  ", "answers", v.Answers)
				p.QuotedField("  ", "content", v.Content)
				p.QuotedField("  ", "response", v.Response)
				return p.Err()
			})
		},
	}
}
