package specs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// View is a spec with its trace, schema pawl.spec/v1.
type View struct {
	Schema string `json:"schema"`
	loopspec.Run
	Family

	Revision    int64              `json:"revision"`       // of the document, from 1
	Used        int                `json:"iterationsUsed"` // of its budget: those of Iterations since its last accepted result, as TokensUsed
	Approval    string             `json:"approval,omitempty"`
	Feedback    string             `json:"feedback,omitempty"`    // what the next iteration is told of the last one
	NotEnforced []string           `json:"notEnforced,omitempty"` // guardrails that are advice
	Claims      []string           `json:"claims,omitempty"`      // what agents say that reviewers missed
	Notes       []loopspec.Finding `json:"notes,omitempty"`       // what its author should know
}

// Row is a spec in a list, schema pawl.specs/v1.
type Row struct {
	ID         string          `json:"id"`
	Goal       string          `json:"goal"`
	Agent      string          `json:"agentId"`
	Status     loopspec.Status `json:"status"`
	Iterations int             `json:"iterations"`
	TokensUsed int64           `json:"tokensUsed"`
	Runs       int64           `json:"runs"`
	Approval   string          `json:"approval,omitempty"`
	ParentID   string          `json:"parentId,omitempty"`
	CreatedAt  time.Time       `json:"createdAt"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	Changed    time.Time       `json:"changed"` // the spec itself: a page of a list ends with it
}

// MostIterations is how many iterations a view has at most, the newest.
const MostIterations = 500

// Get returns a spec with what became of it.
func (s *Service) Get(ctx context.Context, id string) (v View, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		v, err = s.viewIn(ctx, r, id)
		return err
	})
	return v, orNoSpec(err, id)
}

func (s *Service) viewIn(ctx context.Context, r *store.Reader, id string) (View, error) {
	row, spec, err := s.findIn(ctx, r, id)
	if err != nil {
		return View{}, err
	}
	its, err := r.NewestIterations(ctx, row.LoopID, MostIterations)
	if err != nil {
		return View{}, err
	}
	family, err := s.family(ctx, r, row)
	if err != nil {
		return View{}, err
	}
	_, terms := spec.Definition(row.ID)
	v := View{
		Schema: "pawl.spec/v1", Family: family, Revision: row.Revision, Used: row.Step.Attempts, Approval: approvalOf(row), Feedback: row.Step.Feedback, NotEnforced: terms.Notes,
		Run: loopspec.Run{
			Spec: spec, Status: lookup.SpecStatus(row), TokensUsed: row.Step.Tokens, Iterations: []loopspec.Iteration{}, UpdatedAt: later(row.Updated, row.Step.Updated).UnixMilli(),
		},
	}
	if !row.Step.Begun.IsZero() {
		v.StartedAt = row.Step.Begun.UnixMilli()
	}
	for _, it := range slices.Backward(its) {
		if it.Verdict != loop.VerdictIntended {
			v.Iterations = append(v.Iterations, iterationOf(it, len(v.Iterations)+1))
		}
	}
	rubric, err := rubricOf(row, spec)
	if err != nil {
		return View{}, err
	}
	if rubric != nil {
		v.Rubric, v.Claims = &rubric.Rubric, rubric.Claims
	}
	return v, nil
}

// iterationOf is an iteration as the format has it. One that was interrupted has failed:
// nothing of it counts.
func iterationOf(it loop.Iteration, n int) loopspec.Iteration {
	v := loopspec.Iteration{
		N: n, Sensed: it.Sensed, Decided: it.Decided, Acted: it.Acted, Feedback: it.Feedback, Verdict: it.Verdict, Tokens: it.Usage.ChargedTokens(), TS: it.Ended.UnixMilli(),
	}
	if it.Verdict != loop.VerdictPass && it.Verdict != loop.VerdictPending {
		v.Verdict = loop.VerdictFail
	}
	for _, g := range it.Gates {
		if v.Gate == "" && (it.Verdict == loop.VerdictPending && g.Pending || it.Verdict == loop.VerdictFail && !g.Pass && !g.Pending) {
			v.Gate = g.Name
		}
	}
	return v
}

// Query selects a page of the specs.
type Query struct {
	Changed time.Time `json:"changed,omitzero"` // only specs that changed before this one; the zero time: the beginning
	After   string    `json:"after,omitempty"`  // id of the last spec of the page before
	Limit   int       `json:"limit,omitempty"`  // 0: all
}

// List returns the specs of the workspace, the newest change first.
func (s *Service) List(ctx context.Context, q Query) ([]Row, error) {
	var rows []store.Spec
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		rows, err = r.Specs(ctx, s.ws.ID, q.Changed, q.After, cmp.Or(q.Limit, 1<<30))
		return err
	})
	if err != nil && !lookup.Absent(err) {
		return nil, err
	}
	list := make([]Row, len(rows))
	for i, row := range rows {
		list[i] = Row{
			ID: row.ID, Goal: row.Goal, Agent: row.Agent, Status: lookup.SpecStatus(row), Iterations: row.Step.Attempts, TokensUsed: row.Step.Tokens, Runs: row.Runs,
			Approval: approvalOf(row), ParentID: row.Parent, CreatedAt: row.Created, UpdatedAt: later(row.Updated, row.Step.Updated),
			Changed: row.Updated,
		}
	}
	return shape.List(list), nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// approvalOf is the approval that a spec waits for; empty: it waits for none.
func approvalOf(row store.Spec) string {
	if row.Step.State != loop.StepWaiting && row.Step.State != loop.StepEscalated {
		return ""
	}
	return row.Step.WaitsFor
}

// rubricOf is what reviewers judge by. Before the first judgement there is nothing.
func rubricOf(row store.Spec, spec loopspec.Spec) (*judged, error) {
	var r judged
	switch {
	case row.Rubric != "":
		if err := json.Unmarshal([]byte(row.Rubric), &r); err != nil {
			return nil, err
		}
		return &r, nil
	case row.Runs == 0:
		return nil, nil
	}
	r.Rubric = seedRubric(row, spec)
	return &r, nil
}

// judged is what is stored of a rubric: what reviewers judge by, and what agents say that they
// missed, which is told to them and is no criterion.
type judged struct {
	loopspec.Rubric
	Claims []string `json:"claims,omitempty"`
}

// mostClaims bounds the claims of a rubric: the oldest give way.
const mostClaims = 20

// flag adds what somebody says was missed.
func (j judged) flag(text string, by loop.Role, now time.Time) judged {
	if by == loop.RoleHuman {
		j.Rubric = j.Refine(text, now)
		return j
	}
	if text = strings.TrimSpace(text); !slices.Contains(j.Claims, text) {
		j.Claims = append(slices.Clone(j.Claims), text)
		j.Claims, j.UpdatedAt = j.Claims[max(0, len(j.Claims)-mostClaims):], now.UnixMilli()
	}
	return j
}

// seedRubric is the rubric before anything was flagged. Its id follows from that of the
// spec, so that each reader sees the same.
func seedRubric(row store.Spec, spec loopspec.Spec) loopspec.Rubric {
	sum := sha256.Sum256([]byte("rubric\x00" + row.ID))
	return loopspec.SeedRubric(spec.Gates, loopspec.RubricID([loopspec.IDBytes]byte(sum[:])), row.Created)
}
