package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Stall is how long the action "stall" blocks, unless its context ends first.
const Stall = 30 * time.Second

// Plan says what happens at which hit of which point, and records every hit.
// The zero Plan only records. A Plan may be used by several goroutines.
type Plan struct {
	mu    sync.Mutex
	rules []rule
	hits  []string
	count map[string]int
	trace io.Writer // one name a line, or nil
}

type rule struct {
	name  string
	k     int  // the hit that it applies to, from 1
	later bool // it also applies to all later hits
	do    Action
}

// Action is called at a hit, which returns its error.
type Action func(context.Context) error

// Parse reads a plan: rules "name[:k]=action" joined by commas. The rule
// applies to the k-th hit of the point alone (1 when absent), or to that and
// all later ones as "name:k+=action". Actions are an errno (EIO ENOSPC EROFS
// EDQUOT EMFILE ENOMEM EACCES), "stall" (blocks for Stall), "panic", "kill"
// (SIGKILL to this process) and "stop" (SIGSTOP to it, until somebody continues
// it). Every name must be a declared point.
func Parse(spec string) (*Plan, error) {
	plan := &Plan{}
	for text := range strings.SplitSeq(spec, ",") {
		where, action, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("fault plan %q: want name[:k]=action", text)
		}
		do, ok := actions[action]
		if !ok {
			return nil, fmt.Errorf("fault plan %q: no action %q", text, action)
		}
		if err := plan.addRule(where, do); err != nil {
			return nil, fmt.Errorf("fault plan %q: %w", text, err)
		}
	}
	return plan, nil
}

// Do adds an action of the test's own at the k-th hit of the point, from 1. It
// panics if the point is not declared or k is not positive, and returns the
// plan.
func (p *Plan) Do(name string, k int, do Action) *Plan {
	if err := p.addRule(name+":"+strconv.Itoa(k), do); err != nil {
		panic("fault: " + err.Error())
	}
	return p
}

// Hits lists the names of all points that were hit under the plan, in order.
func (p *Plan) Hits() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hits)
}

func (p *Plan) addRule(where string, do Action) error {
	name, text, given := strings.Cut(where, ":")
	r := rule{name: name, k: 1, do: do}
	if given {
		text, r.later = strings.CutSuffix(text, "+")
		k, err := strconv.Atoi(text)
		if err != nil || k < 1 {
			return fmt.Errorf("hit %q of point %s is not a number from 1", text, name)
		}
		r.k = k
	}
	if !slices.Contains(Names(), name) {
		return fmt.Errorf("no point is named %q", name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return nil
}

func (p *Plan) hit(ctx context.Context, name string) error {
	do, err := p.recordHit(name)
	if err == nil && do != nil {
		// Outside the lock: an action may stall, or hit points itself.
		err = do(ctx)
	}
	if err != nil {
		return fmt.Errorf("fault at %s: %w", name, err)
	}
	return nil
}

// recordHit counts a hit and finds the first rule that applies to it. The trace
// is written before the action, so that it also names the hit that kills.
func (p *Plan) recordHit(name string) (Action, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == nil {
		p.count = map[string]int{}
	}
	p.count[name]++
	p.hits = append(p.hits, name)
	if p.trace != nil {
		if _, err := io.WriteString(p.trace, name+"\n"); err != nil {
			return nil, fmt.Errorf("write trace: %w", err)
		}
	}
	for _, r := range p.rules {
		if n := p.count[name]; r.name == name && (n == r.k || r.later && n > r.k) {
			return r.do, nil
		}
	}
	return nil, nil
}

var actions = map[string]Action{
	"EIO":    failWith(syscall.EIO),
	"ENOSPC": failWith(syscall.ENOSPC),
	"EROFS":  failWith(syscall.EROFS),
	"EDQUOT": failWith(syscall.EDQUOT),
	"EMFILE": failWith(syscall.EMFILE),
	"ENOMEM": failWith(syscall.ENOMEM),
	"EACCES": failWith(syscall.EACCES),
	"stall":  stall,
	"panic":  func(context.Context) error { panic("fault: planned panic") },
	"kill":   killSelf,
	"stop":   stopSelf,
}

func failWith(errno syscall.Errno) Action {
	return func(context.Context) error { return errno }
}

func stall(ctx context.Context) error {
	timer := time.NewTimer(Stall)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// killSelf ends the process as a power cut would: no deferred call runs, nothing
// is flushed.
func killSelf(context.Context) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return fmt.Errorf("find this process: %w", err)
	}
	if err := self.Kill(); err != nil {
		return fmt.Errorf("kill this process: %w", err)
	}
	// The signal may reach another thread first. Nothing may run meanwhile.
	time.Sleep(Stall)
	return errors.New("survived its own kill")
}
