package boards

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/people"
	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// AgentChange is what is set of an agent of boards. A nil field is left as it is.
type AgentChange struct {
	Name         *string  `json:"name,omitempty"`
	Role         *string  `json:"role,omitempty"`
	Layer        *string  `json:"layer,omitempty"`
	Lead         *string  `json:"lead,omitempty"`     // handle of whom it reports to; empty: what boards and layers say
	Leads        *string  `json:"leads,omitempty"`    // slug or id of the board that it leads; empty: none
	Interval     *string  `json:"interval,omitempty"` // between heartbeats; empty: 20m
	Dormant      *bool    `json:"dormant,omitempty"`
	Boards       []string `json:"boards,omitzero"` // slugs or ids
	Skills       []string `json:"skills,omitzero"`
	Capabilities []string `json:"capabilities,omitzero"` // each the first words of a command

	Driver *roster.Change `json:"driver,omitempty"` // of the entry of the roster that has the handle; nil: it is left as it is
}

// AgentView is an agent of boards as people see it, schema pawl.member/v1.
type AgentView struct {
	Schema string `json:"schema"`
	board.Member
	board.Mind

	Slugs  []string       `json:"boards"`          // of its boards
	Status board.Presence `json:"status"`          // with offline for one whose heartbeat is old
	Agent  string         `json:"agent,omitempty"` // its driver or entry of the roster; empty: none is named
	Chain  []string       `json:"chain"`           // whom it turns to, the nearest first
}

// CreateAgent makes an agent of boards, and the loop that is its heartbeat.
func (s *Service) CreateAgent(ctx context.Context, by loop.Actor, handle string, c AgentChange) (AgentView, error) {
	name := handleOf(handle)
	m := board.Member{Handle: name, Name: name, Layer: board.Specialist}
	return s.saveAgent(ctx, by, "agent create", m, c)
}

// SetAgent changes an agent of boards, and the loop that is its heartbeat.
func (s *Service) SetAgent(ctx context.Context, by loop.Actor, handle string, c AgentChange) (AgentView, error) {
	return s.saveAgent(ctx, by, "agent set", board.Member{Handle: handleOf(handle)}, c)
}

// saveAgent checks everything before it writes anything: first the entry of the roster,
// which belongs to no workspace, and then the rest in one transaction.
func (s *Service) saveAgent(ctx context.Context, by loop.Actor, verb string, m board.Member, c AgentChange) (v AgentView, err error) {
	creates := m.Layer != ""
	err = s.ws.Store.View(ctx, func(r *store.Reader) error {
		_, _, err := s.changed(ctx, r, creates, m, c)
		return err
	})
	if err == nil && c.Driver != nil {
		err = s.saveEntry(ctx, m.Handle, *c.Driver)
	}
	if err != nil {
		return AgentView{}, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		member, version, err := s.changed(ctx, &tx.Reader, creates, m, c)
		if err != nil {
			return err
		}
		if version == 0 {
			member.CreatedAt = board.At(tx.Now())
		}
		if err := s.write(ctx, tx, member.Row(), version); err != nil {
			return err
		}
		if err := s.register(ctx, tx, by, verb, member); err != nil {
			return err
		}
		if err := s.link(ctx, tx, by, verb, "@"+m.Handle, plain(member)); err != nil {
			return err
		}
		if v, err = s.agentView(ctx, &tx.Reader, m.Handle); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, s.claim, v)
	})
	return v, err
}

// saveEntry makes or changes the entry of the roster that has the handle.
func (s *Service) saveEntry(ctx context.Context, handle string, c roster.Change) error {
	_, err := s.Roster.Set(ctx, handle, c)
	if lookup.Absent(err) {
		_, err = s.Roster.Create(ctx, handle, c)
	}
	return err
}

// changed is an agent after a change, and the version of its row.
func (s *Service) changed(ctx context.Context, r *store.Reader, creates bool, m board.Member, c AgentChange) (board.Member, int64, error) {
	what := "agent @" + m.Handle
	there, err := read[board.Member](ctx, r, s.ws.ID, board.SetMembers, m.Handle)
	switch {
	case err == nil && creates:
		return m, 0, &loop.Fault{
			Exit: loop.ExitMissing, What: what, Why: "another agent of the boards has this handle", Fix: "choose another handle, or change that agent: {1}",
			Actions: []loop.Command{loop.PawlCommand("agent set", "@"+m.Handle)},
		}
	case err == nil:
		m = there.value
	case !lookup.Absent(err):
		return m, 0, err
	case !creates:
		return m, 0, absent(err, "agent of a board", "@"+m.Handle, loop.PawlCommand("agent list"))
	}
	set(&m.Name, c.Name)
	set(&m.Role, c.Role)
	set((*string)(&m.Layer), c.Layer)
	set(&m.Interval, c.Interval)
	set(&m.Dormant, c.Dormant)
	m.Role = cmp.Or(m.Role, string(m.Layer))
	if c.Lead != nil {
		m.Lead = handleOf(*c.Lead)
	}
	if c.Skills != nil {
		m.Skills = c.Skills
	}
	m.Skills = shape.List(m.Skills)
	if err := s.setBoards(ctx, r, &m, c); err != nil {
		return m, 0, err
	}
	found := m.Check()
	if c.Capabilities != nil {
		m.Capabilities = nil
		for _, line := range c.Capabilities {
			p, err := board.ParsePrefix(line)
			if err != nil {
				found = append(found, board.Invalid{Field: "capabilities", Problem: err.Error()})
			}
			m.Capabilities = append(m.Capabilities, p)
		}
	}
	if err := invalid(what, found); err != nil {
		return m, 0, err
	}
	return m, there.from.Version, s.checkPlace(ctx, r, m)
}

