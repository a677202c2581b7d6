package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newTaskCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "task", Short: "Make, change and explain the tasks of boards", Args: exactArgs(0),
		Example: `  pawl task create --board site --title 'Mend the footer' --description 'It overlaps on phones.' --priority high
  pawl task list --board site
  pawl task why tk_01j
  pawl task comment tk_01j --by Ada '@dev does this need a test?'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newTaskCreateCommand(a), newTaskSetCommand(a), newTaskListCommand(a), newTaskShowCommand(a), newTaskCommentCommand(a), newTaskMoveCommand(a), newTaskAssignCommand(a), newTaskWhyCommand(a),
	)
	return cmd
}

// addTaskFlags adds the flags of what a task says.
func addTaskFlags(cmd *cobra.Command) func() boards.TaskChange {
	f := cmd.Flags()
	title, description := given(f, "title", "what is to be done, a `text` of at most 200 characters"), given(f, "description", "more about it, a `text` of at most 5000")
	criteria, priority := given(f, "criteria", "when it is done, a `text` of at most 5000"), given(f, "priority", "`word`: "+joinWords(board.Priorities()))
	parent, due := given(f, "parent", "the `task` that has to be done before"), given(f, "due", "when it has to be done, a `day` or a time")
	skills, tags := givenList(f, "skill", "what an agent has to be good at; may be repeated, 20 at most"), givenList(f, "tag", "a `word` about it; may be repeated, 20 at most")
	order := f.Int("order", 0, "its place among those that are as important, a `number`")
	completeFlag(cmd, "priority", offerWords(strings.Split(joinWords(board.Priorities()), ", ")...))
	return func() boards.TaskChange {
		c := boards.TaskChange{
			Title: title(), Description: description(), Criteria: criteria(), Priority: priority(), Parent: parent(), Due: due(), Skills: skills(), Tags: tags(),
		}
		if f.Changed("order") {
			c.Order = order
		}
		return c
	}
}

func newTaskCreateCommand(a *app) *cobra.Command {
	var r boards.CreateTaskRequest
	cmd := &cobra.Command{
		Use: "create", Short: "Create a task, and print its id", Args: exactArgs(0),
		Long: `Create a task. It is in the backlog unless --status says otherwise, behind the others of its board. An agent takes it when it has a
