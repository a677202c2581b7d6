package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// AskedRefs names what rows ask a machine to do, by the ids of ListAsked.
type AskedRefs struct {
	IDs []string `json:"ids"`
}

// The verbs for what rows of a shared store ask this machine to do.
var (
	ListAsked = verb.ReadStore("nodes.asked", "list what rows of the store ask this machine to do", func(ctx context.Context, s *Store, c verb.Call, _ verb.None) ([]nodes.Asked, error) {
		return s.Nodes.Asks(ctx)
	}).NoTool("it is the first half of nodes.accept, which a person does")
	AcceptAsked = verb.WriteStore("nodes.accept", "accept on this machine what rows of the store ask it to do", "nodes accept", verb.Repeatable, func(ctx context.Context, s *Store, c verb.Call, r AskedRefs) ([]nodes.Asked, error) {
		return s.Nodes.Accept(ctx, c.By, r.IDs)
	})
)

// NodeRef names a node.
type NodeRef struct {
	Node string `json:"node"`
}

// NodeChange is what to change of this node; null leaves it as it is.
type NodeChange struct {
	Name   *string   `json:"name,omitempty"`
	Labels *[]string `json:"labels,omitempty"`
}

// The verbs for nodes.
var (
	ListNodes = verb.ReadStore("nodes.list", "list the machines that share the store", func(ctx context.Context, s *Store, c verb.Call, _ verb.None) ([]nodes.View, error) {
		return s.Nodes.List(ctx)
	}).Tool(verb.Tool{Name: "node_list", Schema: "pawl.nodes/v1", Group: verb.ToolsAll, Command: "nodes", Does: "List the machines that share the store."})
	SetNode = verb.WriteStore("nodes.set", "name this node, or set its labels", "nodes set", verb.Repeatable, func(ctx context.Context, s *Store, c verb.Call, n NodeChange) (loop.Node, error) {
		return s.Nodes.Set(ctx, n.Name, n.Labels)
	})
	ShowForgotten = verb.ReadStore("nodes.forgotten", "say what forgetting a node gives up", func(ctx context.Context, s *Store, c verb.Call, r NodeRef) (nodes.Forgotten, error) {
		return s.Nodes.Plan(ctx, r.Node)
	}).NoTool("it is the first half of nodes.forget, which a person does")
	ForgetNode = verb.WriteStore("nodes.forget", "remove a node that is gone for good", "nodes forget", verb.Unknown, func(ctx context.Context, s *Store, c verb.Call, r NodeRef) (nodes.Forgotten, error) {
		return s.Nodes.Forget(ctx, c.By, r.Node)
	})
)

// ChannelRef names a channel.
type ChannelRef struct {
	Channel string `json:"channel"`
}

// NoticeQuery selects notices.
type NoticeQuery struct {
	Before int64 `json:"before,omitempty"` // only those before the one with this number
	Limit  int   `json:"limit"`
}

const secretAddresses = "the addresses of channels may have secrets in them"

// The verbs for notices.
var (
	ListChannels = verb.ReadStore("notices.channels", "list where notices are sent", func(ctx context.Context, s *Store, c verb.Call, _ verb.None) ([]notices.View, error) {
		return s.Notices.List(ctx)
	}).Hide(secretAddresses, "notify list")
	AddChannel = verb.WriteStore("notices.add", "send notices to one more place", "notify add", verb.InOneTransaction, func(ctx context.Context, s *Store, c verb.Call, channel loop.Channel) (loop.Channel, error) {
		once := *s.Notices
		once.Claim = c.Claim
		return once.Add(ctx, c.By, channel)
	})
	RemoveChannel = verb.WriteStore("notices.remove", "send notices to a place no more", "notify rm", verb.Unknown, func(ctx context.Context, s *Store, c verb.Call, r ChannelRef) (verb.None, error) {
		return verb.None{}, s.Notices.Remove(ctx, r.Channel)
	})
	ListNotices = verb.ReadStore("notices.list", "list notices and whether they were delivered", func(ctx context.Context, s *Store, c verb.Call, q NoticeQuery) ([]notices.Logged, error) {
		if err := checkLimit(q.Limit); err != nil {
			return nil, err
		}
		return s.Notices.Log(ctx, q.Before, q.Limit)
	}).ToolFrom(verb.Tool{Name: "notice_list", Schema: "pawl.notices/v1", Group: verb.ToolsAll, Command: "notify log", Does: "List the newest notices, and whether they were delivered."}, verb.From(func(verb.None) NoticeQuery { return NoticeQuery{Limit: mostRuns} }))
)

// AgentRef names an entry of the roster.
type AgentRef struct {
	Agent string `json:"agent"`
}

// AgentChange is an entry of the roster to create or change.
type AgentChange struct {
	Agent string `json:"agent"`
	roster.Change
}

// The verbs for the roster.
var (
	ListAgents = verb.ReadStore("agents.list", "list who can act", func(ctx context.Context, s *Store, c verb.Call, _ verb.None) ([]loop.Agent, error) {
		return s.Roster.List(ctx)
	}).AboutAll().Seen().Tool(verb.Tool{Name: "agent_list", Schema: "pawl.agents/v1", Group: verb.ToolsCore, Command: "agent list", Does: "List who can act in loops: the agents of the roster."})
	ShowAgent = verb.ReadStore("agents.show", "show who acts", func(ctx context.Context, s *Store, c verb.Call, r AgentRef) (roster.Entry, error) {
		return s.Roster.Show(ctx, r.Agent)
	}).AboutAll().Seen().Tool(verb.Tool{Name: "agent_show", Group: verb.ToolsAll, Command: "agent show", Does: "Show an agent of the roster."})
	CreateAgent = verb.WriteStore("agents.create", "add an agent to the roster", "agent create", verb.InOneTransaction, func(ctx context.Context, s *Store, c verb.Call, r AgentChange) (roster.Entry, error) {
		once := s.Roster
		once.Claim = c.Claim
		return once.Create(ctx, r.Agent, r.Change)
	})
	SetAgent = verb.WriteStore("agents.set", "change an agent of the roster", "agent set", verb.Repeatable, func(ctx context.Context, s *Store, c verb.Call, r AgentChange) (roster.Entry, error) {
		return s.Roster.Set(ctx, r.Agent, r.Change)
	})
)
