package boards

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// ResourceChange is what is set of a resource. A nil field is left as it is.
type ResourceChange struct {
	Title    *string `json:"title,omitempty"`
	Content  *string `json:"content,omitempty"` // of a credential: $NAME
	Category *string `json:"category,omitempty"`
}

// CreateResourceRequest is a resource to create.
type CreateResourceRequest struct {
	Board string `json:"board"` // slug or id
	ResourceChange
}

// ResourceView is one resource, schema pawl.resource/v1.
type ResourceView struct {
	Schema string `json:"schema"`
	board.Resource

	Slug string `json:"board"` // of its board
}

func (c ResourceChange) apply(r *board.Resource) {
	set(&r.Title, c.Title)
	set(&r.Content, c.Content)
	set((*string)(&r.Category), c.Category)
	if r.Category == board.Credential {
		r.Content = strings.TrimSpace(r.Content)
	}
}

// checkResource is the error for a resource that cannot be stored.
func (s *Service) checkResource(r board.Resource) error {
	what := fmt.Sprintf("resource %q", agent.OneLine(r.Title, longestTitle))
	if err := invalid(what, r.Check()); err != nil {
		return err
	}
	return s.checkSecrets(what, map[string]string{"title": r.Title, "content": r.Content})
}

// CreateResource creates a resource.
func (s *Service) CreateResource(ctx context.Context, by loop.Actor, q CreateResourceRequest) (v ResourceView, err error) {
	made := board.Resource{ID: s.NewID(board.PrefixResource), Category: board.General}
	q.apply(&made)
	err = s.update(ctx, func(tx *store.Tx) error {
		b, err := s.findBoard(ctx, &tx.Reader, q.Board)
		if err != nil {
			return err
		}
		made.BoardID, made.CreatedAt = b.value.ID, board.At(tx.Now())
		v = ResourceView{"pawl.resource/v1", made, b.value.Slug}
		if err := s.checkResource(made); err != nil {
			return err
		}
		if err := s.write(ctx, tx, made.Row(), 0); err != nil {
			return err
		}
		if err := s.link(ctx, tx, by, "resource create", made.ID, plain(made)); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, s.claim, v)
	})
	return v, err
}

// SetResource changes a resource.
func (s *Service) SetResource(ctx context.Context, by loop.Actor, id string, c ResourceChange) (v ResourceView, err error) {
	err = s.update(ctx, func(tx *store.Tx) error {
		r, err := read[board.Resource](ctx, &tx.Reader, s.ws.ID, board.SetResources, id)
		if err != nil {
			return absent(err, "resource", id, loop.PawlCommand("resource list"))
		}
		c.apply(&r.value)
		if err := s.checkResource(r.value); err != nil {
			return err
		}
		if err := s.write(ctx, tx, r.value.Row(), r.from.Version); err != nil {
			return err
		}
		if err := s.link(ctx, tx, by, "resource set", id, plain(r.value)); err != nil {
			return err
		}
		if v, err = s.resourceView(ctx, &tx.Reader, id); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, s.claim, v)
	})
	return v, err
}

// ShowResource shows a resource.
func (s *Service) ShowResource(ctx context.Context, id string) (v ResourceView, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		v, err = s.resourceView(ctx, r, id)
		return err
	})
	return v, absent(err, "resource", id, loop.PawlCommand("resource list"))
}

func (s *Service) resourceView(ctx context.Context, r *store.Reader, id string) (ResourceView, error) {
	v := ResourceView{Schema: "pawl.resource/v1"}
	found, err := read[board.Resource](ctx, r, s.ws.ID, board.SetResources, id)
	if err != nil {
		return v, err
	}
	v.Resource = found.value
	b, err := s.findBoard(ctx, r, found.value.BoardID)
	v.Slug = b.value.Slug
	return v, err
}

// ResourceQuery selects resources.
type ResourceQuery struct {
	Board    string `json:"board,omitempty"` // slug or id; empty: of all
	Category string `json:"category,omitempty"`
	Limit    int    `json:"limit"`
}

// ResourceRow is a resource in a list.
type ResourceRow struct {
	board.Resource
	Slug string `json:"board"`
}

// ListResources lists resources, the oldest first.
func (s *Service) ListResources(ctx context.Context, q ResourceQuery) (all []ResourceRow, err error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	query := loop.RowQuery{Set: board.SetResources, Limit: q.Limit}
	if q.Category != "" {
		query.States = []string{q.Category}
		check := board.Resource{ID: "r", BoardID: "b", Title: "t", Content: "$X", Category: board.Category(q.Category)}
		if err := invalid("the list", check.Check()); err != nil {
			return nil, err
		}
	}
	err = s.view(ctx, func(r *store.Reader) error {
		if query.Scope = ""; q.Board != "" {
			b, err := s.findBoard(ctx, r, q.Board)
			if err != nil {
				return err
			}
			query.Scope = b.value.ID
		}
		found, err := list[board.Resource](ctx, r, s.ws.ID, query)
		if err != nil {
			return err
		}
		slugs, err := s.slugs(ctx, r)
		all = nil
		for _, v := range found {
			all = append(all, ResourceRow{v, cmp.Or(slugs[v.BoardID], v.BoardID)})
		}
		return err
	})
	return shape.List(all), err
}
