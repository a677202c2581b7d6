package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

func newStoreCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Look after the database that holds what pawl knows", Args: exactArgs(0)}
	cmd.AddCommand(newStoreBackupCommand(a), newStoreRestoreCommand(a), newStoreCopyCommand(a), newStorePruneCommand(a), newStoreMigrateCommand(a))
	return cmd
}

func newStoreMigrateCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the tables that several nodes share up to date", Args: exactArgs(0),
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

func newStoreBackupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write all rows of the store into a new file", Args: exactArgs(1),
		Long: `Write all rows of the store, as they are at one moment, into a new SQLite file, whatever database the store is. Loops may be
at work meanwhile: runs that are live are in it as such, and pawl store restore ends them. The number of rows and the heads of
the audit chains are compared before the file gets its name. What is in repositories, and pawl's home, is not in it.`,
		Example: "  pawl store backup pawl-2026-11-25.db\n  pawl store backup /mnt/backup/pawl.db --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.composeOptions()
			if err != nil {
				return err
			}
			file := a.absPath(args[0])
			tell, done := a.announceTables(cmd.Context())
			defer done()
			c, err := compose.Backup(cmd.Context(), o, file, tell)
			if err != nil {
				return err
			}
			return printCopied(a.printer(), c, "", "%s has the store", file)
		},
	}
}

func newStoreRestoreCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make the store have what a backup has", Args: exactArgs(1),
		Long: `Make the store have the rows of a file that pawl store backup wrote, of this or an earlier version of pawl, into SQLite or
PostgreSQL. It is refused while pawl up or pawl worker is at work on this machine, or a run is live on any. A store that has
rows is replaced only with --yes; a SQLite file is then kept beside the new one. Runs that were live in the backup are ended by
the next command that writes.`,
		Example: "  pawl store restore pawl-2026-11-25.db\n  pawl store restore pawl-2026-11-25.db --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.whileNobodyIsUp(func(o compose.Options) error {
				tell, done := a.announceTables(cmd.Context())
				defer done()
				r, err := compose.Restore(cmd.Context(), o, a.absPath(args[0]), yes, tell)
				if err != nil {
					return err
				}
				return printCopied(a.printer(), r.Copied, r.Replaced, "the store has what %s has", a.absPath(args[0]))
			})
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}

func newStoreCopyCommand(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "copy --to DATABASE", Short: "Copy the store into an empty database of the other kind, or the same", Args: exactArgs(0),
		Long: `Copy all rows of the store into a PostgreSQL database, or a SQLite file, that is empty or does not exist yet: to move to
PostgreSQL when several machines are to share the store, and back. It happens in one transaction, and the number of rows and
the heads of the audit chains are compared before it is committed. It is refused while pawl up or pawl worker is at work on
this machine, or a run is live on any. The store itself is left as it is: set PAWL_DATABASE to use the copy.`,
		Example: "  pawl store copy --to postgres://pawl@db.example.com/pawl\n  pawl store copy --to ~/.local/state/pawl/pawl.db",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return &loop.Fault{Exit: loop.ExitUsage, What: "where is the store to be copied?", Fix: "name a database with --to: postgres://USER@HOST/DATABASE, or a file"}
			}
			if !strings.HasPrefix(to, "postgres") {
				to = a.absPath(to)
			}
			return a.whileNobodyIsUp(func(o compose.Options) error {
				tell, done := a.announceTables(cmd.Context())
				defer done()
				c, err := compose.CopyStore(cmd.Context(), o, to, tell)
				if err != nil {
					return err
				}
				return printCopied(a.printer(), c, "", "the store is copied; PAWL_DATABASE chooses which one pawl uses")
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`DATABASE` that is empty: the URL of PostgreSQL, or the path of a SQLite file")
	return cmd
}

// whileNobodyIsUp calls fn when no daemon of the store is at work on this machine, and
// keeps one from beginning.
func (a *app) whileNobodyIsUp(fn func(compose.Options) error) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Settings.Home, 0o700); err != nil {
		return err
	}
	seat, err := daemon.SeatOf(o.Settings).Claim(daemon.Running{Holder: node.Self(""), Version: version, Since: a.Now()})
	if err != nil {
		return err
	}
	return errors.Join(fn(o), seat.Leave())
}

// announceTables says from time to time which table is being copied, until done is called.
func (a *app) announceTables(ctx context.Context) (tell func(string), done func()) {
	var at atomic.Value
	at.Store("")
	return func(table string) { at.Store(table) }, waiting.For(ctx, "all rows to be copied", func() string { return at.Load().(string) })
}

// copied is what a copy of a store has, schema pawl.copied/v1.
type copied struct {
	Schema string `json:"schema"`
	store.Copied

	Replaced string `json:"replaced,omitempty"`
}

func printCopied(p *output.Printer, c store.Copied, replaced, did string, args ...any) error {
	if p.JSON {
		return p.WriteJSON(copied{"pawl.copied/v1", c, replaced})
	}
	p.Line("%s: %s in %s; the numbers of rows and the heads of %s are the same", output.CleanLine(fmt.Sprintf(did, args...)), pluralize(int(c.Runs), "run"),
		pluralize(int(c.Rows), "row"), pluralize(int(c.Chains), "audit chain"))
	if replaced != "" {
		p.Line("what was there before is in %s", output.CleanLine(replaced))
	}
	return p.Err()
}

func newStorePruneCommand(a *app) *cobra.Command {
	older := "30d"
	cmd := &cobra.Command{
		Use: "prune", Short: "Compress old transcripts, and make the store smaller", Args: exactArgs(0),
		Long: `Compress the transcripts of runs that ended a while ago: pawl logs and trace show them as before. Runs, what they used and the
audit chains stay as they are, so that budgets, estimates and audit verify do not change. Old entries of the feed and old notices
whose matter does not last are removed. A SQLite file then gets smaller, during which nobody can write to it. pawl up does the
same by itself with what is older than 30 days when it has nothing else to do.`,
		Example: "  pawl store prune\n  pawl store prune --older-than 7d --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, ok := parseAge(older)
			if !ok {
				return &loop.Fault{Exit: loop.ExitUsage, What: "invalid --older-than " + quoteArg(older), Fix: "write a time like 14d, 36h or 0s"}
			}
			o, err := a.composeOptions()
			if err != nil {
				return err
			}
			t, err := compose.Prune(cmd.Context(), o, age)
			if err != nil {
				return err
			}
			p := a.printer()
			if p.JSON {
				return p.WriteJSON(tidied{"pawl.tidied/v1", t})
			}
			p.Line("compressed the transcripts of %s: %s took %s, and take %s now", pluralize(int(t.Runs), "run"), pluralize(int(t.Events), "event"),
				formatBytes(t.Before), formatBytes(t.After))
			p.Line("removed %d from the feed, and %s; the file is %s smaller", t.Feed, pluralize(int(t.Notices), "notice"), formatBytes(t.Freed))
			return p.Err()
		},
	}
	cmd.Flags().StringVar(&older, "older-than", older, "leave runs alone that ended less than this `time` ago")
	return cmd
}

// tidied is what `store prune` has done, schema pawl.tidied/v1.
type tidied struct {
	Schema string `json:"schema"`
	compose.Tidied
}
