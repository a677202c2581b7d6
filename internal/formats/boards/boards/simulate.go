package boards

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boardsim"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Simulated is what a simulation of a board begins with.
type Simulated struct {
	boardsim.Start

	Loops []string // names of the loops of the agents that work on the board
}

// mostCopied bounds the rows of a set, and the messages, that a simulation begins with.
const (
	mostCopied   = 20_000
	mostComments = 50 // of a task
)

// Simulate reads what a simulation of the board begins with. The agents that work on it have
// no other board in it.
func (s *Service) Simulate(ctx context.Context, ref string) (from Simulated, err error) {
	from.Taken = map[string]bool{}
	err = s.viewBoard(ctx, ref, func(r *store.Reader, b board.Board) error {
		members, err := s.members(ctx, r)
		if err != nil {
			return err
		}
		from.Rows = append(from.Rows, b.Row())
		for _, m := range members {
			if !m.On(b.ID) {
				continue
			}
			if m.BoardIDs = []string{b.ID}; !m.Dormant {
				from.Loops = append(from.Loops, board.LoopName(m.Handle))
			}
			from.Rows = append(from.Rows, m.Row())
		}
		for _, q := range []loop.RowQuery{
			{Set: board.SetTasks, Scope: b.ID}, {Set: board.SetResources, Scope: b.ID}, {Set: board.SetMinds}, {Set: board.SetSubscriptions, States: []string{board.SubscriptionWaits}},
		} {
			q.Limit = mostCopied
			rows, err := r.Rows(ctx, s.ws.ID, q)
			if err != nil {
				return err
			}
			from.Rows = append(from.Rows, rows...)
		}
		var tasks []string
		for i := range from.Rows {
			if from.Rows[i].Version = 1; from.Rows[i].Set == board.SetTasks {
				tasks = append(tasks, from.Rows[i].Key)
			}
		}
		for _, id := range tasks {
			comments, err := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: board.SetComments, Scope: id, Newest: true, Limit: mostComments})
			if err != nil {
				return err
			}
			from.Rows = append(from.Rows, comments...)
		}
		messages, err := r.Messages(ctx, s.ws.ID, store.MessageQuery{Limit: mostCopied})
		for _, m := range slices.Backward(messages) {
			if !strings.HasPrefix(m.To, "@") {
				continue // Of other loops, or to people.
			}
			from.Messages = append(from.Messages, m.Delivery)
			from.Taken[m.Key] = m.Taken
		}
		return err
	})
	return from, err
}
