package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Findings are what a walk along the audit chains found, schema
// pawl.audit-check/v1.
//
// It proves that nothing was changed, removed or moved by anybody who did not
// write every later entry anew, with the head, the rows of the runs and the
// log. Somebody who can write the store can do that: then only a copy that was
// exported before tells, by Against.
type Findings struct {
	Schema string  `json:"schema"`
	Intact bool    `json:"intact"`
	Chains []Chain `json:"chains"`
}

// Chain is one chain of Findings: that of a loop, or of the workspace for
// what belongs to no loop.
type Chain struct {
	Chain    string  `json:"chain"`
	Loop     string  `json:"loop,omitempty"` // empty: the workspace's own
	Protocol string  `json:"protocol,omitempty"`
	Links    int64   `json:"links"`
	Head     string  `json:"head"`
	Log      string  `json:"log,omitempty"`     // the run log that was compared
	Lines    int     `json:"lines,omitempty"`   // of it that the chain accounts for
	Earlier  int     `json:"earlier,omitempty"` // of it that are older than the chain, so that nothing vouches for them
	Breaks   []Break `json:"breaks"`

	Entries []loop.Link `json:"-"`
	Pending bool        `json:"-"` // lines of the log may still be on their way
	Owed    []int64     `json:"-"` // numbers of the runs whose line this node has still to write
}

// Break is one place at which what is there is not what was written.
type Break struct {
	Where string `json:"where"`           // chain, runs, copy, or the path of the log
	Entry int64  `json:"entry,omitempty"` // of the chain
	Line  int    `json:"line,omitempty"`  // of the log, from 1
	Run   int64  `json:"run,omitempty"`   // number of the run
	What  string `json:"what"`
	Found string `json:"found,omitempty"` // what is there
	Want  string `json:"want,omitempty"`  // what was written

	Unread bool `json:"-"` // the log cannot be read at all
}

// Mend is what helps a chain in which something is broken.
type Mend string

// What helps.
const (
	MendRewrite Mend = "rewrite" // RewriteLog: the run log alone is broken
	MendMove    Mend = "move"    // the same, after the file in the log's place was moved away
	MendRestore Mend = "restore" // a backup: the chain or the rows of the runs are broken
)

// Mend says what helps against all breaks of the chain. It has one at least.
func (c *Chain) Mend() Mend {
	mend := MendRewrite
	for _, b := range c.Breaks {
		if b.Where != c.Log {
			return MendRestore
		}
		if b.Unread {
			mend = MendMove
		}
	}
	return mend
}

// String is the place and what is wrong with it.
func (b Break) String() string {
	switch {
	case b.Line > 0:
		return fmt.Sprintf("%s:%d: %s", b.Where, b.Line, b.What)
	case b.Entry > 0 && b.Run == 0:
		return fmt.Sprintf("%s: entry %d %s", b.Where, b.Entry, b.What)
	}
	return b.Where + ": " + b.What
}

// A run that ends meanwhile has its entry in one place before it has its line
// in the other: what differs is looked at again for so long.
const (
	logWait = 2 * time.Second
	logTick = 20 * time.Millisecond
)