// setBoards sets the boards of an agent by what people call them.
func (s *Service) setBoards(ctx context.Context, r *store.Reader, m *board.Member, c AgentChange) error {
	if c.Boards != nil {
		m.BoardIDs = nil
		for _, ref := range c.Boards {
			b, err := s.findBoard(ctx, r, ref)
			if err != nil {
				return err
			}
			if !m.On(b.value.ID) {
				m.BoardIDs = append(m.BoardIDs, b.value.ID)
			}
		}
	}
	if c.Leads == nil {
		return nil
	}
	if m.LeadBoardID = ""; *c.Leads == "" {
		return nil
	}
	b, err := s.findBoard(ctx, r, *c.Leads)
	if m.LeadBoardID = b.value.ID; err == nil && !m.On(b.value.ID) {
		m.BoardIDs = append(m.BoardIDs, b.value.ID)
	}
	return err
}

// checkPlace is the error for an agent whose place among the others cannot be: its lead is
// not an agent, or reports go around in a circle.
func (s *Service) checkPlace(ctx context.Context, r *store.Reader, m board.Member) error {
	all, err := s.members(ctx, r)
	if err != nil {
		return err
	}
	all = append(slices.DeleteFunc(all, func(o board.Member) bool { return o.Handle == m.Handle }), m)
	for _, p := range board.Team(all).Check() {
		if p.Kind == people.ProblemCycle || p.Kind == people.ProblemUnknown && p.Person == m.Handle {
			return &loop.Fault{Exit: loop.ExitUsage, What: "agent @" + m.Handle + " is refused", Why: "lead: " + p.Message, Fix: "write --lead with the handle of an agent of the boards that does not report to this one"}
		}
	}
	return nil
}

// register makes the loops of agents run and fire as they and their boards say.
func (s *Service) register(ctx context.Context, tx *store.Tx, by loop.Actor, verb string, members ...board.Member) error {
	boards, err := list[board.Board](ctx, &tx.Reader, s.ws.ID, loop.RowQuery{Set: board.SetBoards})
	if err != nil {
		return err
	}
	for _, m := range members {
		var entry *loop.Agent
		switch a, err := tx.Agent(ctx, m.Handle); {
		case err == nil:
			entry = &a
		case !lookup.Absent(err):
			return err
		case s.isDriver(m.Handle):
			entry = &loop.Agent{Handle: m.Handle, Driver: m.Handle}
		}
		if err := s.registerLoop(ctx, tx, by, verb, DefinitionOf(m, boards, entry)); err != nil {
			return err
		}
	}
	return nil
}

// isDriver reports whether a driver has the name, which is an entry of the roster by itself.
func (s *Service) isDriver(name string) bool {
	return slices.ContainsFunc(s.Roster.Profiles, func(p agent.Profile) bool { return p.Name == name })
}

func (s *Service) registerLoop(ctx context.Context, tx *store.Tx, by loop.Actor, verb string, d loop.Definition) error {
	id := catalog.LoopID(s.ws.ID, loop.ProtocolBoard, d.Name)
	if err := tx.AddLoop(ctx, s.ws.Workspace, loop.Loop{ID: id, WorkspaceID: s.ws.ID, Name: d.Name, Protocol: loop.ProtocolBoard}); err != nil {
		return err
	}
	l, err := tx.LockLoop(ctx, id)
	if err != nil {
		return err
	}
	if l.Registered.Good == d.WithDefaults().Digest() {
		return nil
	}
	if err := tx.SaveDefinition(ctx, id, d); err != nil {
		return err
	}
	d = d.WithDefaults()
	if err := tx.AddDefinition(ctx, id, d); err != nil {
		return err
	}
	if err := tx.LinkBy(ctx, by, id, loop.LinkDefinition, "", map[string]any{"verb": verb, "definition": d.Digest()}); err != nil {
		return err
	}
	if by.IsPerson() {
		if err := tx.Accept(ctx, loop.Acceptance{LoopID: id, Digest: d.Digest(), How: loop.AcceptedEdit, By: by}); err != nil {
			return err
		}
	}
	now := tx.Now()
	next := schedule.Firing{Planned: now, Due: now} // One that never ran is due at once.
	if l.LastN > 0 || d.Cadence == "" {
		after := now
		if l.Ticked.After(now) {
			after = l.Ticked
		}
		if next, err = schedule.Next(d, l.Created, after); err != nil {
			return err
		}
	}
	digest := sha256.Sum256([]byte(d.Digest()))
	return tx.SaveRegistration(ctx, id, loop.Registration{Source: "board:" + hex.EncodeToString(digest[:8]), Good: d.Digest(), Planned: next.Planned, Due: next.Due})
}

