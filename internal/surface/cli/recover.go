package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newRecoverCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "recover", Short: "List the work that runs left on no branch; show, restore or remove it", Args: exactArgs(0),
		Long: `List the snapshots below refs/pawl/snapshots: work of runs that is on no branch, because a run was
stopped, failed or waits for a human. A run whose process died is concluded first, so that its work is among them.
Where no snapshot could be made, the folder in pawl's home that holds the files is listed.
Nothing of it is lost until ` + "`pawl recover prune`" + ` removes it.

Below that are repositories that are gone from this machine and have runs that were not concluded, or files in
pawl's home. They are listed wherever the command is run.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withCaller(ctx, nil, func(c verb.Caller) error {
				gone, err := api.ListGone.Call(ctx, c, verb.None{})
				if err != nil {
					return err
				}
				if len(gone) > 0 {
					err := compose.CheckRepository(ctx, a.workDir())
					if f, ok := errors.AsType[*loop.Fault](err); ok && f.Exit == loop.ExitNotFound { // Outside of any repository.
						return printSnapshots(a.printer(), nil, gone)
					}
				}
				// A run that seems to be live may be dead, too: its process may be of another host.
				left, err := api.FindLive.Call(ctx, c, verb.None{})
				if err == nil && left.Live {
					_, err = verb.RecoverRuns.Call(ctx, c, verb.None{})
				}
				if err != nil {
					return err
				}
				rows, err := api.ListSnapshots.Call(ctx, c, verb.None{})
				if err != nil {
					return err
				}
				return printSnapshots(a.printer(), rows, gone)
			})
		},
	}
	cmd.AddCommand(newRecoverShowCommand(a), newRecoverRestoreCommand(a), newRecoverPruneCommand(a))
	return cmd
}

// printSnapshots prints the kept work. Rows are nil outside of a repository.
func printSnapshots(p *output.Printer, rows []runs.Snapshot, gone []runs.GoneRepository) error {
	if p.JSON {
		return p.WriteJSON(runs.NewLeftWork(rows, gone))
	}
	if rows != nil {
		if err := printSnapshotTable(p, rows); err != nil {
			return err
		}
	}
	return printGone(p, gone)
}

// printGone says what is open of each repository that is gone. Those with nothing open
// are counted.
func printGone(p *output.Printer, gone []runs.GoneRepository) error {
	closed := 0
	for _, g := range gone {
		if len(g.Runs) == 0 {
			closed++
			continue
		}
		p.Line("")
		p.Line("%s is gone: %s", p.Style.Bold(output.CleanLine(g.Root)), output.CleanLine(g.Why))
		for _, run := range g.Runs {
			p.Line("  %s  %s, last recorded in %s", output.CleanLine(run.Run), run.State, run.Phase)
			for _, k := range run.Kept {
				p.Line("    kept in pawl's home: %s (%s, %s)", output.CleanLine(k.Path), pluralize(k.Files, "file"), formatBytes(k.Bytes))
			}
			if len(run.Kept) == 0 {
				p.Line("    nothing of it is kept in pawl's home")
			}
		}
		p.Line("  next: %s", output.CleanLine(g.Next))
	}
	if closed > 0 {
		p.Line("")
		p.Line("gone, with nothing open: %d (pawl recover prune removes what was packed for them)", closed)
	}
	return p.Err()
}

func printSnapshotTable(p *output.Printer, rows []runs.Snapshot) error {
	return output.List[runs.Snapshot]{
		Heading: []string{"SNAPSHOT", "RUN", "WHEN", "FILES", "SIZE", "STATE"},
		Empty:   "No work is kept: every run that changed something has put it on a branch.",
		Cells: func(row runs.Snapshot) []string {
			run := "–"
			if row.N > 0 {
				run = fmt.Sprintf("%s#%d", output.CleanLine(row.Loop), row.N)
			}
			if row.Ref == "" {
				return []string{"–", run, p.Ago(&row.When), "–", "–", "in no commit; its files are in " + output.CleanLine(row.Dir)}
			}
			return []string{snapshotName(row), run, p.Ago(&row.When), strconv.Itoa(row.Files), formatBytes(row.Bytes), describeSnapshot(p, row)}
		},
	}.Print(p, rows)
}

// snapshotName is the name of a snapshot that the subcommands accept.
func snapshotName(row runs.Snapshot) string {
	return output.CleanLine(row.Name())
}

// describeSnapshot says whether anything still needs a snapshot.
func describeSnapshot(p *output.Printer, row runs.Snapshot) string {
	switch row.State {
	case runs.SnapshotWaiting:
		return p.Style.Yellow("! ") + "step goes on from it: " + excerpt(row.Waits, 50)
	case runs.SnapshotRunning:
		return "its run is live"
	case runs.SnapshotOpen:
		return "a step of its run is not done"
	case runs.SnapshotSettled:
		return "settled " + p.Ago(row.Settled)
	}
	return "made by no run of this store"
}

func newRecoverShowCommand(a *app) *cobra.Command {
	raw := false
	cmd := &cobra.Command{
		Use: "show REF|RUN", Short: "Print what a snapshot changed, as a patch", Args: exactArgs(1),
		Long: "Print what a snapshot changed, as a patch, written as by pawl diff.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				patch, err := api.DiffSnapshot.Call(cmd.Context(), c, api.SnapshotRef{Snapshot: args[0]})
				if err != nil {
					return err
				}
				return printPatch(a.printer(), patch, raw)
			})
		},
	}
	addRawFlag(cmd, &raw)
	return cmd
}

func newRecoverRestoreCommand(a *app) *cobra.Command {
	branch, yes := "", false
	cmd := &cobra.Command{
		Use: "restore REF|RUN", Short: "Put a snapshot on a new branch", Args: exactArgs(1),
		Long: `Put a snapshot on a new branch. No branch that exists is moved, and neither the checkout nor the
