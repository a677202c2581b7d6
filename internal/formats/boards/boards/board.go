package boards

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// BoardChange is what is set of a board. A nil field is left as it is.
type BoardChange struct {
	Name        *string              `json:"name,omitempty"`
	Slug        *string              `json:"slug,omitempty"`
	Description *string              `json:"description,omitempty"`
	Icon        *string              `json:"icon,omitempty"`
	Color       *string              `json:"color,omitempty"`
	Scope       []string             `json:"scope,omitzero"`
	Verify      *string              `json:"verify,omitempty"`
	Guard       *string              `json:"guard,omitempty"`
	WIP         map[board.Status]int `json:"wip,omitzero"` // of columns; 0 takes the limit of one away
	Waived      *bool                `json:"waived,omitempty"`
}

// BoardView is one board, schema pawl.board/v1.
type BoardView struct {
	Schema string `json:"schema"`
	board.Board
}

func viewBoard(b board.Board) BoardView { return BoardView{Schema: "pawl.board/v1", Board: b} }

func (c BoardChange) apply(b *board.Board) {
	set(&b.Name, c.Name)
	set(&b.Slug, c.Slug)
	set(&b.Description, c.Description)
	set(&b.Icon, c.Icon)
	set(&b.Color, c.Color)
	set(&b.Verify, c.Verify)
	set(&b.Guard, c.Guard)
	set(&b.Waived, c.Waived)
	if c.Scope != nil {
		b.Scope = c.Scope
	}
	for column, most := range c.WIP {
		if b.WIP == nil {
			b.WIP = map[board.Status]int{}
		}
		if b.WIP[column] = most; most == 0 {
			delete(b.WIP, column)
		}
	}
}

// CreateBoard creates a board.
func (s *Service) CreateBoard(ctx context.Context, by loop.Actor, name string, c BoardChange) (BoardView, error) {
	c.Name = &name
	b := board.Board{ID: s.NewID(board.PrefixBoard), Slug: board.SlugOf(name)}
	c.apply(&b)
	err := s.saveBoard(ctx, by, "board create", func(context.Context, *store.Tx) (board.Board, int64, error) { return b, 0, nil }, &b)
	return viewBoard(b), err
}

// SetBoard changes a board. The agents that work on it do so by what it says from their
// next heartbeat on.
func (s *Service) SetBoard(ctx context.Context, by loop.Actor, ref string, c BoardChange) (BoardView, error) {
	var b board.Board
	err := s.saveBoard(ctx, by, "board set", func(ctx context.Context, tx *store.Tx) (board.Board, int64, error) {
		found, err := s.findBoard(ctx, &tx.Reader, ref)
		c.apply(&found.value)
		return found.value, found.from.Version, err
	}, &b)
	return viewBoard(b), err
}

// saveBoard checks and writes a board, and makes the loops of its agents follow it.
func (s *Service) saveBoard(ctx context.Context, by loop.Actor, verb string, get func(context.Context, *store.Tx) (board.Board, int64, error), made *board.Board) error {
	return s.update(ctx, func(tx *store.Tx) error {
		b, version, err := get(ctx, tx)
		if err != nil {
			return err
		}
		if version == 0 {
			b.CreatedAt = board.At(tx.Now())
		}
		if err := s.checkBoard(ctx, &tx.Reader, b); err != nil {
			return err
		}
		if err := s.write(ctx, tx, b.Row(), version); err != nil {
			return err
		}
		*made = b
		if err := s.link(ctx, tx, by, verb, b.ID, plain(b)); err != nil {
			return err
		}
		if err := tx.AnswerCall(ctx, s.claim, viewBoard(b)); err != nil || version == 0 {
			return err
		}
		members, err := s.members(ctx, &tx.Reader)
		if err != nil {
			return err
		}
		return s.register(ctx, tx, by, verb, slices.DeleteFunc(members, func(m board.Member) bool { return !m.On(b.ID) })...)
	})
}

// checkBoard is the error for a board that cannot be stored.
func (s *Service) checkBoard(ctx context.Context, r *store.Reader, b board.Board) error {
	what := fmt.Sprintf("board %q", b.Name)
	found := b.Check()
	for _, glob := range b.Scope {
		if problem := definition.ScopeProblem(glob); problem != "" {
			found = append(found, board.Invalid{Field: "scope", Problem: problem})
		}
	}
	if err := invalid(what, found); err != nil {
		return err
	}
	if err := s.checkSecrets(what, map[string]string{"description": b.Description, "verify": b.Verify, "guard": b.Guard}); err != nil {
		return err
	}
	same, err := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: board.SetBoards, Owner: b.Slug, Limit: 2})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(same, func(r loop.Row) bool { return r.Key != b.ID }) {
		return &loop.Fault{Exit: loop.ExitMissing, What: what + " is refused", Why: fmt.Sprintf("another board has the slug %q", b.Slug), Fix: "choose another name, or write --slug"}
	}
	return nil
}

// BoardRow is a board in a list.
type BoardRow struct {
	board.Board
	Tasks  map[board.Status]int `json:"tasks"` // by column
	Agents int                  `json:"agents"`
}

