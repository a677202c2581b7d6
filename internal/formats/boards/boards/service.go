// Package boards carries out the verbs for heartbeat boards: makes, changes, lists and shows
// boards, tasks, messages, resources and the agents that work on them, says who takes what
// and why nobody does, and takes over and hands out whole boards.
//
// What an agent of a board does in a heartbeat is its loop's; this package makes that loop
// and starts none. It decides by the rules of package board alone.
package boards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

// Deps are what a Service needs besides its workspace.
type Deps struct {
	Roster roster.Roster
	NewID  func(prefix string) string
	Hide   func(string) string // takes secrets out of a text
}

// Service carries out the verbs for the boards of one workspace.
type Service struct {
	Deps

	ws    *lookup.Workspace
	claim store.Claim // of the call that is carried out; zero: it has no key
}

// New makes the service.
func New(ws *lookup.Workspace, d Deps) *Service { return &Service{Deps: d, ws: ws} }

// Once returns the service that carries out one call: what it does and its answer are kept in
// one transaction.
func (s *Service) Once(c store.Claim) *Service {
	once := *s
	once.claim = c
	return &once
}

// everything is no limit for a list of rows.
const everything = math.MaxInt32

// mostListed bounds a page.
const mostListed = 1000

// checkLimit judges how many entries of a list are asked for.
func checkLimit(limit int) error {
	if limit < 1 || limit > mostListed {
		return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid limit %d", limit), Fix: fmt.Sprintf("write a limit of 1 to %d", mostListed)}
	}
	return nil
}

// view reads from the store; without a store there is nothing to read, and no error.
func (s *Service) view(ctx context.Context, fn func(*store.Reader) error) error {
	if s.ws.Store == nil {
		return nil
	}
	return s.ws.Store.View(ctx, fn)
}

// mostTries is how often a change is made again from what somebody else has changed
// meanwhile.
const mostTries = 5

// update writes to the store. Fn reads what it changes, and is called again if somebody
// else was first.
func (s *Service) update(ctx context.Context, fn func(*store.Tx) error) (err error) {
	for range mostTries {
		if err = s.ws.Store.Update(ctx, fn); !errors.Is(err, loop.ErrRowChanged) {
			return err
		}
	}
	return &loop.Fault{Exit: loop.ExitHeld, What: "the board changes too fast", Why: "others wrote first each time", Fix: "try again", Err: err}
}

// list reads what rows hold.
func list[T any](ctx context.Context, r *store.Reader, workspace string, q loop.RowQuery) ([]T, error) {
	if q.Limit == 0 {
		q.Limit = everything
	}
	rows, err := r.Rows(ctx, workspace, q)
	if err != nil {
		return nil, err
	}
	return board.FromRows[T](rows)
}

// row is what a row holds, with what its change needs.
type row[T any] struct {
	value T
	from  loop.Row
}

// read reads one row, or loop.ErrNotFound.
func read[T any](ctx context.Context, r *store.Reader, workspace, set, key string) (row[T], error) {
	from, err := r.Row(ctx, workspace, set, key)
	if err != nil {
		return row[T]{}, err
	}
	v, err := board.FromRow[T](from)
	return row[T]{v, from}, err
}

// write writes a row, from the version of which it was made: 0 for a new one.
func (s *Service) write(ctx context.Context, tx *store.Tx, to loop.Row, version int64) error {
	to.Version = version
	return tx.WriteRow(ctx, s.ws.ID, to)
}

// link records a change in the audit chain of the workspace.
func (s *Service) link(ctx context.Context, tx *store.Tx, by loop.Actor, verb, key string, body any) error {
	said := map[string]any{"verb": verb, "key": key}
	if body != nil {
		said["body"] = body
	}
	return tx.LinkBy(ctx, by, s.ws.ID, loop.LinkBoard, "", said)
}

// note records an activity of a board.
func (s *Service) note(ctx context.Context, tx *store.Tx, a board.Activity) error {
	a.ID, a.CreatedAt = s.NewID(board.PrefixActivity), board.At(tx.Now())
	return s.write(ctx, tx, a.Row(), 0)
}