snapshot is touched. Of work in pawl's home of which no snapshot could be made, it tries again to make one.
Without a terminal --yes is required.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if branch == "" {
				return usageError(cmd, "which branch? Name a new one with --branch")
			}
			command := "pawl recover restore " + args[0] + " --branch " + branch
			if err := a.requireConsent(yes, "puts "+args[0]+" on the new branch "+branch, command); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				r, err := api.RestoreSnapshot.Call(cmd.Context(), c, api.RestoreRequest{Snapshot: args[0], Branch: branch})
				if err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(r)
				}
				p.Line("✓ %s is branch %s at %s: git switch %s", output.CleanLine(r.Ref), output.CleanLine(r.Branch), shortHash(r.Commit), output.CleanLine(r.Branch))
				return p.Err()
			})
		},
	}
	cmd.Flags().StringVar(&branch, "branch", "", "`name` of the new branch")
	addYesFlag(cmd, &yes)
	return cmd
}

func newRecoverPruneCommand(a *app) *cobra.Command {
	older, dry, yes := "14d", false, false
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove snapshots and packed histories that nothing needs any more", Args: exactArgs(0),
		Long: `Remove the refs of snapshots whose steps were all done or dropped so long ago, and pack the others. A
snapshot that a step goes on from is never removed, nor one whose step is not done, nor one that no run
of this store made. Each removal is an entry of the loop's audit chain, with the commit: until git
collects it, ` + "`git branch NAME COMMIT`" + ` brings it back.

It also removes the packed histories (doctor --live says their size) that no run has used for so long, or
whose repository is gone. A run that needs one packs it again. Without a terminal --yes is required, except
with --dry-run.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, ok := parseAge(older)
			if !ok {
				return &loop.Fault{Exit: loop.ExitUsage, What: "invalid --older-than " + quoteArg(older), Fix: "write a time like 14d, 36h or 0s"}
			}
			does := "removes what was settled or last used at least " + older + " ago"
			if err := a.requireConsent(yes || dry, does, "pawl recover prune --older-than "+older); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				pruned, err := api.PruneSnapshots.Call(cmd.Context(), c, api.PruneRequest{OlderSeconds: int64(age / time.Second), DryRun: dry})
				if pruned.Schema == "" || err != nil && len(pruned.Removed)+len(pruned.Mirrors) == 0 {
					return err
				}
				if failed := printPruned(a.printer(), pruned); err == nil {
					err = failed
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&older, "older-than", older, "keep what was settled or used less than this `time` ago")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	addYesFlag(cmd, &yes)
	return cmd
}

// parseAge reads a duration that may be in days or weeks.
func parseAge(text string) (time.Duration, bool) {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseUint(number, 10, 16)
			return time.Duration(n) * length, err == nil
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

func printPruned(p *output.Printer, pruned runs.Pruned) error {
	if p.JSON {
		return p.WriteJSON(pruned)
	}
	verb := "removed"
	if pruned.DryRun {
		verb = "would be removed"
	}
	for _, row := range pruned.Removed {
		p.Line("– %s (%s), settled %s, %s", snapshotName(row), shortHash(row.Commit), p.Ago(row.Settled), verb)
	}
	for _, m := range pruned.Mirrors {
		why := "last used " + p.Ago(&m.Used)
		if m.Orphan {
			why = "its repository is gone"
		}
		p.Line("– packed history of %s in %s (%s), %s, %s", shortHash(m.Base), output.CleanLine(m.Repository), formatBytes(m.Bytes), why, verb)
	}
	p.Line("%d %s, %d kept", len(pruned.Removed), verb, len(pruned.Kept))
	return p.Err()
}
