package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newMemoryCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "memory", Short: "See and correct what was learned in the workspace", Args: exactArgs(0),
		Long: `See and correct what was learned in the workspace. Gates that are commands and passed are remembered by themselves. What an
agent proposes in its report (memory, pitfalls) counts only when you approve it, or when two other runs have proposed the same,
each of another loop or another agent than all the others. Only what counts is ever given to an agent.`,
		Example: "  pawl memory list\n  pawl memory why 12\n  pawl memory approve 12\n  pawl memory add 'gen/ is generated: change gen.go' --kind pitfall",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newMemoryListCommand(a), newMemoryAddCommand(a), newMemoryWhyCommand(a),
		newMemoryJudgeCommand(a, "approve", "Make an entry count", "", api.ApproveMemory.Call),
		newMemoryJudgeCommand(a, "forget", "Make an entry count no more", `Make an entry count no more. Runs that learn the same again change nothing; pawl memory approve brings it back.`, api.ForgetMemory.Call),
	)
	return cmd
}

func newMemoryListCommand(a *app) *cobra.Command {
	var q memories.Query
	cmd := &cobra.Command{
		Use: "list", Short: "List what was learned, the newest first", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				list, err := api.ListMemories.Call(cmd.Context(), c, q)
				if err != nil {
					return err
				}
				return printMemories(a.printer(), list, q)
			})
		},
	}
	cmd.Flags().BoolVar(&q.All, "all", false, "list entries that are forgotten, too")
	cmd.Flags().StringVar(&q.Loop, "loop", "", "list only what is for this `loop` or for every loop")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "list at most `n`")
	cmd.Flags().Int64Var(&q.Before, "before", 0, "list those before the entry with this `number`")
	completeFlag(cmd, "loop", completeLoops(a))
	return cmd
}

func printMemories(p *output.Printer, list []memories.View, q memories.Query) error {
	return output.List[memories.View]{
		Schema: "pawl.memories/v1", Heading: []string{"N", "KIND", "STATE", "SURE", "CONFIRMED", "FOR", "TEXT"},
		Empty: "Nothing is remembered yet. Gates that pass are remembered by themselves; pawl memory add TEXT adds what you know.",
		Cells: func(v memories.View) []string {
			return []string{
				fmt.Sprint(v.N), string(v.Kind), styleMemoryState(p.Style, v.State), fmt.Sprintf("%d%%", v.Confidence), p.Ago(&v.Seen), output.CleanLine(cmp.Or(v.Loop, "all loops")), excerpt(v.Text, 80),
			}
		},
		Below: func() {
			if len(list) == q.Limit {
				p.Line("there may be more: --before %d goes on", list[len(list)-1].N)
			}
		},
	}.Print(p, list)
}

func styleMemoryState(s output.Style, state loop.MemoryState) string {
	if state == loop.MemoryProposed {
		return s.Yellow(string(state))
	}
	return string(state)
}

func newMemoryAddCommand(a *app) *cobra.Command {
	var add memories.Addition
	var o answerOptions
	cmd := &cobra.Command{
		Use: "add TEXT", Short: "Add what you know, which counts at once", Args: exactArgs(1),
		Long: `Add what you know, which counts at once. The kinds:

  command   a command line that works here, like 'go test ./...'
  fact      how something is
  pitfall   what goes wrong, and what to do instead

An entry that is there already, also as a proposal, becomes the one that counts.`,
		Example: "  pawl memory add 'the database of the tests is started by make db'\n  pawl memory add 'make check' --kind command --loop ci-watch",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			add.Text = args[0]
			return a.withCallerAs(cmd.Context(), a.actor(o.by), a.printProgress, func(c verb.Caller) error {
				e, err := api.AddMemory.Call(cmd.Context(), c, add)
				if err != nil {
					return err
				}
				return printMemoryWord(a.printer(), e, "is remembered")
			})
		},
	}
	cmd.Flags().StringVar(&add.Kind, "kind", string(loop.MemoryFact), "`kind` of entry: command, fact or pitfall")
	cmd.Flags().StringVar(&add.Loop, "loop", "", "the only `loop` that it is for")
	cmd.Flags().StringVar(&o.by, "by", "", "`who` adds it (default: $USER)")
	completeFlag(cmd, "kind", offerWords("command", "fact", "pitfall"))
	completeFlag(cmd, "loop", completeLoops(a))
	return cmd
}