// ListBoards lists the boards, the oldest first.
func (s *Service) ListBoards(ctx context.Context) (all []BoardRow, err error) {
	err = s.view(ctx, func(r *store.Reader) error {
		boards, err := list[board.Board](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetBoards})
		if err != nil {
			return err
		}
		members, err := s.members(ctx, r)
		if err != nil {
			return err
		}
		counts, err := r.CountRows(ctx, s.ws.ID, board.SetTasks)
		all = nil
		for _, b := range boards {
			row := BoardRow{Board: b, Tasks: map[board.Status]int{}}
			for state, n := range counts[b.ID] {
				row.Tasks[board.Status(state)] = n
			}
			for _, m := range members {
				if m.On(b.ID) {
					row.Agents++
				}
			}
			all = append(all, row)
		}
		return err
	})
	return shape.List(all), err
}

// Shown is a board with its tasks and its agents, schema pawl.board/v1.
type Shown struct {
	Schema string `json:"schema"`
	board.Board

	Columns []Column    `json:"columns"` // from left to right
	Agents  []AgentView `json:"agents"`
}

// Column is one column of a board.
type Column struct {
	Status board.Status `json:"status"`
	Most   int          `json:"wip,omitempty"` // tasks; 0: any number
	Count  int          `json:"count"`
	Tasks  []board.Task `json:"tasks"` // the first of them, in their order: those that are done the newest first
}

// ShowBoard shows a board. Each column has at most so many tasks.
func (s *Service) ShowBoard(ctx context.Context, ref string, most int) (v Shown, err error) {
	if err := checkLimit(most); err != nil {
		return v, err
	}
	v.Schema = "pawl.board/v1"
	found := false
	err = s.view(ctx, func(r *store.Reader) error {
		b, err := s.findBoard(ctx, r, ref)
		if err != nil {
			return err
		}
		v.Board, v.Columns, found = b.value, nil, true
		tasks, err := list[board.Task](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetTasks, Scope: b.value.ID})
		if err != nil {
			return err
		}
		for _, status := range board.Statuses() {
			c := Column{Status: status, Most: b.value.WIP[status], Tasks: []board.Task{}}
			for _, t := range tasks {
				if t.Status == status {
					c.Tasks = append(c.Tasks, t)
				}
			}
			sortColumn(c.Tasks, status)
			c.Count = len(c.Tasks)
			c.Tasks = c.Tasks[:min(len(c.Tasks), most)]
			v.Columns = append(v.Columns, c)
		}
		all, err := s.agentViews(ctx, r)
		v.Agents = shape.List(slices.DeleteFunc(all, func(a AgentView) bool { return !a.On(b.value.ID) }))
		return err
	})
	if err == nil && !found {
		err = s.noBoard(ref)
	}
	return v, err
}

func sortColumn(tasks []board.Task, status board.Status) {
	slices.SortFunc(tasks, func(a, b board.Task) int {
		if status == board.Done || status == board.Failed {
			return cmp.Or(cmp.Compare(b.CompletedAt, a.CompletedAt), strings.Compare(a.ID, b.ID))
		}
		return cmp.Or(
			cmp.Compare(slices.Index(board.Priorities(), b.Priority), slices.Index(board.Priorities(), a.Priority)), cmp.Compare(a.Order, b.Order), cmp.Compare(a.CreatedAt, b.CreatedAt), strings.Compare(a.ID, b.ID),
		)
	})
}

// Page selects entries of what happened, the newest first.
type Page struct {
	Board string `json:"board"`           // slug or id
	Agent string `json:"agent,omitempty"` // handle; empty: of all
	Limit int    `json:"limit"`
}

// Activity lists what happened on a board, the newest first.
func (s *Service) Activity(ctx context.Context, q Page) (all []board.Activity, err error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	err = s.viewBoard(ctx, q.Board, func(r *store.Reader, b board.Board) (err error) {
		all, err = list[board.Activity](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetActivity, Scope: b.ID, Owner: handleOf(q.Agent), Newest: true, Limit: q.Limit})
		return err
	})
	return shape.List(all), err
}

// Errors lists what went wrong in heartbeats of the agents of a board, the newest first.
func (s *Service) Errors(ctx context.Context, q Page) (all []board.Error, err error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	err = s.viewBoard(ctx, q.Board, func(r *store.Reader, b board.Board) error {
		members, err := s.members(ctx, r)
		if err != nil {
			return err
		}
		all = nil
		for _, m := range members {
			if !m.On(b.ID) || q.Agent != "" && m.Handle != handleOf(q.Agent) {
				continue
			}
			of, err := list[board.Error](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetErrors, Owner: m.Handle, Newest: true, Limit: q.Limit})
			if err != nil {
				return err
			}
			all = append(all, of...)
		}
		slices.SortFunc(all, func(a, b board.Error) int {
			return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), strings.Compare(a.ID, b.ID))
		})
		all = all[:min(len(all), q.Limit)]
		return nil
	})
	return shape.List(all), err
}

// viewBoard reads what belongs to a board.
func (s *Service) viewBoard(ctx context.Context, ref string, fn func(*store.Reader, board.Board) error) error {
	if s.ws.Store == nil {
		return s.noBoard(ref)
	}
	return s.ws.Store.View(ctx, func(r *store.Reader) error {
		b, err := s.findBoard(ctx, r, ref)
		if err != nil {
			return err
		}
		return fn(r, b.value)
	})
}

// parseTime reads a time that a person writes: a day, or a time of RFC 3339.
func parseTime(text string) (board.Millis, error) {
	if text == "" {
		return 0, nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			return board.At(t), nil
		}
	}
	return 0, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%q is not a time", text), Fix: "write a day like 2026-05-04, or a time like 2026-05-04T10:00:00Z"}
}