description or --criteria, the agent has the skills that it needs, and the board has an SOP or documentation, or needs none.`,
		Example: "  pawl task create --board site --title 'Mend the footer' --criteria 'npm test passes' --priority high --due 2026-05-04",
	}
	change := addTaskFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r.TaskChange = change()
		if r.Board == "" || r.Title == nil {
			return usageError(cmd, "a task needs --board and --title")
		}
		return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
			made, err := boards.CreateTask.Call(cmd.Context(), ask, r)
			if err != nil {
				return err
			}
			return printID(a.printer(), made.ID, made)
		})
	}
	f := cmd.Flags()
	f.StringVar(&r.Board, "board", "", "the `board` that it belongs to")
	f.StringVar(&r.Status, "status", "", "the `column` in which it begins (default: backlog)")
	f.StringVar(&r.Assignee, "assign", "", "the `@handle` of who is to do it")
	f.StringVar(&r.By, "by", "", "the `@handle` of the agent that wants it (default: a person)")
	completeFlag(cmd, "board", completeBoards(a))
	completeFlag(cmd, "status", offerWords(strings.Split(joinWords(board.Statuses()), ", ")...))
	return cmd
}

func newTaskSetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set TASK", Short: "Change what a task says", Args: exactArgs(1), ValidArgsFunction: completeTasks(a),
		Long:    "Change what is named by a flag; an empty value takes it away. A task that an agent works on is not changed.",
		Example: "  pawl task set tk_01j --priority urgent --due 2026-05-04",
	}
	change := addTaskFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !changesSomething(cmd) {
			return usageError(cmd, "nothing is to be changed")
		}
		return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
			v, err := boards.SetTask.Call(cmd.Context(), ask, boards.TaskSetting{Task: args[0], TaskChange: change()})
			if err != nil {
				return err
			}
			return printTask(a.printer(), v)
		})
	}
	return cmd
}

func newTaskListCommand(a *app) *cobra.Command {
	var q boards.TaskQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List tasks, the newest first", Args: exactArgs(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				all, err := boards.ListTasks.Call(cmd.Context(), ask, q)
				if err != nil {
					return err
				}
				return output.List[boards.TaskRow]{
					Schema: "pawl.tasks/v1", Heading: []string{"ID", "BOARD", "STATUS", "PRIORITY", "WHO", "TITLE"}, Empty: "There are no such tasks: pawl task create --board BOARD --title TEXT",
					Cells: func(t boards.TaskRow) []string {
						return []string{t.ID, output.CleanLine(t.Slug), string(t.Status), string(t.Priority), assignee(t.AssigneeID), excerpt(t.Title, 80)}
					},
				}.Print(a.printer(), all)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Board, "board", "", "list only those of this `board`")
	f.StringVar(&q.Status, "status", "", "list only those in this `column`")
	f.StringVar(&q.Assignee, "assignee", "", "list only those of this `@handle`")
	f.IntVar(&q.Limit, "limit", 100, "list at most `n`")
	completeFlag(cmd, "board", completeBoards(a))
	completeFlag(cmd, "status", offerWords(strings.Split(joinWords(board.Statuses()), ", ")...))
	return cmd
}

func assignee(handle string) string {
	if handle == "" {
		return "–"
	}
	return "@" + output.CleanLine(handle)
}

func newTaskShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show TASK", Short: "Show a task with its comments and its log", Args: exactArgs(1), ValidArgsFunction: completeTasks(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := boards.ShowTask.Call(cmd.Context(), ask, boards.TaskRef{Task: args[0]})
				if err != nil {
					return err
				}
				return printTask(a.printer(), v)
			})
		},
	}
}

// shownLog is how many entries of a log are shown.
const shownLog = 20

func printTask(p *output.Printer, v boards.TaskView) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s  %s", p.Style.Bold(output.CleanLine(v.Title)), v.ID)
	p.Field("  ", "board", output.CleanLine(v.Slug))
	p.Field("  ", "status", joinNonEmpty(", ", string(v.Status), string(v.ExecutionStatus)))
	p.Field("  ", "priority", string(v.Priority))
	if v.AssigneeID != "" {
		p.Field("  ", "who", assignee(v.AssigneeID))
	}
	p.Field("  ", "run", v.RunID)
	p.Field("  ", "after", v.ParentTaskID)
	p.Field("  ", "skills", strings.Join(v.RequiredSkills, ", "))
	p.Field("  ", "tags", strings.Join(v.Tags, ", "))
	if v.DueDate != 0 {
		p.Field("  ", "due", v.DueDate.Time().Format("2006-01-02 15:04 MST"))
	}
	p.QuotedField("  ", "about", v.Description)
	p.QuotedField("  ", "done when", v.AcceptanceCriteria)
	p.Field("  ", "made", fmt.Sprintf("%s by %s", agoMillis(p, v.CreatedAt), authorName(board.AuthorOf(v.CreatedBy), v.CreatedBy)))
	for _, c := range v.Comments {
		p.Line("")
		p.Line("%s, %s  %s", authorName(c.AuthorType, c.AuthorID), agoMillis(p, c.CreatedAt), p.Style.Dim(c.ID))
		p.Line("%s", output.Quote(c.Content))
	}
	log := v.ExecutionLog[max(0, len(v.ExecutionLog)-shownLog):]
	if len(log) > 0 {
		p.Line("")
	}
	if left := len(v.ExecutionLog) - len(log); left > 0 {
		p.Line("%s before; --json has them", pluralize(left, "entry"))
	}
	for _, e := range log {
		p.Line("%s %s", p.Style.Dim(e.Timestamp.Time().Format("15:04:05")), p.Style.Bold(string(e.Type)))
		p.Line("%s", output.Quote(e.Content))
	}
	return p.Err()
}

func newTaskCommentCommand(a *app) *cobra.Command {
	var r boards.CommentRequest
	cmd := &cobra.Command{
		Use: "comment TASK TEXT", Short: "Write a comment below a task, and print its id", Args: exactArgs(2), ValidArgsFunction: completeTasks(a),
		Long:    "Write a comment below a task. Agents that it mentions as @handle answer it in their next heartbeat.",
		Example: "  pawl task comment tk_01j --by Ada '@dev does this need a test?'",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Task, r.Text = args[0], args[1]
			return a.writing(cmd.Context(), strings.TrimPrefix(r.By, "@"), func(ask verb.Caller) error {
				made, err := boards.CommentTask.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				for _, handle := range made.Unknown {
					a.printer().Note("pawl: no agent of the boards is called @%s", output.CleanLine(handle))
				}
				return printID(a.printer(), made.ID, made)
			})
		},
	}
	cmd.Flags().StringVar(&r.By, "by", "", "`who` says it: your name, or the @handle of an agent (default: $USER)")
	cmd.Flags().StringVar(&r.Parent, "answer", "", "the id of the `comment` that it answers")
	return cmd
}

func newTaskMoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "move TASK COLUMN", Short: "Move a task to another column", Args: exactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return offerWords(strings.Split(joinWords(board.Statuses()), ", ")...)(cmd, args, prefix)
			}
			return completeTasks(a)(cmd, args, prefix)
		},
		Long: `Move a task to another column: ` + joinWords(board.Statuses()) + `. One that goes back from an agent is nobody's again.