// DefinitionOf is the definition of the loop that is the heartbeat of an agent: it may touch
// what its boards may, and what it makes passes the gates of all of them. Entry is that of
// the roster with its handle; nil: nobody acts for it unless a run says who.
func DefinitionOf(m board.Member, boards []board.Board, entry *loop.Agent) loop.Definition {
	d := loop.Definition{
		Name: board.LoopName(m.Handle), Protocol: loop.ProtocolBoard, Pattern: "custom", Tier: loop.TierReport, Group: loop.AgentsGroup, Cadence: cmp.Or(m.Interval, shortInterval),
	}
	if m.Dormant {
		d.Cadence = ""
	}
	if entry != nil {
		d.Agent = entry.Handle
	}
	for _, prefix := range m.Capabilities {
		d.Capabilities = append(d.Capabilities, prefix)
	}
	var names, verify, guard []string
	for _, b := range boards {
		if !m.On(b.ID) {
			continue
		}
		names = append(names, b.Name)
		d.Scope = append(d.Scope, b.Scope...)
		verify, guard = append(verify, b.Verify), append(guard, b.Guard)
	}
	slices.Sort(names)
	slices.Sort(d.Scope)
	d.Scope = slices.Compact(d.Scope)
	if len(d.Scope) > 0 {
		d.Tier = loop.TierAssisted
	}
	d.Verify, d.Guard = allOf(verify), allOf(guard)
	d.Goal = fmt.Sprintf("Work as %s on the tasks of %s", m.Role, strings.Join(names, ", "))
	return d
}

// shortInterval is board.DefaultInterval as a cadence.
var shortInterval = strings.TrimSuffix(board.DefaultInterval.Truncate(time.Minute).String(), "0s")

// allOf is one command line that succeeds if all do.
func allOf(commands []string) string {
	commands = slices.DeleteFunc(commands, func(c string) bool { return strings.TrimSpace(c) == "" })
	slices.Sort(commands)
	commands = slices.Compact(commands)
	if len(commands) < 2 {
		return strings.Join(commands, "")
	}
	return "( " + strings.Join(commands, "\n) && ( ") + "\n)"
}

// ListAgents lists the agents of boards by handle.
func (s *Service) ListAgents(ctx context.Context) (all []AgentView, err error) {
	err = s.view(ctx, func(r *store.Reader) (err error) {
		all, err = s.agentViews(ctx, r)
		return err
	})
	return shape.List(all), err
}

func (s *Service) agentViews(ctx context.Context, r *store.Reader) (all []AgentView, err error) {
	members, err := s.members(ctx, r)
	if err != nil {
		return nil, err
	}
	minds, err := s.minds(ctx, r)
	if err != nil {
		return nil, err
	}
	slugs, err := s.slugs(ctx, r)
	if err != nil {
		return nil, err
	}
	entries, err := r.Agents(ctx)
	team := board.Team(members)
	for _, m := range members {
		mind := minds[m.Handle]
		v := AgentView{Schema: "pawl.member/v1", Member: m, Mind: mind, Status: m.Present(mind, s.ws.Now()), Chain: shape.List(team.Chain(m.Handle)), Slugs: []string{}}
		for _, id := range m.BoardIDs {
			v.Slugs = append(v.Slugs, cmp.Or(slugs[id], id))
		}
		if s.isDriver(m.Handle) || slices.ContainsFunc(entries, func(a loop.Agent) bool { return a.Handle == m.Handle }) {
			v.Agent = m.Handle
		}
		all = append(all, v)
	}
	return all, err
}

// ShowAgent shows an agent of boards.
func (s *Service) ShowAgent(ctx context.Context, handle string) (v AgentView, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		v, err = s.agentView(ctx, r, handleOf(handle))
		return err
	})
	return v, absent(err, "agent of a board", "@"+handleOf(handle), loop.PawlCommand("agent list"))
}

func (s *Service) agentView(ctx context.Context, r *store.Reader, handle string) (AgentView, error) {
	all, err := s.agentViews(ctx, r)
	if err != nil {
		return AgentView{}, err
	}
	for _, v := range all {
		if v.Handle == handle {
			return v, nil
		}
	}
	return AgentView{}, loop.ErrNotFound
}
