package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
)

func (a *app) cmdRecover() *cobra.Command {
	cmd := &cobra.Command{
		Use: "recover", Short: "List the work that runs left on no branch; show, restore or remove it", Args: exactly(0),
		Long: `List the snapshots below refs/pawl/snapshots: work of runs that is on no branch, because a run was
stopped, failed or waits for a human. A run whose process died is concluded first, so that its work is among them.
Where no snapshot could be made, the folder in pawl's home that holds the files is listed.
Nothing of it is lost until ` + "`pawl recover prune`" + ` removes it.

Below that are repositories that are gone from this machine and have runs that were not concluded, or files in
pawl's home. They are listed wherever the command is run.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			gone, err := a.goneRepositories(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := git.Open(cmd.Context(), a.dir()); len(gone) > 0 && outsideOfRepositories(err) {
				return a.printSnapshots(nil, gone)
			}
			dead := false
			list := func(s *compose.Verbs) error {
				rows, err := s.Snapshots(cmd.Context())
				if err != nil {
					return err
				}
				return a.printSnapshots(rows, gone)
			}
			err = a.reading(cmd.Context(), func(s *compose.Verbs) error {
				// Also one that seems to run may be left behind: by a process of another host.
				var err error
				if dead, err = s.Live(cmd.Context()); err != nil || dead {
					return err
				}
				return list(s)
			})
			if err != nil || !dead {
				return err
			}
			return a.writing(cmd.Context(), nil, list)
		},
	}
	cmd.AddCommand(a.cmdRecoverShow(), a.cmdRecoverRestore(), a.cmdRecoverPrune())
	return cmd
}

// outsideOfRepositories reports whether a command was run where no repository is.
func outsideOfRepositories(err error) bool {
	f, ok := errors.AsType[*loop.Fault](err)
	return ok && f.Exit == loop.ExitNotFound
}

// goneRepositories lists the checkouts that are gone.
func (a *app) goneRepositories(ctx context.Context) ([]control.GoneRepository, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	o.ReadOnly = true
	d, err := compose.New(ctx, o)
	if err != nil {
		return nil, err
	}
	gone, err := d.Gone(ctx)
	return gone, errors.Join(err, d.Close())
}

// snapshotList is the listing of recover in JSON.
type snapshotList struct {
	list

	Gone []control.GoneRepository `json:"gone"`
}

func (a *app) printSnapshots(rows []control.SnapshotRow, gone []control.GoneRepository) error {
	if a.json {
		return a.printJSON(snapshotList{listOf("pawl.snapshots/v1", rows), gone})
	}
	if rows != nil { // Nil: there is no repository here that could hold any.
		if err := a.snapshotTable(rows); err != nil {
			return err
		}
	}
	return a.printGone(gone)
}

// printGone says of each checkout that is gone what is open of it; those of which
// nothing is are counted.
func (a *app) printGone(gone []control.GoneRepository) error {
	out, closed := printer{w: a.Out}, 0
	for _, g := range gone {
		if len(g.Runs) == 0 {
			closed++
			continue
		}
		out.line("")
		out.line("%s is gone: %s", a.style().bold(cleanLine(g.Root)), cleanLine(g.Why))
		for _, run := range g.Runs {
			out.line("  %s  %s, last recorded in %s", cleanLine(run.Run), run.State, run.Phase)
			for _, k := range run.Kept {
				out.line("    kept in pawl's home: %s (%s, %s)", cleanLine(k.Path), count(k.Files, "file"), size(k.Bytes))
			}
			if len(run.Kept) == 0 {
				out.line("    nothing of it is kept in pawl's home")
			}
		}
		out.line("  next: %s", cleanLine(g.Next))
	}
	if closed > 0 {
		out.line("")
		out.line("gone, with nothing open: %d (pawl recover prune removes what was packed for them)", closed)
	}
	return out.err
}

func (a *app) snapshotTable(rows []control.SnapshotRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.Out, "No work is kept: every run that changed something has put it on a branch.")
		return err
	}
	table := [][]string{{"SNAPSHOT", "RUN", "WHEN", "FILES", "SIZE", "STATE"}}
	for _, row := range rows {
		run := "–"
		if row.N > 0 {
			run = fmt.Sprintf("%s#%d", cleanLine(row.Loop), row.N)
		}
		if row.Ref == "" {
			table = append(table, []string{"–", run, ago(a.Now(), &row.When), "–", "–", "in no commit; its files are in " + cleanLine(row.Dir)})
			continue
		}
		table = append(table, []string{
			snapshotName(row), run, ago(a.Now(), &row.When), strconv.Itoa(row.Files), size(row.Bytes), a.snapshotState(row),
		})
	}
	return a.columns(table)
}

// snapshotName is a ref as the subcommands take it.
func snapshotName(row control.SnapshotRow) string {
	return cleanLine(strings.TrimPrefix(row.Ref, git.SnapshotPrefix))
}

func (a *app) snapshotState(row control.SnapshotRow) string {
	switch row.State {
	case control.SnapshotWaiting:
		return a.style().yellow("! ") + "step goes on from it: " + excerpt(row.Waits, 50)
	case control.SnapshotRunning:
		return "its run is live"
	case control.SnapshotOpen:
		return "a step of its run is not done"
	case control.SnapshotSettled:
		return "settled " + ago(a.Now(), row.Settled)
	}
	return "made by no run of this store"
}

// size is a number of bytes as people read it.
func size(n int64) string {
	const step = 1024
	switch {
	case n < step:
		return fmt.Sprintf("%d B", n)
	case n < step*step:
		return fmt.Sprintf("%.1f KiB", float64(n)/step)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/step/step)
}

func (a *app) cmdRecoverShow() *cobra.Command {
	raw := false
	cmd := &cobra.Command{
		Use: "show REF|RUN", Short: "Print what a snapshot changed, as a patch", Args: exactly(1),
		Long: "Print what a snapshot changed, as a patch, written as by pawl diff.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				patch, err := s.SnapshotDiff(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printPatch(args[0], patch, raw)
			})
		},
	}
	rawFlag(cmd, &raw)
	return cmd
}

func (a *app) cmdRecoverRestore() *cobra.Command {
	branch, yes := "", false
	cmd := &cobra.Command{
		Use: "restore REF|RUN", Short: "Put a snapshot on a new branch", Args: exactly(1),
		Long: `Put a snapshot on a new branch. No branch that exists is moved, and neither the checkout nor the
snapshot is touched. Of work in pawl's home of which no snapshot could be made, it tries again to make one.
Without a terminal --yes is required.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if branch == "" {
				return usage(cmd, "which branch? Name a new one with --branch")
			}
			command := "pawl recover restore " + args[0] + " --branch " + branch
			if err := a.consent(yes, "puts "+args[0]+" on the new branch "+branch, command); err != nil {
				return err
			}
			return a.writing(cmd.Context(), nil, func(s *compose.Verbs) error {
				r, err := s.Restore(cmd.Context(), a.actor(""), args[0], branch)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(r)
				}
				_, err = fmt.Fprintf(a.Out, "✓ %s is branch %s at %s: git switch %s\n", cleanLine(r.Ref), cleanLine(r.Branch), shortHash(r.Commit), cleanLine(r.Branch))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&branch, "branch", "", "`name` of the new branch")
	yesFlag(cmd, &yes)
	return cmd
}

func (a *app) cmdRecoverPrune() *cobra.Command {
	older, dry, yes := "14d", false, false
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove snapshots and packed histories that nothing needs any more", Args: exactly(0),
		Long: `Remove the refs of snapshots whose steps were all done or dropped so long ago, and pack the others. A
snapshot that a step goes on from is never removed, nor one whose step is not done, nor one that no run
of this store made. Each removal is an entry of the loop's audit chain, with the commit: until git
collects it, ` + "`git branch NAME COMMIT`" + ` brings it back.

It also removes the packed histories (doctor --live says their size) that no run has used for so long, or
whose repository is gone. A run that needs one packs it again. Without a terminal --yes is required, except
with --dry-run.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, ok := age(older)
			if !ok {
				return &loop.Fault{Exit: loop.ExitUsage, What: "invalid --older-than " + quote(older), Fix: "write a time like 14d, 36h or 0s"}
			}
			does := "removes what was settled or last used at least " + older + " ago"
			if err := a.consent(yes || dry, does, "pawl recover prune --older-than "+older); err != nil {
				return err
			}
			return a.writing(cmd.Context(), nil, func(s *compose.Verbs) error {
				p, err := s.Prune(cmd.Context(), a.actor(""), age, dry)
				if p.Schema == "" || err != nil && len(p.Removed)+len(p.Mirrors) == 0 {
					return err
				}
				if printed := a.printPruned(p); err == nil {
					err = printed
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&older, "older-than", older, "keep what was settled or used less than this `time` ago")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	yesFlag(cmd, &yes)
	return cmd
}

// age reads a time that may be in days or weeks.
func age(text string) (time.Duration, bool) {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseUint(number, 10, 16)
			return time.Duration(n) * length, err == nil
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

func (a *app) printPruned(p control.Pruned) error {
	if a.json {
		return a.printJSON(p)
	}
	out := printer{w: a.Out}
	verb := "removed"
	if p.DryRun {
		verb = "would be removed"
	}
	for _, row := range p.Removed {
		out.line("– %s (%s), settled %s, %s", snapshotName(row), shortHash(row.Commit), ago(a.Now(), row.Settled), verb)
	}
	for _, m := range p.Mirrors {
		why := "last used " + ago(a.Now(), &m.Used)
		if m.Orphan {
			why = "its repository is gone"
		}
		out.line("– packed history of %s in %s (%s), %s, %s", shortHash(m.Base), cleanLine(m.Repository), size(m.Bytes), why, verb)
	}
	out.line("%d %s, %d kept", len(p.Removed), verb, len(p.Kept))
	return out.err
}
