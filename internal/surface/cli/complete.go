package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// completion offers words for what somebody types.
type completion = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// offerWords offers those words that begin with what is typed. Each may be followed
// by a tab and a description.
func offerWords(words ...string) completion {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var matching []string
		for _, word := range words {
			if strings.HasPrefix(word, prefix) {
				matching = append(matching, word)
			}
		}
		return matching, cobra.ShellCompDirectiveNoFileComp
	}
}

// offerFirst is offerWords for the first argument, with words that are listed when
// they are needed. If they cannot be listed, nothing is offered.
func offerFirst(list func(ctx context.Context) ([]string, error)) completion {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words, err := list(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offerWords(words...)(cmd, args, prefix)
	}
}

// completeFlag offers words for a flag.
func completeFlag(cmd *cobra.Command, flag string, words completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, words); err != nil {
		panic("cli: complete --" + flag + ": " + err.Error()) // The caller has just added the flag.
	}
}

// completeLoops offers the names of the workspace's loops.
func completeLoops(a *app) completion {
	return offerFirst(func(ctx context.Context) (words []string, err error) {
		err = a.withCaller(ctx, nil, func(c verb.Caller) error {
			list, err := api.ListLoops.Call(ctx, c, api.LoopQuery{})
			for _, row := range list.Loops {
				words = append(words, output.CleanLine(row.Name)+"\t"+excerpt(row.Goal, 60))
			}
			return err
		})
		return words, err
	})
}

// completeDefinitions offers the loops that have a definition, also outside of a
// repository, and files.
func completeDefinitions(a *app) completion {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := loops.FindDefinitions(a.formats(), a.workDir(), "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var names []string
		for _, f := range found {
			names = append(names, output.CleanLine(f.Name))
		}
		matching, _ := offerWords(names...)(cmd, args, prefix)
		return matching, cobra.ShellCompDirectiveDefault
	}
}

// completeAgents offers the handles of the roster.
func completeAgents(a *app) completion {
	return offerFirst(func(ctx context.Context) (words []string, err error) {
		err = a.withCaller(ctx, nil, func(c verb.Caller) error {
			all, err := api.ListAgents.Call(ctx, c, verb.None{})
			for _, who := range all {
				if who.ID != "" { // Else it is a driver, and not of the roster.
					words = append(words, "@"+output.CleanLine(who.Handle)+"\t"+excerpt(who.Role, 60))
				}
			}
			return err
		})
		return words, err
	})
}

// completeApprovals offers the open questions.
func completeApprovals(a *app) completion {
	return offerFirst(func(ctx context.Context) (words []string, err error) {
		err = a.withCaller(ctx, nil, func(c verb.Caller) error {
			open, err := api.ListApprovals.Call(ctx, c, api.ApprovalQuery{})
			for _, v := range open {
				words = append(words, v.ID+"\t"+strings.TrimSpace(v.Run+" "+v.Does))
			}
			return err
		})
		return words, err
	})
}

// completeModels offers the models that have a price.
func completeModels(a *app) completion {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		pricing, err := a.pricing("")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := pricing.List()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, m := range list.Data {
			names = append(names, m.ID)
		}
		return offerWords(names...)(cmd, args, prefix)
	}
}

func completePatterns() completion {
	var words []string
	for _, p := range loops.Patterns() {
		words = append(words, p.Name+"\t"+p.Does)
	}
	return offerWords(words...)
}
