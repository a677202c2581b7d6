// Package memories carries out the verbs for what was learned in a workspace: list it, add
// to it, approve and forget an entry, and say where an entry comes from.
//
// What people do is kept in the audit chain of the workspace. Runs remember by themselves,
// without this package; nothing here decides whether a proposal is confirmed.
package memories

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/record/memory"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Service carries out the verbs in one workspace.
type Service struct {
	ws    *lookup.Workspace
	hide  func(string) string
	claim store.Claim // of the call that is carried out; zero: it has no key
}

// New makes the service. Hide takes secrets out of a text.
func New(ws *lookup.Workspace, hide func(string) string) *Service {
	return &Service{ws: ws, hide: hide}
}

// Once returns the service that carries out one call: what it adds and its answer are kept in
// one transaction.
func (s *Service) Once(c store.Claim) *Service {
	once := *s
	once.claim = c
	return &once
}

// View is an entry as people see it.
type View struct {
	loop.Memory
	Confidence int `json:"confidence"` // 0 to 100
}

// Explained is one entry and where it comes from, schema pawl.memory/v1.
type Explained struct {
	Schema string `json:"schema"`
	View

	Needs   int            `json:"needs"` // how many more runs have to propose it independently until it counts; 0: it counts, or is forgotten
	Next    string         `json:"next"`  // what a person can do about it
	Actions []loop.Command `json:"actions"`
}

// Query selects entries.
type Query struct {
	Loop   string `json:"loop,omitempty"`   // only what is for this loop or for every loop; empty: all
	All    bool   `json:"all,omitempty"`    // also those that are forgotten
	Before int64  `json:"before,omitempty"` // only those with a lower number
	Limit  int    `json:"limit"`
}

// mostListed bounds a page.
const mostListed = 1000

// List returns entries, the highest number first.
func (s *Service) List(ctx context.Context, q Query) (list []View, err error) {
	if q.Limit < 1 || q.Limit > mostListed || q.Before < 0 {
		return nil, &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("invalid limit %d or before %d", q.Limit, q.Before), Fix: fmt.Sprintf("write a limit of 1 to %d, and a number above 0", mostListed),
		}
	}
	id, _, err := s.loopNamed(ctx, q.Loop)
	if err != nil {
		return nil, err
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		list = nil
		for before := q.Before; ; {
			page, err := r.Memories(ctx, store.MemoryQuery{Workspace: s.ws.ID, Loop: id, Before: before, Limit: q.Limit})
			if err != nil {
				return err
			}
			for _, m := range page {
				before = m.N
				if (m.State != loop.MemoryForgotten || q.All) && len(list) < q.Limit {
					list = append(list, viewOf(m))
				}
			}
			if len(page) < q.Limit || len(list) == q.Limit {
				return nil
			}
		}
	})
	if lookup.Absent(err) {
		err = nil // Nothing was learned yet.
	}
	return shape.List(list), err
}

// loopNamed is the id and the name of a loop; both are empty for an empty name.
func (s *Service) loopNamed(ctx context.Context, name string) (id, named string, err error) {
	if name == "" {
		return "", "", nil
	}
	e, err := s.ws.Loops.Resolve(ctx, name)
	return e.LoopID(), e.Name, err
}

func viewOf(m loop.Memory) View {
	m.Sources = shape.List(m.Sources)
	return View{Memory: m, Confidence: memory.Confidence(m)}
}

// Why returns an entry with all that is known about it. Ref is its number: 12 or #12.
func (s *Service) Why(ctx context.Context, ref string) (e Explained, err error) {
	n, err := parseNumber(ref)
	if err != nil {
		return e, err
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		m, err := r.Memory(ctx, s.ws.ID, n)
		if err == nil {
			e = explain(m)
		}
		return err
	})
	return e, orUnknown(ref, err)
}

func parseNumber(ref string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(ref, "#"), 10, 64)
	if err != nil || n < 1 {
		return 0, &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("%q is not a number of an entry", ref), Fix: "write a number like 12; {1} has them", Actions: []loop.Command{loop.PawlCommand("memory list")},
		}
	}
	return n, nil
}

func orUnknown(ref string, err error) error {
	if !lookup.Absent(err) {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "there is no entry #" + strings.TrimPrefix(ref, "#") + " in the memory", Err: loop.ErrNotFound,
		Fix: "{1} has them", Actions: []loop.Command{loop.PawlCommand("memory list").WithFlag("all")},
	}
}

