package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

func newSchemaCommand(a *app) *cobra.Command {
	names := loops.Schemas()
	return &cobra.Command{
		Use: "schema NAME", Short: "Print the JSON schema of a format", Args: exactArgs(1), ValidArgs: names,
		Long: `Print the JSON schema of a format, for editors and for programs. It needs no repository.

The formats: ` + strings.Join(names, ", ") + `.`,
		Example: "  pawl schema config > .loops/config.schema.json",
		RunE: func(_ *cobra.Command, args []string) error {
			body, err := loops.Schema(args[0])
			if err != nil {
				return err
			}
			p := a.printer()
			if p.JQ != "" {
				return p.WriteJSON(json.RawMessage(body))
			}
			p.Text(string(body))
			return p.Err()
		},
	}
}

func newExplainCommand(a *app) *cobra.Command {
	keys := func(context.Context) (words []string, err error) {
		words = append(words, aboutInvariants+"\twhat an invariant may say", aboutSpecs+"\twhat the texts of a LoopSpec may say")
		for _, f := range loops.Keys() {
			words = append(words, f.Name+"\t"+f.Meaning)
		}
		return words, nil
	}
	return &cobra.Command{
		Use: "explain [KEY]", Short: "Explain a key of a definition", Args: rangeArgs(0, 1), ValidArgsFunction: offerFirst(keys),
		Long: `Explain a key of a definition, list all of them, or list the names and functions of invariants with examples (pawl explain invariant), or the phrases
of LoopSpecs (pawl explain spec).`,
		Example: "  pawl explain budget_tokens\n  pawl explain\n  pawl explain invariant\n  pawl explain spec",
		RunE: func(_ *cobra.Command, args []string) error {
			p := a.printer()
			if len(args) == 0 {
				if p.JSON {
					return output.WriteListing(p, "pawl.keys/v1", loops.Keys())
				}
				p.Text(loops.ExplainKeys())
				return p.Err()
			}
			if args[0] == aboutInvariants {
				return invariantNames.Print(p, loops.InvariantNames())
			}
			if args[0] == aboutSpecs {
				return specPhrases.Print(p, loopspec.Phrases)
			}
			key, err := loops.ExplainKey(args[0])
			if err != nil {
				return err
			}
			if p.JSON {
				return p.WriteJSON(key)
			}
			p.Text(key.Text)
			return p.Err()
		},
	}
}

// What explain takes beside keys.
const (
	aboutInvariants = "invariant"
	aboutSpecs      = "spec"
)

var specPhrases = output.List[loopspec.Phrase]{
	Schema: "pawl.spec-phrases/v1", Heading: []string{"FIELD", "PHRASE", "MEANING", "EXAMPLE"},
	Cells: func(row loopspec.Phrase) []string {
		meaning := row.Meaning
		if row.Default {
			meaning += " (default)"
		}
		return []string{string(row.Field), row.Text, meaning, row.Example()}
	},
}

var invariantNames = output.List[loops.InvariantName]{
	Schema: "pawl.invariant-names/v1", Heading: []string{"NAME", "MEANING", "EXAMPLE"},
	Cells: func(n loops.InvariantName) []string { return []string{n.Name, n.Meaning, n.Example} },
}
