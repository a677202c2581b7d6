// Mutants plants small bugs into the packages that carry promises, and counts
// how many of them a test notices. It is run by `make mutants`.
//
// Every bug of every package is written into copies of the sources, each
// behind a switch, and the tests are built once with all of them. Which bugs a
// test reaches is recorded while the tests of a package run one after the other;
// then a bug is switched on and the tests that reach it are run, those of its own
// package and the quick ones first, until one fails.
// The checkout is never changed, and where the kernel allows it a run can write
// to its own directories only.
//
// It never changes what pawl is built from: nothing imports it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/ground/flock"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == stageArg {
		os.Exit(stage(os.Args[2]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := mutants(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	all     bool
	groups  []string
	n       int
	seed    uint64
	at      string
	again   bool
	within  time.Duration
	limit   time.Duration
	workers int
	list    bool
	entries bool
	tests   []string // packages whose tests are run; empty is all
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("mutants", flag.ContinueOnError)
	packages := set.String("pkg", "", "comma-separated `packages`; the default is all that carry promises: "+strings.Join(named, " "))
	set.BoolVar(&o.all, "all", false, "run every mutant; those of every package take turns, so that what ten hours are not enough for is missing evenly")
	set.IntVar(&o.n, "n", 30, "how many mutants of each package")
	set.Uint64Var(&o.seed, "seed", 1, "the seed of the sample")
	set.StringVar(&o.at, "at", "", "only the mutants whose `file:line` begins with this")
	set.BoolVar(&o.again, "again", false, "only those that were not caught the last time")
	set.DurationVar(&o.within, "within", 0, "start no further mutant after this time (default 18m, with -all 10h)")
	set.DurationVar(&o.limit, "limit", 90*time.Second, "give up a mutant after tests took so much time of processors, and count it as not caught")
	set.IntVar(&o.workers, "workers", 2*runtime.NumCPU(), "how many runs at the same time; tests wait a lot")
	set.BoolVar(&o.list, "list", false, "list the mutants and run none")
	set.BoolVar(&o.entries, "entries", false, "print what was not caught as entries for argued.txt, which need a reason")
	tests := set.String("tests", "", "run the tests of these comma-separated `packages` only, a quick look: what others would catch counts as missed")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if *tests != "" {
		o.tests = strings.Split(*tests, ",")
	}
	o.groups = named
	if *packages != "" {
		o.groups = strings.Split(*packages, ",")
	}
	for _, group := range o.groups {
		if !slices.Contains(named, group) {
			return o, fmt.Errorf("%q is not one of the packages that mutants are planted in: %s", group, strings.Join(named, " "))
		}
	}
	if o.all {
		o.n = 0
	}
	if o.within == 0 {
		o.within = 18 * time.Minute
		if o.all {
			o.within = 10 * time.Hour
		}
	}
	return o, nil
}

func mutants(ctx context.Context, args []string, w io.Writer) error {
	begin := time.Now()
	o, err := parse(args)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, "%5.0fs  ", time.Since(begin).Seconds())
		fmt.Fprintf(w, format, args...)
	}
	all, err := plantAll(ctx, root)
	if err != nil {
		return err
	}
	arguments, err := readArguments(arguedText)
	if err != nil {
		return err
	}
	reasons, err := argue(arguments, all.mutants)
	if err != nil {
		return err
	}
	work := filepath.Join(root, "bin", "mutants")
	chosen, err := o.choose(work, all.mutants)
	if err != nil {
		return err
	}
	say("%d mutants, %d of them chosen (seed %d); %d places were left out because no copy compiles\n", len(all.mutants), len(chosen), o.seed, all.broken)
	if o.list {
		for _, m := range chosen {
			fmt.Fprintf(w, "%d %s:%d %s: %s: %s -> %s\n", m.ID, m.File, m.Line, m.Func, m.Op, m.Before, m.After)
		}
		return nil
	}
	verdicts, err := o.hunt(ctx, root, work, all, chosen, reasons, say)
	if err != nil {
		return err
	}
	if o.at == "" {
		if err := keepVerdicts(work, verdicts); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	if o.entries {
		for _, v := range verdicts {
			if v.missed() {
				fmt.Fprintf(w, "%sREASON\n\n", v.entry())
			}
		}
	}
	poor := report(w, o.groups, verdicts)
	if len(verdicts) < len(chosen) {
		fmt.Fprintf(w, "%d of the %d chosen were not tried within %s\n", len(chosen)-len(verdicts), len(chosen), o.within)
	}
	if !o.all && o.tests == nil {
		fmt.Fprintf(w, "the tests of %s were not run, which take long and catch some more: MUTANTS=all runs them too\n", strings.Join(whole, " and "))
	}
	fmt.Fprintf(w, "seed %d, %.0f s\n", o.seed, time.Since(begin).Seconds())
	if poor != nil {
		return fmt.Errorf("less than %d %% caught in %s: write the tests that are missing, or argue in internal/test/mutants/argued.txt why a survivor changes nothing", enough, strings.Join(poor, ", "))
	}
	return nil
}

// uses reports whether the tests of a package are run.
func (o options) uses(name string) bool {
	short := path.Base(name)
	if o.tests != nil {
		return slices.Contains(o.tests, name) || slices.Contains(o.tests, short)
	}
	return !slices.Contains(idle, name) && (o.all || !slices.Contains(whole, short))
}

// choose returns the mutants to run.
func (o options) choose(work string, all []bug) ([]bug, error) {
	switch {
	case o.again:
		return missedBefore(work, all)
	case o.at != "":
		var some []bug
		for _, m := range all {
			place := fmt.Sprintf("%s:%d", m.File, m.Line)
			if place == o.at || strings.HasPrefix(place, o.at+":") || strings.HasPrefix(m.File, strings.TrimSuffix(o.at, "/")+"/") {
				some = append(some, m)
			}
		}
		if some == nil {
			return nil, fmt.Errorf("no mutant is at %s; write internal/PACKAGE/FILE.go or internal/PACKAGE/FILE.go:LINE", o.at)
		}
		return some, nil
	}
	return sample(all, o.groups, o.n, o.seed), nil
}

// hunt builds the tests, finds what they reach, and hunts the chosen mutants.
func (o options) hunt(ctx context.Context, root, work string, all *planted, chosen []bug, reasons map[int]string, say func(string, ...any)) ([]verdict, error) {
	begin := time.Now()
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	claim, err := flock.Try(filepath.Join(work, "lock"))
	if errors.Is(err, flock.ErrHeld) {
		return nil, errors.New("another run of make mutants works in this checkout: wait for its end, or work in another worktree")
	}
	if err != nil {
		return nil, err
	}
	defer claim.Close()
	var groups []string
	for _, m := range chosen {
		if !slices.Contains(groups, m.Group) {
			groups = append(groups, m.Group)
		}
	}
	binaries, err := buildTests(ctx, root, work, all, groups, o.uses)
	if err != nil {
		return nil, err
	}
	say("built the tests of %d packages\n", len(binaries))
	// Short, because tests make sockets below it.
	scratch, err := os.MkdirTemp("", "pm")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o755); err != nil {
		return nil, err
	}
	r, err := newRunner(ctx, root, work, scratch)
	if err != nil {
		return nil, err
	}
	if !confined() {
		say("these runs are not shut in, because that needs root: a mutant can change whatever you can\n")
	}
	suites, err := reach(ctx, r, binaries, o.workers, say)
	if err != nil {
		return nil, err
	}
	say("know what the tests reach\n")
	h := newHunter(r, suites, all.mutants, o.limit)
	var mu sync.Mutex
	var verdicts []verdict
	err = inParallel(ctx, o.workers, len(chosen), func(ctx context.Context, i int) error {
		m := chosen[i]
		if time.Since(begin) > o.within {
			return nil
		}
		v := verdict{bug: m, State: equivalent, Reason: reasons[m.ID]}
		if v.Reason == "" {
			var err error
			if v, err = h.hunt(ctx, m); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		verdicts = append(verdicts, v)
		by := v.By
		if by != "" {
			by = " by " + by
		}
		say("%d/%d %s:%d %s %s%s (%.1f s, %.1f of processors, %d of %d tests)\n", len(verdicts), len(chosen), m.File, m.Line, m.Op, v.State, by, v.Took.Seconds(), v.Used.Seconds(), v.Ran, len(v.Reached))
		return nil
	})
	return verdicts, err
}

// keepVerdicts leaves what was not caught for -again.
func keepVerdicts(work string, verdicts []verdict) error {
	missed := []string{}
	for _, v := range verdicts {
		if v.missed() {
			missed = append(missed, v.key())
		}
	}
	body, err := json.Marshal(missed)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "missed.json"), body, 0o600)
}

func missedBefore(work string, all []bug) ([]bug, error) {
	body, err := os.ReadFile(filepath.Join(work, "missed.json"))
	if err != nil {
		return nil, errors.Join(errors.New("there is no last time yet; run make mutants first"), err)
	}
	var keys []string
	if err := json.Unmarshal(body, &keys); err != nil {
		return nil, err
	}
	var some []bug
	for _, m := range all {
		if slices.Contains(keys, m.key()) {
			some = append(some, m)
		}
	}
	return some, nil
}
