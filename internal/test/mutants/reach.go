package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/test/mutants/mutant"
)

// test is one top-level test and what it reaches.
type test struct {
	Name    string
	Took    time.Duration // in a process with others
	Broken  string        // what it said when it failed without any mutant; it is not used
	Reached []byte        // a bit for each mutant, by ID
}

func (t test) reaches(id int) bool { return id/8 < len(t.Reached) && t.Reached[id/8]&(1<<(id%8)) != 0 }

// suite is the tests of a binary. It is kept in a file and found again as long
// as the key of the binary is the same.
type suite struct {
	Key   string
	Start time.Duration // what a process takes beside its tests
	Tests []test
	binary
}

// slowest is the time after which a process is given up that hangs by itself.
const slowest = 30 * time.Minute

// share is how many tests are recorded in one process.
const share = 30

// reach finds what each test of the binaries reaches. A process runs many tests,
// one after the other, and each begins a record of its own.
func reach(ctx context.Context, r *runner, binaries []binary, workers int, say func(string, ...any)) ([]*suite, error) {
	type job struct {
		suite *suite
		tests []int
	}
	var suites []*suite
	var jobs []job
	left := map[*suite]int{}
	count := 0
	for _, b := range binaries {
		s := &suite{}
		body, err := os.ReadFile(r.reachFile(b))
		if err == nil && json.Unmarshal(body, s) == nil && s.Key == b.Key {
			s.binary = b
			suites = append(suites, s)
			continue
		}
		s = &suite{Key: b.Key, binary: b}
		suites = append(suites, s)
		var numbers []int
		for i, name := range b.Tests {
			s.Tests, numbers = append(s.Tests, test{Name: name}), append(numbers, i)
		}
		count += len(numbers)
		for some := range slices.Chunk(numbers, share) {
			jobs = append(jobs, job{s, some})
			left[s]++
		}
	}
	if count > 0 {
		say("what %d tests reach is found out; this is kept until they change\n", count)
	}
	// A package comes after those it imports, and the whole of pawl takes longest.
	slices.Reverse(jobs)
	var mu sync.Mutex
	err := inParallel(ctx, workers, len(jobs), func(ctx context.Context, i int) error {
		s, begin := jobs[i].suite, time.Now()
		again, start, err := r.record(ctx, s, i*mutant.PerProcess, jobs[i].tests)
		for _, one := range again {
			if err == nil {
				_, _, err = r.record(ctx, s, i*mutant.PerProcess, []int{one})
			}
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, one := range again {
			if t := s.Tests[one]; t.Broken != "" {
				say("%s.%s fails without a mutant and is left out: %s\n", s.Name, t.Name, short(t.Broken))
			}
		}
		say("%d tests of %s (%.0f s)\n", len(jobs[i].tests), s.Name, time.Since(begin).Seconds())
		s.Start = start
		if left[s]--; left[s] > 0 {
			return nil
		}
		return r.keepSuite(s)
	})
	return suites, err
}

func (r *runner) keepSuite(s *suite) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.reachFile(s.binary)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(r.reachFile(s.binary), body, 0o600)
}

func (r *runner) reachFile(b binary) string {
	return filepath.Join(r.work, "reach", strings.ReplaceAll(b.Name, "/", "-")+".json")
}

var ended = regexp.MustCompile(`--- (?:PASS|SKIP): ([^\s/]+) \(`)

// record runs some tests of a suite in one process and notes what each reaches.
// Their records are those from base on. It returns the tests that did not pass, and
// what the process took before the first one.
func (r *runner) record(ctx context.Context, s *suite, base int, tests []int) ([]int, time.Duration, error) {
	records := map[int]string{}
	for _, i := range append([]int{-1}, tests...) {
		name := filepath.Join(r.work, "records", strconv.Itoa(base+1+i))
		defer os.Remove(name)
		// Each process of the run can write it, whoever's it is.
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, mutant.Capacity), os.Chmod(name, 0o666)); err != nil {
			return nil, 0, err
		}
		records[i] = name
	}
	var names []string
	for _, i := range tests {
		names = append(names, s.Tests[i].Name)
	}
	begin := time.Now()
	o, err := r.start(ctx, s.binary, mutant.RecordOf(base), slowest, "-test.v", "-test.run", "^("+strings.Join(names, "|")+")$")
	if err != nil {
		return nil, 0, err
	}
	passed := map[string]bool{}
	for _, found := range ended.FindAllStringSubmatch(o.said, -1) {
		passed[found[1]] = true
	}
	// A test lasts until the next one begins.
	inOrder := slices.SortedFunc(slices.Values(tests), func(a, b int) int {
		return o.begun[s.Tests[b].Name].Compare(o.begun[s.Tests[a].Name])
	})
	end := begin.Add(o.took)
	for _, i := range inOrder {
		if at, ok := o.begun[s.Tests[i].Name]; ok {
			s.Tests[i].Took, end = end.Sub(at), at
		}
	}
	var not []int
	for _, i := range tests {
		t := &s.Tests[i]
		if t.Broken = ""; !passed[t.Name] {
			t.Broken = o.said + " "
			not = append(not, i)
		}
		t.Reached = make([]byte, mutant.Capacity/8)
		for _, name := range []string{records[-1], records[i]} {
			body, err := os.ReadFile(name)
			if err != nil {
				return nil, 0, err
			}
			for id, b := range body {
				t.Reached[id/8] |= b << (id % 8)
			}
		}
		t.Reached = t.Reached[:len(strings.TrimRight(string(t.Reached), "\x00"))]
	}
	return not, end.Sub(begin), nil
}

// inParallel calls do for 0 to n-1 and returns the first error.
func inParallel(ctx context.Context, workers, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}
