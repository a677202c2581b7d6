package cli

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/definition"
)

func (a *app) cmdSchema() *cobra.Command {
	names := definition.SchemaNames()
	return &cobra.Command{
		Use: "schema NAME", Short: "Print the JSON schema of a format", Args: exactly(1), ValidArgs: names,
		Long: `Print the JSON schema of a format, for editors and for programs. It needs no repository.

The formats: ` + strings.Join(names, ", ") + `.`,
		Example: "  pawl schema config > .loops/config.schema.json",
		RunE: func(_ *cobra.Command, args []string) error {
			body, err := definition.Schema(args[0])
			if err != nil {
				return err
			}
			if a.jq != "" {
				return a.printJSON(json.RawMessage(body))
			}
			_, err = a.Out.Write(body)
			return err
		},
	}
}

func (a *app) cmdExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain [KEY]", Short: "Explain a key of a definition", Args: between(0, 1),
		ValidArgsFunction: firstOnly(keyNames()),
		Example:           "  pawl explain budget_tokens\n  pawl explain",
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && a.json:
				return a.printJSON(listOf("pawl.keys/v1", definition.Fields()))
			case len(args) == 0:
				_, err := io.WriteString(a.Out, definition.ExplainAll())
				return err
			}
			return a.explainKey(args[0])
		},
	}
}

func (a *app) explainKey(key string) error {
	text, err := definition.Explain(key)
	if err != nil {
		return err
	}
	if a.json {
		field, _ := definition.Lookup(key)
		return a.printJSON(struct {
			Schema string `json:"schema"`
			definition.Field
		}{"pawl.key/v1", field})
	}
	_, err = io.WriteString(a.Out, text)
	return err
}
