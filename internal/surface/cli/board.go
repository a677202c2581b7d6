package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newBoardCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "board", Short: "Make and show heartbeat boards: tasks that a team of agents works on", Args: exactArgs(0),
		Long: `A board is a set of tasks with the files that may be changed for them and the command that checks results. Agents wake on a schedule,
answer who mentioned them or wrote to them, turn to the board that needs them most, and claim one task that is ready. pawl task makes
tasks, pawl agent create @H --board B makes agents, pawl msg and pawl resource are what they are told.`,
		Example: `  pawl board create "Site" --scope 'site/**' --verify 'npm test'
  pawl resource create --board site --title 'How we work' --category sop --content 'Small steps.'
  pawl task create --board site --title 'Mend the footer' --description 'It overlaps on phones.'
  pawl agent create @ada --driver claude --role 'frontend developer' --board site
  pawl run @ada
  pawl board show site`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newBoardCreateCommand(a), newBoardSetCommand(a), newBoardListCommand(a), newBoardShowCommand(a), newBoardActivityCommand(a), newBoardErrorsCommand(a), newBoardExportCommand(a), newBoardImportCommand(a),
	)
	return cmd
}

// given adds a flag for a text; the function returns nil if it was not written.
func given(f *pflag.FlagSet, name, use string) func() *string {
	value := f.String(name, "", use)
	return func() *string {
		if !f.Changed(name) {
			return nil
		}
		return value
	}
}

// givenList is given for a flag that may be repeated; an empty text alone means none.
func givenList(f *pflag.FlagSet, name, use string) func() []string {
	value := f.StringArray(name, nil, use)
	return func() []string {
		if !f.Changed(name) {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(*value), func(s string) bool { return s == "" })
	}
}

// addBoardFlags adds the flags of what a board has.
func addBoardFlags(cmd *cobra.Command) func() (boards.BoardChange, error) {
	f := cmd.Flags()
	slug, description := given(f, "slug", "what it is called, `letters` and dashes (default: made of the name)"), given(f, "description", "what it is for, a `text`")
	icon, color := given(f, "icon", "an `icon` for surfaces that have some"), given(f, "color", "a `color` for them")
	scope := givenList(f, "scope", "`glob` of files that may be changed; may be repeated; none: agents of the board only look")
	verify, guard := given(f, "verify", "`command` that must pass for a result to count"), given(f, "guard", "`command` that must pass beside it")
	wip := givenList(f, "wip", "most tasks in a column, `COLUMN=N`; 0 takes the limit away; may be repeated")
	waived := f.Bool("waive", false, "its tasks are ready without an SOP or documentation")
	return func() (boards.BoardChange, error) {
		c := boards.BoardChange{Slug: slug(), Description: description(), Icon: icon(), Color: color(), Scope: scope(), Verify: verify(), Guard: guard()}
		if f.Changed("waive") {
			c.Waived = waived
		}
		for _, text := range wip() {
			column, number, _ := strings.Cut(text, "=")
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 || !slices.Contains(board.Statuses(), board.Status(column)) {
				return c, &loop.Fault{Exit: loop.ExitUsage, What: "invalid --wip " + quoteArg(text), Fix: "write COLUMN=N, as in in_progress=3; the columns are " + joinWords(board.Statuses())}
			}
			if c.WIP == nil {
				c.WIP = map[board.Status]int{}
			}
			c.WIP[board.Status(column)] = n
		}
		return c, nil
	}
}

func joinWords[T ~string](all []T) string {
	var words []string
	for _, v := range all {
		words = append(words, string(v))
	}
	return strings.Join(words, ", ")
}

// writing calls fn with what carries verbs out for a person.
func (a *app) writing(ctx context.Context, by string, fn func(verb.Caller) error) error {
	if err := a.requireHuman(); err != nil {
		return err
	}
	return a.withCallerAs(ctx, a.actor(by), a.printProgress, fn)
}

// printID prints the id of what was made; all of it as JSON.
func printID(p *output.Printer, id string, made any) error {
	if p.JSON {
		return p.WriteJSON(made)
	}
	p.Line("%s", id)
	return p.Err()
}

func newBoardCreateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a board, and print its id", Args: exactArgs(1),
		Example: "  pawl board create Site --scope 'site/**' --verify 'npm test' --wip in_progress=3\n  pawl board create 'Market research' --waive",
	}
	change := addBoardFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := change()
		if err != nil {
			return err
		}
		return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
			made, err := boards.CreateBoard.Call(cmd.Context(), ask, boards.BoardCreation{Name: args[0], BoardChange: c})
			if err != nil {
				return err
			}
			return printID(a.printer(), made.ID, made)
		})
	}
	return cmd
}

func newBoardSetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set BOARD", Short: "Change a board", Args: exactArgs(1), ValidArgsFunction: completeBoards(a),
		Long:    "Change what is named by a flag; an empty value takes it away. Agents work by it from their next heartbeat on.",
		Example: "  pawl board set site --verify 'npm test' --wip in_progress=2",
	}
	name := given(cmd.Flags(), "name", "its `name`; the slug stays")
	change := addBoardFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := change()
		if err != nil {
			return err
		}
		if c.Name = name(); !changesSomething(cmd) {
			return usageError(cmd, "nothing is to be changed")
		}
		return a.writing(cmd.Context(), "", func(ask verb.Caller) error {
			made, err := boards.SetBoard.Call(cmd.Context(), ask, boards.BoardSetting{Board: args[0], Change: c})
			if err != nil {
				return err
			}
			return printBoardFields(a.printer(), made)
		})
	}
	return cmd
}

// changesSomething reports whether a flag of the command itself was written.
func changesSomething(cmd *cobra.Command) (changes bool) {
	cmd.Flags().Visit(func(f *pflag.Flag) { changes = changes || cmd.InheritedFlags().Lookup(f.Name) == nil })
	return changes
}

func printBoardFields(p *output.Printer, b boards.BoardView) error {
	if p.JSON {
		return p.WriteJSON(b)
	}
	p.Line("%s  %s", p.Style.Bold(output.CleanLine(b.Slug)), b.ID)
	printBoardHead(p, b.Board)
	return p.Err()
}

func printBoardHead(p *output.Printer, b board.Board) {
	p.Field("  ", "name", output.CleanLine(b.Name))
	p.Field("  ", "about", output.CleanLine(b.Description))
	p.Field("  ", "scope", cmp.Or(strings.Join(b.Scope, " "), "none: agents only look"))
	p.Field("  ", "verify", b.Verify)
	p.Field("  ", "guard", b.Guard)
	if b.Waived {
		p.Field("  ", "waived", "tasks are ready without an SOP or documentation")
	}
}

func newBoardListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the boards", Args: exactArgs(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				all, err := boards.ListBoards.Call(cmd.Context(), ask, verb.None{})
				if err != nil {
					return err
				}
				heading := []string{"BOARD"}
				for _, s := range board.Statuses() {
					heading = append(heading, strings.ToUpper(string(s)))
				}
				return output.List[boards.BoardRow]{
					Schema: "pawl.boards/v1", Heading: append(heading, "AGENTS", "ID"), Empty: "There are no boards yet: pawl board create NAME --scope GLOB",
					Cells: func(b boards.BoardRow) []string {
						cells := []string{output.CleanLine(b.Slug)}
						for _, s := range board.Statuses() {
							cells = append(cells, fmt.Sprint(b.Tasks[s]))
						}
						return append(cells, fmt.Sprint(b.Agents), b.ID)
					},
				}.Print(a.printer(), all)
			})
		},
	}
}

func newBoardShowCommand(a *app) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: "show BOARD", Short: "Show a board as columns, and how its agents stand", Args: exactArgs(1), ValidArgsFunction: completeBoards(a),
		Long: `Show a board as columns: what waits, what is worked on, and what is done. A task that failed is in the column of those to review, marked ✗;
! is a high priority, !! an urgent one. pawl task list --board BOARD has the ids.`,
		Example: "  pawl board show site\n  pawl board show site --jq '.columns[] | [.status, .count]'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				v, err := boards.ShowBoard.Call(cmd.Context(), ask, boards.BoardRef{Board: args[0], Limit: most})
				if err != nil {
					return err
				}
				return printBoard(a.printer(), v)
			})
		},
	}
	cmd.Flags().IntVar(&most, "limit", 10, "show at most `n` tasks of each column")
	return cmd
}

// boardWidth is how many columns of text a board takes: those of the terminal, of which very
// many make it no easier to read.
func boardWidth(p *output.Printer) int {
	if !p.Terminal {
		return 80
	}
	return min(max(p.Width(), 60), 160)
}

