package orgs

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Shown is an organisation and how its agents stand, schema pawl.org/v1.
type Shown struct {
	Schema       string  `json:"schema"`
	Name         string  `json:"name,omitempty"`
	Organisation string  `json:"organisation,omitempty"` // the file that says who is who
	Owner        string  `json:"owner,omitempty"`
	Chief        string  `json:"chief,omitempty"`
	Checks       int     `json:"checks"`
	Passed       int     `json:"passed"`
	Agents       []Agent `json:"agents"` // the chief, then each after whom it reports to
	Told         []Told  `json:"told"`   // what agents have told people, the newest first, at most 20
}

// Told is what an agent has told a person.
type Told struct {
	To   string    `json:"to"`
	From string    `json:"from"` // the agent
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// mostTold is how many messages to people are shown.
const mostTold = 20

// Agent is how one agent stands.
type Agent struct {
	ID         string       `json:"id"`
	Name       string       `json:"name,omitempty"`
	Role       string       `json:"role,omitempty"`
	Tier       int          `json:"tier"` // 1 or 2
	Lead       bool         `json:"lead,omitempty"`
	Department string       `json:"department,omitempty"`
	ReportsTo  string       `json:"reports_to"`         // id; empty: the owner
	Chain      []string     `json:"chain"`              // of superiors, the nearest first
	Interval   string       `json:"interval,omitempty"` // empty: the definition cannot be read
	Enabled    bool         `json:"enabled"`
	Health     Health       `json:"health"`
	State      string       `json:"state"` // never_run, idle, queued, running, dead, lost, halted, disabled, broken
	Halted     string       `json:"halted,omitempty"`
	Problem    string       `json:"problem,omitempty"`
	LastN      int64        `json:"last_n"`
	LastRun    *time.Time   `json:"last_run,omitempty"`
	Outcome    loop.Outcome `json:"outcome,omitempty"` // of the last run: quiet is a cycle without work, escalated one that was handed on
	Reason     loop.Reason  `json:"reason,omitempty"`
	Approvals  []string     `json:"approvals,omitempty"`
	Next       *time.Time   `json:"next,omitempty"`
}

// Show says how the organisation and each of its agents stand.
func (s *Service) Show(ctx context.Context) (Shown, error) {
	v := Shown{Schema: "pawl.org/v1", Agents: []Agent{}, Told: []Told{}}
	checked, err := s.Check(ctx)
	if err != nil {
		return v, err
	}
	o := orgdef.ReadOrganisation(s.ws.Root)
	v.Name, v.Organisation, v.Owner, v.Chief, v.Checks, v.Passed = o.Name, o.File, o.Owner, o.Chief, checked.Checks, checked.Passed
	var read []orgdef.Agent
	for _, h := range checked.Agents {
		agent, err := orgdef.ReadAgent(s.ws.Root, h.ID)
		if err != nil {
			agent = orgdef.Unread(h.ID)
		}
		read = append(read, agent)
	}
	team, _ := o.Team(read)
	entries, err := s.ws.Loops.List(ctx, catalog.Page{})
	if err != nil {
		return v, err
	}
	entries = slices.DeleteFunc(entries, func(e catalog.Entry) bool { return e.Protocol != loop.ProtocolTasks })
	list, err := s.ws.WithRuns(ctx, entries)
	if err != nil {
		return v, err
	}
	at := map[string]lookup.Loop{}
	for _, l := range list {
		at[l.Name] = l
	}
	for _, h := range checked.Agents {
		p, _ := team.Find(h.ID)
		a := s.describe(at[h.ID])
		a.ID, a.Name, a.Role, a.Tier, a.Lead, a.Department, a.Health = h.ID, p.Name, p.Role, p.Tier, p.Lead, p.Department, h
		a.ReportsTo, a.Chain = team.Superior(h.ID), append([]string{}, team.Chain(h.ID)...)
		v.Agents = append(v.Agents, a)
	}
	slices.SortStableFunc(v.Agents, func(a, b Agent) int { return slices.Compare(wayDown(a), wayDown(b)) })
	err = s.ws.View(ctx, func(r *store.Reader) error {
		list, err := r.MessagesTold(ctx, s.ws.ID, mostTold)
		for _, d := range list {
			v.Told = append(v.Told, Told{d.To, d.From, d.Text, d.Sent})
		}
		return err
	})
	if lookup.Absent(err) {
		err = nil
	}
	return v, err
}

// wayDown orders agents as a tree: each is below its superior.
func wayDown(a Agent) []string {
	way := slices.Clone(a.Chain)
	slices.Reverse(way)
	return append(way, a.ID)
}

// describe is what the definition and the runs of an agent say.
func (s *Service) describe(l lookup.Loop) Agent {
	a := Agent{State: "never_run", LastN: l.Row.LastN, Approvals: l.Open, Halted: s.ws.PausedBy(l).String()}
	if d := l.Usable(); d.Tasks != nil {
		a.Interval, a.Enabled = d.Cadence, d.Tasks.Enabled
	}
	if run := l.Last; run != nil {
		a.State, a.LastRun, a.Outcome, a.Reason = s.ws.Liveness(*run), shape.Time(run.Started), run.Outcome, run.Reason
	}
	rests := a.State == "idle" || a.State == "never_run"
	switch {
	case l.Problem != nil:
		a.State, a.Problem = "broken", l.Problem.Error()
	case rests && a.Halted != "":
		a.State = "halted"
	case rests && !a.Enabled:
		a.State = "disabled"
	}
	if l.Problem == nil && l.Row.Registered.Broken == "" {
		a.Next = shape.Time(l.Row.Registered.Due)
	}
	return a
}