func explain(m loop.Memory) Explained {
	e := Explained{Schema: "pawl.memory/v1", View: viewOf(m)}
	n := strconv.FormatInt(m.N, 10)
	next := loop.Advise("{1} if it is wrong", loop.PawlCommand("memory forget", n))
	switch m.State {
	case loop.MemoryProposed:
		e.Needs = max(0, memory.NeededConfirmations-m.Confirmed)
		next = loop.Advise("{1} makes it count, {2} ends it", loop.PawlCommand("memory approve", n), loop.PawlCommand("memory forget", n))
	case loop.MemoryForgotten:
		next = loop.Advise("{1} brings it back", loop.PawlCommand("memory approve", n))
	case loop.MemoryActive:
	}
	e.Next, e.Actions = next.String(), next.Actions
	return e
}

// Addition is an entry to add.
type Addition struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"` // command, fact or pitfall; empty: fact
	Loop string `json:"loop,omitempty"` // the only one that it is for; empty: every loop of the workspace
}

var kinds = []loop.MemoryKind{loop.MemoryCommand, loop.MemoryFact, loop.MemoryPitfall}

// Add adds an entry that counts at once. If the memory has it already, also as a proposal
// or forgotten, that is the entry that counts.
func (s *Service) Add(ctx context.Context, by loop.Actor, a Addition) (e Explained, err error) {
	m := loop.Memory{Kind: loop.MemoryKind(a.Kind), State: loop.MemoryActive}
	if m.Kind == "" {
		m.Kind = loop.MemoryFact
	}
	if !slices.Contains(kinds, m.Kind) {
		return e, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%q is not a kind of entry", a.Kind), Fix: "write command, fact or pitfall"}
	}
	if s.hide(a.Text) != a.Text {
		return e, &loop.Fault{Exit: loop.ExitUsage, What: "the text has a secret in it", Fix: "write it without"}
	}
	m.Text = memory.Clean(m.Kind, a.Text)
	if m.Text == "" || len(strings.TrimSpace(a.Text)) > memory.MostText {
		return e, &loop.Fault{
			Exit: loop.ExitUsage, What: "the text is empty, or longer than an entry may be", Fix: fmt.Sprintf("write 1 to %d bytes", memory.MostText),
		}
	}
	if m.LoopID, m.Loop, err = s.loopNamed(ctx, a.Loop); err != nil {
		return e, err
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		before := loop.MemoryState("")
		written, err := tx.ChangeMemories(ctx, s.ws.ID, []string{m.Digest()}, func(known []loop.Memory) []loop.Memory {
			now := m
			now.Created = tx.Now().UTC()
			if len(known) > 0 {
				before, now = known[0].State, known[0]
				now.Kind = m.Kind
			}
			return []loop.Memory{judged(now, loop.MemoryActive, by, tx)}
		})
		if err != nil {
			return err
		}
		e = explain(written[0])
		if err := s.link(ctx, tx, by, written[0], before); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, s.claim, e)
	})
	return e, err
}

// judged is an entry after a person's word.
func judged(m loop.Memory, state loop.MemoryState, by loop.Actor, tx *store.Tx) loop.Memory {
	m.State, m.Word = state, loop.MemoryWord{By: by, At: tx.Now().UTC()}
	if state == loop.MemoryActive {
		m.Seen = m.Word.At
	}
	return m
}

func (s *Service) link(ctx context.Context, tx *store.Tx, by loop.Actor, m loop.Memory, before loop.MemoryState) error {
	return tx.LinkBy(ctx, by, s.ws.ID, loop.LinkMemory, "", map[string]any{"memory": m.N, "kind": m.Kind, "text": m.Text, "before": before, "after": m.State})
}

// Approve makes an entry count, whatever it was before.
func (s *Service) Approve(ctx context.Context, by loop.Actor, ref string) (Explained, error) {
	return s.judge(ctx, by, ref, loop.MemoryActive)
}

// Forget makes an entry count no more, until a person brings it back: runs that learn the
// same again change nothing.
func (s *Service) Forget(ctx context.Context, by loop.Actor, ref string) (Explained, error) {
	return s.judge(ctx, by, ref, loop.MemoryForgotten)
}

func (s *Service) judge(ctx context.Context, by loop.Actor, ref string, state loop.MemoryState) (e Explained, err error) {
	n, err := parseNumber(ref)
	if err != nil {
		return e, err
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.LockMemory(ctx, s.ws.ID, n)
		if err != nil {
			return err
		}
		before := m.State
		m = judged(m, state, by, tx)
		tx.SaveMemory(s.ws.ID, m)
		e = explain(m)
		return s.link(ctx, tx, by, m, before)
	})
	return e, orUnknown(ref, err)
}