// invalid is the error for something that cannot be stored; nil if nothing is wrong.
func invalid(what string, found []board.Invalid) error {
	if len(found) == 0 {
		return nil
	}
	var words []string
	for _, f := range found {
		if !slices.Contains(words, f.String()) {
			words = append(words, f.String())
		}
	}
	return &loop.Fault{Exit: loop.ExitUsage, What: what + " is refused", Why: strings.Join(words, "; "), Fix: "change what is named; nothing was written"}
}

// checkSecrets is the error for texts that have a secret in them, by their fields.
func (s *Service) checkSecrets(what string, texts map[string]string) error {
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		if s.Hide != nil && s.Hide(texts[field]) != texts[field] {
			return &loop.Fault{
				Exit: loop.ExitUsage, What: what + " is refused", Why: field + ": it has a secret in it", Fix: "write it without; a resource of category credential names a variable of the environment, such as $API_TOKEN",
			}
		}
	}
	return nil
}

// findBoard finds a board by its id or its slug.
func (s *Service) findBoard(ctx context.Context, r *store.Reader, ref string) (row[board.Board], error) {
	found, err := read[board.Board](ctx, r, s.ws.ID, board.SetBoards, ref)
	if !lookup.Absent(err) {
		return found, err
	}
	rows, err := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: board.SetBoards, Owner: ref, Limit: 1})
	if err != nil {
		return found, err
	}
	if len(rows) == 0 || ref == "" {
		return found, s.noBoard(ref)
	}
	b, err := board.FromRow[board.Board](rows[0])
	return row[board.Board]{b, rows[0]}, err
}

func (s *Service) noBoard(ref string) error {
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no board %q", ref), Err: loop.ErrNotFound, Fix: "{1} has them, {2} makes one",
		Actions: []loop.Command{loop.PawlCommand("board list"), loop.PawlCommand("board create", "NAME").WithFlag("scope", "src/**").WithBlanks("NAME", "src/**")},
	}
}

// absent is the error for something that is not there, if that is what err says.
func absent(err error, what, ref string, lists loop.Command) error {
	if !lookup.Absent(err) {
		return err
	}
	return &loop.Fault{Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no %s %q", what, ref), Err: loop.ErrNotFound, Fix: "{1} has them", Actions: []loop.Command{lists}}
}

// members reads all agents of the workspace's boards, by handle.
func (s *Service) members(ctx context.Context, r *store.Reader) ([]board.Member, error) {
	all, err := list[board.Member](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetMembers})
	slices.SortFunc(all, func(a, b board.Member) int { return strings.Compare(a.Handle, b.Handle) })
	return all, err
}

// minds reads what heartbeats have written of agents, by handle.
func (s *Service) minds(ctx context.Context, r *store.Reader) (map[string]board.Mind, error) {
	rows, err := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: board.SetMinds, Limit: everything})
	all := map[string]board.Mind{}
	for _, row := range rows {
		mind, err := board.FromRow[board.Mind](row)
		if err != nil {
			return nil, err
		}
		if row.RunID != "" {
			mind.LastHeartbeat = board.At(s.ws.Now()) // It is having one, however long that takes.
		}
		all[row.Key] = mind
	}
	return all, err
}

// slugs are those of boards, by id.
func (s *Service) slugs(ctx context.Context, r *store.Reader) (map[string]string, error) {
	all, err := list[board.Board](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetBoards})
	of := map[string]string{}
	for _, b := range all {
		of[b.ID] = b.Slug
	}
	return of, err
}

// set assigns what is said; nil leaves the value as it is.
func set[T any](into *T, said *T) {
	if said != nil {
		*into = *said
	}
}

// plain is a value as it is in JSON, for the audit chain.
func plain(v any) any {
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return json.RawMessage(body)
}

// handleOf is a handle without its @.
func handleOf(text string) string { return strings.TrimPrefix(strings.TrimSpace(text), "@") }
