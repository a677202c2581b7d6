package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/store"
)

func newStoreCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Look after the database that holds what pawl knows", Args: exactArgs(0)}
	cmd.AddCommand(newStoreMigrateCommand(a))
	return cmd
}

func newStoreMigrateCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the tables up to date that several nodes share", Args: exactArgs(0),
		Long: `Bring the tables of the store to the version of this pawl. A store that only one node uses is brought up to date by any
command that writes; one that several nodes share only by this command, because a pawl that does not know the new tables
takes no work any more. It is refused while a node has live runs. There is no way back but a backup of the database.
Without a terminal it needs --yes.`,
		Example: "  pawl store migrate\n  pawl store migrate --yes --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return migrateStore(cmd.Context(), a, yes)
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}

// migrated is what `store migrate` has done, schema pawl.migration/v1.
type migrated struct {
	Schema   string   `json:"schema"`
	Driver   string   `json:"driver"`
	Location string   `json:"location"`
	From     int64    `json:"from"` // version of the tables; 0: there were none
	To       int64    `json:"to"`
	Nodes    []string `json:"nodes"` // that share them
}

func migrateStore(ctx context.Context, a *app, yes bool) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	m, err := compose.PlanMigration(ctx, o)
	if err != nil {
		return err
	}
	if m.Needed() && m.Database.Version > 0 {
		does := fmt.Sprintf("changes the tables of %s from version %d to %d for %s", m.Database.Location, m.Database.Version, m.To, describeSharers(m))
		if err := a.requireConsent(yes, does, "pawl store migrate"); err != nil {
			return err
		}
	}
	if m.Needed() {
		if m, err = compose.Migrate(ctx, o); err != nil {
			return err
		}
	}
	p := a.printer()
	if p.JSON {
		return p.WriteJSON(migrated{"pawl.migration/v1", m.Database.Driver, m.Database.Location, m.Database.Version, m.To, append([]string{}, m.Nodes...)})
	}
	if !m.Needed() {
		p.Line("the tables of %s are version %d already", output.CleanLine(m.Database.Location), m.To)
		return p.Err()
	}
	p.Line("the tables of %s are version %d now; they were %d", output.CleanLine(m.Database.Location), m.To, m.Database.Version)
	return p.Err()
}

// describeSharers names the nodes that share the tables.
func describeSharers(m store.Migration) string {
	if len(m.Nodes) == 0 {
		return "every pawl that uses them"
	}
	return "the nodes " + output.CleanLine(strings.Join(m.Nodes, ", "))
}