// newMemoryJudgeCommand makes a command by which a person says something about an entry.
func newMemoryJudgeCommand(a *app, name, short, long string, ask verb.Ask[api.MemoryRef, memories.Explained]) *cobra.Command {
	var o answerOptions
	cmd := &cobra.Command{
		Use: name + " N", Short: short, Long: long, Args: exactArgs(1), ValidArgsFunction: completeMemories(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.withCallerAs(cmd.Context(), a.actor(o.by), a.printProgress, func(c verb.Caller) error {
				e, err := ask(cmd.Context(), c, api.MemoryRef{Memory: args[0]})
				if err != nil {
					return err
				}
				said := "counts"
				if e.State == loop.MemoryForgotten {
					said = "is forgotten"
				}
				return printMemoryWord(a.printer(), e, said)
			})
		},
	}
	cmd.Flags().StringVar(&o.by, "by", "", "`who` says so (default: $USER)")
	return cmd
}

func printMemoryWord(p *output.Printer, e memories.Explained, said string) error {
	if p.JSON {
		return p.WriteJSON(e)
	}
	p.Line("#%d %s: %s", e.N, said, excerpt(e.Text, 100))
	return p.Err()
}

func newMemoryWhyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "why N", Short: "Say where an entry comes from, and what would make it count", Args: exactArgs(1), ValidArgsFunction: completeMemories(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				e, err := api.ExplainMemory.Call(cmd.Context(), c, api.MemoryRef{Memory: args[0]})
				if err != nil {
					return err
				}
				return printMemory(a.printer(), e)
			})
		},
	}
}

func printMemory(p *output.Printer, e memories.Explained) error {
	if p.JSON {
		return p.WriteJSON(e)
	}
	p.Line("%s · %s %s, %d%% sure", p.Style.Bold(fmt.Sprintf("#%d", e.N)), styleMemoryState(p.Style, e.State), e.Kind, e.Confidence)
	p.QuotedField("", "text", e.Text)
	p.Field("", "for", output.CleanLine(cmp.Or(e.Loop, "every loop of the workspace")))
	verb := "proposed"
	if e.Kind == loop.MemoryCommand {
		verb = "passed"
	}
	for i, s := range e.Sources {
		if i > 0 && e.Kind != loop.MemoryCommand {
			verb = "confirmed"
		}
		p.Field("", verb, describeMemorySource(p, s))
	}
	if e.Kind == loop.MemoryCommand && e.Confirmed > 1 {
		p.Field("", "last", fmt.Sprintf("%s; %s in all", describeMemorySource(p, e.Last), pluralize(e.Confirmed, "time")))
	}
	if e.Failed > 0 {
		p.Field("", "failed", "in "+pluralize(e.Failed, "run")+" since")
	}
	if w := e.Word; !w.At.IsZero() {
		said := "wants it to count"
		if e.State == loop.MemoryForgotten {
			said = "has forgotten it"
		}
		p.Field("", "person", fmt.Sprintf("%s %s, %s", output.CleanLine(w.By.Who), said, p.Ago(&w.At)))
	}
	if e.State == loop.MemoryProposed {
		p.Field("", "counts", fmt.Sprintf("when you approve it, or after %s of another loop or agent than those above", pluralize(e.Needs, "more run")))
	}
	p.Field("", "next", e.Next)
	return p.Err()
}

func describeMemorySource(p *output.Printer, s loop.MemorySource) string {
	gate, commit := "", ""
	if s.Gate != "" {
		gate = "gate " + s.Gate
	}
	if s.Commit != "" {
		commit = "commit " + shortHash(s.Commit)
	}
	return output.CleanLine(joinNonEmpty(", ", joinNonEmpty(" by ", s.Run, s.Agent), gate, commit, p.Ago(&s.At)))
}

// completeMemories offers the numbers of what is remembered.
func completeMemories(a *app) completion {
	return offerFirst(func(ctx context.Context) (words []string, err error) {
		err = a.withCaller(ctx, nil, func(c verb.Caller) error {
			list, err := api.ListMemories.Call(ctx, c, memories.Query{Limit: 100, All: true})
			for _, v := range list {
				words = append(words, fmt.Sprintf("%d\t%s", v.N, strings.TrimSpace(excerpt(v.Text, 60))))
			}
			return err
		})
		return words, err
	})
}