func printBoard(p *output.Printer, v boards.Shown) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s  %s", p.Style.Bold(output.CleanLine(v.Slug)), v.ID)
	printBoardHead(p, v.Board)
	p.Line("")
	shown := v.Columns[:5] // The last one is in that of review.
	failed := v.Columns[5]
	width := (boardWidth(p) - 2*(len(shown)-1)) / len(shown)
	var blocks [][]string
	for _, c := range shown {
		title := fmt.Sprintf("%s %d", c.Status, c.Count)
		if c.Most > 0 {
			title += fmt.Sprintf("/%d", c.Most)
		}
		block := []string{p.Style.Bold(title)}
		for _, t := range c.Tasks {
			block = append(block, taskCard(t, "", width)...)
		}
		if more := c.Count - len(c.Tasks); more > 0 {
			block = append(block, "", fmt.Sprintf("… %d more", more))
		}
		if c.Status == board.Review {
			for _, t := range failed.Tasks {
				block = append(block, taskCard(t, "✗ ", width)...)
			}
			if more := failed.Count - len(failed.Tasks); more > 0 {
				block = append(block, "", fmt.Sprintf("✗ %d more", more))
			}
		}
		blocks = append(blocks, block)
	}
	for i := range slices.MaxFunc(blocks, func(a, b []string) int { return cmp.Compare(len(a), len(b)) }) {
		var line strings.Builder
		for n, block := range blocks {
			cell := ""
			if i < len(block) {
				cell = block[i]
			}
			line.WriteString(cell)
			if n < len(blocks)-1 {
				line.WriteString(strings.Repeat(" ", max(0, width+2-len([]rune(output.Clean(cell))))))
			}
		}
		p.Line("%s", strings.TrimRight(line.String(), " "))
	}
	if len(v.Agents) > 0 {
		p.Line("")
		return p.Table(agentTable(p, v.Agents))
	}
	return p.Err()
}

// taskCard is a task in a column so wide: its title, and who has it.
func taskCard(t board.Task, mark string, width int) []string {
	title := mark + map[board.Priority]string{board.High: "! ", board.Urgent: "!! "}[t.Priority] + output.CleanLine(t.Title)
	lines := append([]string{""}, foldTitle(title, width)...)
	if t.AssigneeID != "" {
		lines = append(lines, excerpt("@"+output.CleanLine(t.AssigneeID), width))
	}
	if t.ExecutionStatus == board.ExecutionApproval {
		lines = append(lines, excerpt("waits for you", width))
	}
	return lines
}

// titleLines is how many lines of a title a column shows.
const titleLines = 3

// foldTitle breaks a title between words into lines so wide. What does not fit is cut.
func foldTitle(title string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(title) {
		last := &lines[len(lines)-1]
		switch room := width - len([]rune(*last)); {
		case *last == "":
			*last = word
		case len([]rune(word)) < room:
			*last += " " + word
		case len(lines) == titleLines:
			*last = excerpt(*last+" "+word, width)
			return lines
		default:
			lines = append(lines, word)
		}
	}
	for i, line := range lines {
		lines[i] = excerpt(line, width)
	}
	return lines
}

func newBoardActivityCommand(a *app) *cobra.Command {
	var q boards.Page
	cmd := &cobra.Command{
		Use: "activity BOARD", Short: "List what happened on a board, the newest first", Args: exactArgs(1), ValidArgsFunction: completeBoards(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Board = args[0]
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				all, err := boards.ListActivity.Call(cmd.Context(), ask, q)
				if err != nil {
					return err
				}
				p := a.printer()
				return output.List[board.Activity]{
					Schema: "pawl.activity/v1", Heading: []string{"AT", "WHO", "WHAT", "MESSAGE"}, Empty: "Nothing has happened yet.",
					Cells: func(v board.Activity) []string {
						return []string{agoMillis(p, v.CreatedAt), authorName(v.ActorType, v.ActorID), string(v.ActionType), excerpt(v.Message, 80)}
					},
				}.Print(p, all)
			})
		},
	}
	cmd.Flags().StringVar(&q.Agent, "agent", "", "only what this `@handle` did")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "list at most `n`")
	return cmd
}

func agoMillis(p *output.Printer, at board.Millis) string {
	if at == 0 {
		return "–"
	}
	t := at.Time()
	return p.Ago(&t)
}

func authorName(kind board.AuthorType, who string) string {
	if kind == board.ByAgent {
		who = "@" + who
	}
	return output.CleanLine(cmp.Or(who, string(kind)))
}

