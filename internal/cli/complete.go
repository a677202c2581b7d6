package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/loops"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/pattern"
)

// completion is what cobra asks for words that may follow.
type completion = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// completeLoops offers the names of the workspace's loops for a first
// argument. Whatever goes wrong offers nothing.
func (a *app) completeLoops(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	err := a.withReadOnlyVerbs(cmd.Context(), func(s *compose.Verbs) error {
		rows, err := s.Loops.List(cmd.Context())
		for _, row := range rows {
			if strings.HasPrefix(row.Name, prefix) {
				names = append(names, output.CleanLine(row.Name)+"\t"+excerpt(row.Goal, 60))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeDefinitions offers the loops that have a definition, also outside of
// a repository, and files.
func (a *app) completeDefinitions(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := loops.Definitions(a.workDir(), "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, f := range all {
		if strings.HasPrefix(f.Name, prefix) {
			names = append(names, output.CleanLine(f.Name))
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

// among offers the given words, each perhaps with a tab and a description.
func among(words ...string) completion {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, w := range words {
			if strings.HasPrefix(w, prefix) {
				fit = append(fit, w)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// firstOnly is among for the first argument of a command.
func firstOnly(words []string) completion {
	offer := among(words...)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, prefix)
	}
}

func completePatterns() completion {
	var words []string
	for _, p := range pattern.All() {
		words = append(words, p.Name+"\t"+p.Does)
	}
	return among(words...)
}

func keyNames() []string {
	var words []string
	for _, f := range definition.Fields() {
		words = append(words, f.Name+"\t"+f.Meaning)
	}
	return words
}
