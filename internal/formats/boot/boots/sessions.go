package boots

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Session is a run as its commit tells of it, schema pawl.boot-log/v1 in a list.
type Session struct {
	Commit  string    `json:"commit"`
	When    time.Time `json:"when"`
	Brief   string    `json:"brief"`
	State   string    `json:"state"` // what changed in STATE.json
	Tasks   string    `json:"tasks"` // what changed in TODO.json
	Summary string    `json:"summary"`
}

// LogRequest asks for sessions.
type LogRequest struct {
	Limit int `json:"limit,omitempty"` // 0: 20
}

const usualSessions = 20

// Log lists the newest sessions. They are read from the commits that changed the state, so
// that a clone knows them, too.
func (s *Service) Log(ctx context.Context, r LogRequest) ([]Session, error) {
	link, err := s.readLink()
	if err != nil {
		return nil, err
	}
	m, err := s.openMemory(ctx, link)
	if err != nil {
		return nil, err
	}
	if r.Limit <= 0 {
		r.Limit = usualSessions
	}
	list, err := m.sessions(ctx, r.Limit)
	return shape.List(list), err
}

func (m memory) lastSession(ctx context.Context) (*Session, error) {
	list, err := m.sessions(ctx, 1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// sessions returns the newest sessions. Commits of people are among those of the file, so
// that more of them are asked for until there are enough.
func (m memory) sessions(ctx context.Context, limit int) (list []Session, err error) {
	if m.rev == "" {
		return nil, nil
	}
	for most := limit + 10; ; most *= 4 {
		commits, err := m.ws.Repo.History(ctx, m.rev, "", m.link.State, most)
		if err != nil {
			return nil, err
		}
		list = list[:0]
		for _, c := range commits {
			if told, ours := bootstate.ReadMessage(c.Message); ours && len(list) < limit {
				list = append(list, Session{c.ID, c.When, told.Brief, told.State, told.Tasks, told.Summary})
			}
		}
		if len(list) == limit || len(commits) < most {
			return list, nil
		}
	}
}