A column that has as many tasks as it may takes no more.`,
		Example: "  pawl task move tk_01j todo",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
				v, err := boards.MoveTask.Call(cmd.Context(), ask, boards.TaskMove{Task: args[0], Column: args[1]})
				if err != nil {
					return err
				}
				return printTask(a.printer(), v)
			})
		},
	}
}

func newTaskAssignCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "assign TASK @HANDLE|nobody", Short: "Give a task to an agent, or to nobody", Args: exactArgs(2), ValidArgsFunction: completeTasks(a),
		Long:    "Give a task to an agent of its board. Others do not take it then. nobody gives it back.",
		Example: "  pawl task assign tk_01j @ada",
		RunE: func(cmd *cobra.Command, args []string) error {
			who := args[1]
			if who == "nobody" {
				who = ""
			}
			return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
				v, err := boards.AssignTask.Call(cmd.Context(), ask, boards.TaskAssignment{Task: args[0], Agent: who})
				if err != nil {
					return err
				}
				return printTask(a.printer(), v)
			})
		},
	}
}

func newTaskWhyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "why TASK", Short: "Say who would take a task next, and why nobody else does", Args: exactArgs(1), ValidArgsFunction: completeTasks(a),
		Long: `Say of each agent of the board whether it would take the task next, and if not, why: another task or another board goes first, the task
is not ready, or somebody has it. The score of each of its boards has all of its terms.`,
		Example: "  pawl task why tk_01j\n  pawl task why tk_01j --jq '.agents[] | [.handle, .reason]'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := boards.ExplainTask.Call(cmd.Context(), ask, boards.TaskRef{Task: args[0]})
				if err != nil {
					return err
				}
				return printTaskWhy(a.printer(), v)
			})
		},
	}
}

func printTaskWhy(p *output.Printer, v boards.TaskWhy) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s  %s", p.Style.Bold(output.CleanLine(v.Title)), v.ID)
	p.Line("%s · %s: %s", output.CleanLine(v.Slug), v.Status, output.CleanLine(v.Words))
	for _, c := range v.Agents {
		p.Line("")
		p.Line("%s %s, %s", mark(p.Style, c.Takes), p.Style.Bold("@"+output.CleanLine(c.Handle)), c.Status)
		if len(c.Gaps) == 0 {
			p.Field("    ", "why", fmt.Sprintf("%s (%s)", output.CleanLine(c.Detail), c.Reason))
		}
		for _, g := range c.Gaps {
			p.Field("    ", "not ready", fmt.Sprintf("%s (%s)", output.CleanLine(g.Words), g.Rule))
		}
		for _, r := range c.Routes {
			p.Field("    ", "score", output.CleanLine(r))
		}
	}
	return p.Err()
}

// completeTasks offers the ids of tasks.
func completeTasks(a *app) completion {
	return offerFirst(func(ctx context.Context) (words []string, err error) {
		err = a.withCaller(ctx, nil, func(c verb.Caller) error {
			all, err := boards.ListTasks.Call(ctx, c, boards.TaskQuery{Limit: 200})
			for _, t := range all {
				words = append(words, t.ID+"\t"+excerpt(t.Title, 60))
			}
			return err
		})
		return words, err
	})
}
