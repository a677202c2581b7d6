package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newResourceCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "resource", Short: "Make and show what agents of a board are to know", Args: exactArgs(0),
		Long: `What agents of a board are to know: how work is done (sop), documentation, general notes, and which credentials there are. A credential is
kept as the name of a variable of the environment, never as what it is. Without an SOP or documentation, and without board set --waive,
no task of a board is ready.`,
		Example: "  pawl resource create --board site --title 'How we work' --category sop --content 'Small steps. Tests first.'\n  pawl resource create --board site --title 'Deploy token' --category credential --content '$DEPLOY_TOKEN'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newResourceCreateCommand(a), newResourceSetCommand(a), newResourceListCommand(a), newResourceShowCommand(a))
	return cmd
}

func addResourceFlags(cmd *cobra.Command) func() boards.ResourceChange {
	f := cmd.Flags()
	title, content := given(f, "title", "a `text` of at most 200 characters"), given(f, "content", "a `text` of at most 100000; of a credential: $NAME")
	category := given(f, "category", "`word`: "+joinWords(board.Categories())+" (default: general)")
	completeFlag(cmd, "category", offerWords(strings.Split(joinWords(board.Categories()), ", ")...))
	return func() boards.ResourceChange {
		return boards.ResourceChange{Title: title(), Content: content(), Category: category()}
	}
}

func newResourceCreateCommand(a *app) *cobra.Command {
	var r boards.CreateResourceRequest
	cmd := &cobra.Command{
		Use: "create", Short: "Create a resource, and print its id", Args: exactArgs(0),
		Example: "  pawl resource create --board site --title 'How we work' --category sop --content 'Small steps. Tests first.'",
	}
	change := addResourceFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r.ResourceChange = change()
		if r.Board == "" || r.Title == nil || r.Content == nil {
			return usageError(cmd, "a resource needs --board, --title and --content")
		}
		return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
			made, err := boards.CreateResource.Call(cmd.Context(), ask, r)
			if err != nil {
				return err
			}
			return printID(a.printer(), made.ID, made)
		})
	}
	cmd.Flags().StringVar(&r.Board, "board", "", "the `board` whose agents are to know it")
	completeFlag(cmd, "board", completeBoards(a))
	return cmd
}

func newResourceSetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set RESOURCE", Short: "Change a resource", Args: exactArgs(1),
		Example: "  pawl resource set rs_01j --content 'Small steps. Tests first. Ask before you rename.'",
	}
	change := addResourceFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !changesSomething(cmd) {
			return usageError(cmd, "nothing is to be changed")
		}
		return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
			v, err := boards.SetResource.Call(cmd.Context(), ask, boards.ResourceSetting{Resource: args[0], ResourceChange: change()})
			if err != nil {
				return err
			}
			return printResource(a.printer(), v)
		})
	}
	return cmd
}

func newResourceListCommand(a *app) *cobra.Command {
	var q boards.ResourceQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List resources, the oldest first", Args: exactArgs(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				all, err := boards.ListResources.Call(cmd.Context(), ask, q)
				if err != nil {
					return err
				}
				return output.List[boards.ResourceRow]{
					Schema: "pawl.resources/v1", Heading: []string{"ID", "BOARD", "CATEGORY", "TITLE"}, Empty: "There are no such resources: pawl resource create --board BOARD --title TEXT --content TEXT",
					Cells: func(r boards.ResourceRow) []string {
						return []string{r.ID, output.CleanLine(r.Slug), string(r.Category), excerpt(r.Title, 80)}
					},
				}.Print(a.printer(), all)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Board, "board", "", "list only those of this `board`")
	f.StringVar(&q.Category, "category", "", "list only those of this `word`")
	f.IntVar(&q.Limit, "limit", 100, "list at most `n`")
	completeFlag(cmd, "board", completeBoards(a))
	return cmd
}

func newResourceShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show RESOURCE", Short: "Show a resource", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := boards.ShowResource.Call(cmd.Context(), ask, boards.ResourceRef{Resource: args[0]})
				if err != nil {
					return err
				}
				return printResource(a.printer(), v)
			})
		},
	}
}

func printResource(p *output.Printer, v boards.ResourceView) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s  %s", p.Style.Bold(output.CleanLine(v.Title)), v.ID)
	p.Field("  ", "board", output.CleanLine(v.Slug))
	p.Field("  ", "category", string(v.Category))
	p.QuotedField("  ", "content", v.Content)
	return p.Err()
}