// Verify walks the chain of one loop, or every chain of the workspace, and
// compares it with its head, with the rows of the runs and with the run log.
// It never writes, and starts no program.
func (s *Service) Verify(ctx context.Context, name string) (Findings, error) {
	patience, stop := context.WithTimeout(ctx, logWait)
	defer stop()
	tick := time.NewTicker(logTick)
	defer tick.Stop()
	var before Findings
	for {
		a, err := s.verifyOnce(ctx, name)
		if err != nil || a.Intact || a.settled(before) {
			return a, err
		}
		before = a
		select {
		case <-patience.Done():
			return a, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// settled reports whether what is broken stays so: it is not the log alone, or
// nothing has moved since the look before and nothing is about to.
func (a Findings) settled(before Findings) bool {
	still := len(a.Chains) == len(before.Chains)
	for i, c := range a.Chains {
		if slices.ContainsFunc(c.Breaks, func(b Break) bool { return b.Where != c.Log }) {
			return true
		}
		still = still && !c.Pending && before.Chains[i].Head == c.Head
	}
	return still
}

func (s *Service) verifyOnce(ctx context.Context, name string) (Findings, error) {
	chains, err := s.chains(ctx, name)
	if err != nil {
		return Findings{}, err
	}
	for i := range chains {
		if err := s.compareLogOf(&chains[i]); err != nil {
			return Findings{}, err
		}
	}
	return audited(chains), nil
}

func audited(chains []Chain) Findings {
	a := Findings{Schema: "pawl.audit-check/v1", Intact: true, Chains: shape.List(chains)}
	for i := range chains {
		chains[i].Breaks = shape.List(chains[i].Breaks)
		a.Intact = a.Intact && len(chains[i].Breaks) == 0
	}
	return a
}

// chains reads one chain, or all of the workspace, in one consistent view, and
// compares each with its head and the rows of the runs.
func (s *Service) chains(ctx context.Context, name string) (list []Chain, err error) {
	only := ""
	if name != All {
		e, err := s.ws.Loops.Resolve(ctx, name)
		if err != nil {
			return nil, err
		}
		only = e.LoopID()
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		var loops []loop.Loop
		if only != "" {
			l, err := r.Loop(ctx, only)
			if err != nil {
				return err
			}
			loops = []loop.Loop{l}
		} else {
			all, err := r.Loops(ctx, s.ws.ID)
			if err != nil {
				return err
			}
			loops = append(all, loop.Loop{ID: s.ws.ID})
		}
		for _, l := range loops {
			c, err := readChain(ctx, r, l, s.ws.Node.ID)
			if err != nil {
				return err
			}
			if l.LastN > 0 || c.Links > 0 { // Of a loop that was only registered there is nothing to tell.
				list = append(list, c)
			}
		}
		return nil
	})
	if lookup.Absent(err) {
		err = nil // Nothing has happened yet.
	}
	return list, err
}

func readChain(ctx context.Context, r *store.Reader, l loop.Loop, node string) (c Chain, err error) {
	c = Chain{Chain: l.ID, Loop: l.Name, Protocol: l.Protocol}
	if c.Entries, err = r.Chain(ctx, l.ID); err != nil {
		return c, err
	}
	head, err := r.ChainHead(ctx, l.ID)
	if err != nil {
		return c, err
	}
	c.Links, c.Head = head.Links, head.Hash
	c.walk(head)
	if l.Name == "" {
		return c, nil
	}
	runs, err := r.RunEnds(ctx, l.ID)
	if err != nil {
		return c, err
	}
	c.compareRuns(l, runs)
	owed, err := r.OwedRuns(ctx, node, l.WorkspaceID)
	if err != nil {
		return c, err
	}
	for _, run := range owed {
		if run.LoopID == l.ID {
			c.Owed = append(c.Owed, run.N)
		}
	}
	pending, err := r.Pending(ctx, l.ID, node)
	c.Pending = len(pending) > 0
	return c, err
}

// walk looks at the chain itself.
func (c *Chain) walk(head store.Head) {
	for _, err := range []error{store.VerifyChain(c.Entries), head.Verify(c.Chain, c.Entries)} {
		e, ok := errors.AsType[*store.BreakError](err)
		if !ok {
			continue
		}
		b := Break{Where: "chain", Entry: e.Seq, What: e.What}
		if e.Found != nil {
			b.Found = fmt.Sprintf("%d %s %s %s", e.Found.Seq, e.Found.At.UTC().Format(time.RFC3339), e.Found.Kind, e.Found.Body)
		}
		c.Breaks = append(c.Breaks, b)
	}
}

// compareRuns looks for entries of runs that are not there, and for rows that
// say something else than their entry. Numbers of runs have no gaps but those that the
// chain tells of.
func (c *Chain) compareRuns(l loop.Loop, rows []loop.Run) {
	told := map[int64]account{}
	first := l.LastN
	for _, a := range accounts(c.Entries) {
		told[a.N] = a
		first = min(first, a.N)
	}
	missing := map[int64]bool{}
	for _, e := range c.Entries {
		var m loop.Missing
		if e.Kind == loop.LinkMissing && json.Unmarshal([]byte(e.Body), &m) == nil {
			for n := m.First; n <= min(m.Last, l.LastN); n++ {
				missing[n] = true
			}
		}
	}
	row := map[int64]loop.Run{}
	for _, r := range rows {
		row[r.N] = r
		first = min(first, r.N)
	}
	for n := max(first, 1); n <= l.LastN; n++ {
		r, there := row[n]
		a, ended := told[n]
		broken := func(what string) {
			c.Breaks = append(c.Breaks, Break{Where: "runs", Entry: a.seq, Run: n, What: fmt.Sprintf("run #%d %s", n, what), Found: string(r.Outcome), Want: string(a.Outcome)})
		}
		switch {
		case !there && missing[n]:
		case !there:
			broken("is gone")
		case !ended && r.State == loop.RunEnded:
			broken("has ended and has no entry in the chain")
		case ended && (r.State != loop.RunEnded || a.runID != r.ID || a.Outcome != r.Outcome):
			broken("says something else than its entry")
		}
	}
}

// Against compares an audit with a copy that Export wrote before: each
// chain must begin with all the entries of the copy.
func (a *Findings) Against(from io.Reader) error {
	copied, err := readCopy(from)
	if err != nil {
		return err
	}
	for i := range a.Chains {
		c := &a.Chains[i]
		at := slices.IndexFunc(copied, func(o Chain) bool { return o.Chain == c.Chain })
		if at < 0 {
			continue
		}
		c.Breaks = append(c.Breaks, copied[at].Breaks...)
		for j, l := range copied[at].Entries {
			if j < len(c.Entries) && c.Entries[j].Hash == l.Hash {
				continue
			}
			b := Break{Where: "copy", Entry: l.Seq, What: "is another one than in the copy", Want: l.Kind + " " + l.Body}
			if j >= len(c.Entries) {
				b.What = "and all behind it are missing, and the copy has them"
			} else {
				b.Found = c.Entries[j].Kind + " " + c.Entries[j].Body
			}
			c.Breaks = append(c.Breaks, b)
			break
		}
	}
	for _, o := range copied {
		if !slices.ContainsFunc(a.Chains, func(c Chain) bool { return c.Chain == o.Chain }) {
			o.Breaks = append(o.Breaks, Break{Where: "copy", What: "the store does not have this chain"})
			a.Chains = append(a.Chains, o)
		}
	}
	*a = audited(a.Chains)
	return nil
}

// VerifyChain walks the audit chain of a loop, and says which entry was
// changed, removed or put in another place. A loop without entries is in order.
func (s *Service) VerifyChain(ctx context.Context, name string) error {
	e, err := s.ws.Loops.Resolve(ctx, name)
	if err != nil {
		return err
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		links, err := r.Chain(ctx, e.LoopID())
		if err != nil {
			return err
		}
		return store.VerifyChain(links)
	})
	if lookup.Absent(err) {
		return nil
	}
	return err
}
