package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/shape"
)

func newSchemaCommand(a *app) *cobra.Command {
	names := definition.SchemaNames()
	return &cobra.Command{
		Use: "schema NAME", Short: "Print the JSON schema of a format", Args: exactArgs(1), ValidArgs: names,
		Long: `Print the JSON schema of a format, for editors and for programs. It needs no repository.

The formats: ` + strings.Join(names, ", ") + `.`,
		Example: "  pawl schema config > .loops/config.schema.json",
		RunE: func(_ *cobra.Command, args []string) error {
			body, err := definition.Schema(args[0])
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
		for _, f := range definition.Fields() {
			words = append(words, f.Name+"\t"+f.Meaning)
		}
		return words, nil
	}
	return &cobra.Command{
		Use: "explain [KEY]", Short: "Explain a key of a definition", Args: rangeArgs(0, 1), ValidArgsFunction: offerFirst(keys),
		Example: "  pawl explain budget_tokens\n  pawl explain",
		RunE: func(_ *cobra.Command, args []string) error {
			p := a.printer()
			if len(args) == 0 {
				if p.JSON {
					return p.WriteJSON(shape.ListingOf("pawl.keys/v1", definition.Fields()))
				}
				p.Text(definition.ExplainAll())
				return p.Err()
			}
			text, err := definition.Explain(args[0])
			if err != nil {
				return err
			}
			if p.JSON {
				field, _ := definition.Lookup(args[0])
				return p.WriteJSON(struct {
					Schema string `json:"schema"`
					definition.Field
				}{"pawl.key/v1", field})
			}
			p.Text(text)
			return p.Err()
		},
	}
}
