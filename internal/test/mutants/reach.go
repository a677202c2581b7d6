package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/test/mutants/mutant"
)

// test is one top-level test and what it reaches.
type test struct {
	Name    string
	Took    time.Duration // of a process that runs it alone
	Broken  string        // what it said when it failed without any mutant; it is not used
	Reached []byte        // a bit for each mutant, by ID
}

func (t test) reaches(id int) bool { return id/8 < len(t.Reached) && t.Reached[id/8]&(1<<(id%8)) != 0 }

// suite is the tests of a binary. It is kept in a file and found again as long
// as the key of the binary is the same.
type suite struct {
	Key   string
	Tests []test
	binary
}

// slowest is the time after which a test is given up that hangs by itself.
const slowest = 10 * time.Minute

// reach finds what each test of the binaries reaches.
func reach(ctx context.Context, r *runner, binaries []binary, workers int, say func(string, ...any)) ([]*suite, error) {
	type job struct {
		suite *suite
		test  *test
	}
	var suites []*suite
	var jobs []job
	for _, b := range binaries {
		s := &suite{}
		body, err := os.ReadFile(r.reachFile(b))
		if err == nil && json.Unmarshal(body, s) == nil && s.Key == b.Key {
			s.binary = b
			suites = append(suites, s)
			continue
		}
		listed, err := r.start(ctx, b, mutant.LimitOf(0), time.Minute, "-test.list", "^(Test|Fuzz|Example)")
		if err != nil {
			return nil, err
		}
		s = &suite{Key: b.Key, binary: b}
		for name := range strings.FieldsSeq(listed.said) {
			if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
				s.Tests = append(s.Tests, test{Name: name})
			}
		}
		for i := range s.Tests {
			jobs = append(jobs, job{s, &s.Tests[i]})
		}
		suites = append(suites, s)
	}
	if len(jobs) > 0 {
		say("what %d tests reach is found out; this is kept until they change\n", len(jobs))
	}
	left := map[*suite]int{}
	for _, j := range jobs {
		left[j.suite]++
	}
	var mu sync.Mutex
	done := 0
	err := inParallel(ctx, workers, len(jobs), func(ctx context.Context, i int) error {
		j := jobs[i]
		if err := r.record(ctx, j.suite.binary, j.test, i); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if j.test.Broken != "" {
			say("%s.%s fails without a mutant and is left out: %s\n", j.suite.Name, j.test.Name, short(j.test.Broken))
		}
		if done++; done%100 == 0 {
			say("%d of %d tests\n", done, len(jobs))
		}
		if left[j.suite]--; left[j.suite] > 0 {
			return nil
		}
		return r.keepSuite(j.suite)
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

// record runs one test and notes what it reaches.
func (r *runner) record(ctx context.Context, b binary, t *test, number int) error {
	name := filepath.Join(r.work, "records", fmt.Sprint(number))
	if err := os.WriteFile(name, make([]byte, mutant.Capacity), 0o666); err != nil {
		return err
	}
	defer os.Remove(name)
	if err := os.Chmod(name, 0o666); err != nil {
		return err
	}
	o, err := r.start(ctx, b, mutant.RecordOf(number), slowest, "-test.run", "^"+t.Name+"$")
	if err != nil {
		return err
	}
	t.Took = o.took
	if !o.passed {
		t.Broken = o.said + " "
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	t.Reached = make([]byte, mutant.Capacity/8)
	last := 0
	for id, b := range body {
		if b != 0 {
			t.Reached[id/8] |= 1 << (id % 8)
			last = id
		}
	}
	t.Reached = t.Reached[:last/8+1]
	return nil
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