func newBoardErrorsCommand(a *app) *cobra.Command {
	var q boards.Page
	cmd := &cobra.Command{
		Use: "errors BOARD", Short: "List what went wrong in heartbeats of the board's agents, the newest first", Args: exactArgs(1), ValidArgsFunction: completeBoards(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Board = args[0]
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				all, err := boards.ListErrors.Call(cmd.Context(), ask, q)
				if err != nil {
					return err
				}
				p := a.printer()
				return output.List[board.Error]{
					Schema: "pawl.board-errors/v1", Heading: []string{"AT", "AGENT", "PHASE", "TASK", "MESSAGE"}, Empty: "Nothing went wrong.",
					Cells: func(e board.Error) []string {
						return []string{agoMillis(p, e.Timestamp), "@" + output.CleanLine(e.AgentID), output.CleanLine(e.Phase), orDash(e.TaskID), excerpt(e.Message, 80)}
					},
				}.Print(p, all)
			})
		},
	}
	cmd.Flags().StringVar(&q.Agent, "agent", "", "only those of this `@handle`")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "list at most `n`")
	return cmd
}

func newBoardExportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "export [BOARD]", Short: "Print boards with all that belongs to them, as JSON", Args: rangeArgs(0, 1), ValidArgsFunction: completeBoards(a),
		Long: `Print all boards of the workspace, or one, with their agents, tasks, comments, messages, resources and the rest, as the JSON that
pawl board import reads. Drivers and models of agents are in the roster, and not printed. Of one board, its agents are printed as
if they worked on it alone, and what other agents said is left.`,
		Example: "  pawl board export > boards.json\n  pawl board export site --jq '.tasks[].title'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				d, err := boards.ExportBoards.Call(cmd.Context(), ask, boards.ExportQuery{Board: strings.Join(args, "")})
				if err != nil {
					return err
				}
				return a.printer().WriteJSON(d)
			})
		},
	}
}

func newBoardImportCommand(a *app) *cobra.Command {
	var r boards.ImportRequest
	var yes bool
	cmd := &cobra.Command{
		Use: "import FILE|DIR|-", Short: "Take over boards, agents and tasks", Args: exactArgs(1),
		Long: `Take over boards, agents, tasks in any column, comments and the rest from JSON with the lists boards, agents, tasks, comments, activity,
subscriptions, agentMessages, resources and errors; or, with --board, the steps of a TASKS.md, or of agents/*/TASKS.md in a folder.
Records refer to each other by id, slug or handle, and those without an id get one that is the same each time. What is here already
stays as it is, so that a second import changes nothing. All of it is taken over or nothing: what cannot be is named with its place.
Nothing is written before you said yes, or --yes did.`,
		Example: "  pawl board import boards.json\n  pawl board import ../crew --board site --yes\n  ssh host pawl board export | pawl board import - --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			if r.Path, r.Base = args[0], a.workDir(); args[0] == "-" {
				text, err := io.ReadAll(a.In)
				if err != nil {
					return fmt.Errorf("read standard input: %w", err)
				}
				r.Path, r.Document = "", string(text)
			}
			return importBoards(cmd.Context(), a, r, yes)
		},
	}
	cmd.Flags().StringVar(&r.Board, "board", "", "the `board` that steps of TASKS.md are for")
	cmd.Flags().BoolVar(&yes, "yes", false, "write it, ask nothing")
	completeFlag(cmd, "board", completeBoards(a))
	return cmd
}

func importBoards(ctx context.Context, a *app, r boards.ImportRequest, yes bool) error {
	return a.withCaller(ctx, nil, func(ask verb.Caller) error {
		plan, err := boards.PlanBoardImport.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		p := a.printer()
		if !p.JSON {
			for _, s := range plan.Sets {
				p.Line("%s  %d added, %d kept", s.Name, s.Added, s.Kept)
			}
			for _, note := range plan.Problems {
				p.Line("note  %s", output.CleanLine(note.String()))
			}
		}
		if plan.Added == 0 && !p.JSON {
			p.Note("nothing to take over: all of it is here already")
			return p.Err()
		}
		if !yes && !a.agreesTo("Take this over?") {
			return printUnwritten(p, plan)
		}
		done, err := boards.ImportBoards.Call(ctx, ask, r)
		if err != nil {
			return err
		}
		if p.JSON {
			return p.WriteJSON(done)
		}
		p.Line("")
		p.Line("✓ taken over; pawl board list shows the boards")
		return p.Err()
	})
}

// completeBoards offers the slugs of the boards.
func completeBoards(a *app) completion {
	return offerFirst(func(ctx context.Context) (words []string, err error) {
		err = a.withCaller(ctx, nil, func(c verb.Caller) error {
			all, err := boards.ListBoards.Call(ctx, c, verb.None{})
			for _, b := range all {
				words = append(words, output.CleanLine(b.Slug)+"\t"+excerpt(b.Name, 60))
			}
			return err
		})
		return words, err
	})
}
