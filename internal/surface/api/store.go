package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

// AskedRefs names what rows ask a machine to do, by the ids of ListAsked.
type AskedRefs struct {
	IDs []string `json:"ids"`
}

// The verbs for what rows of a shared store ask this machine to do.
var (
	ListAsked = ReadStore("nodes.asked", "list what rows of the store ask this machine to do", func(ctx context.Context, s *Store, c Call, _ None) ([]nodes.Asked, error) {
		return s.Nodes.Asks(ctx)
	}).NoTool("it is the first half of nodes.accept, which a person does")
	AcceptAsked = WriteStore("nodes.accept", "accept on this machine what rows of the store ask it to do", "nodes accept", Repeatable, func(ctx context.Context, s *Store, c Call, r AskedRefs) ([]nodes.Asked, error) {
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
	ListNodes = ReadStore("nodes.list", "list the machines that share the store", func(ctx context.Context, s *Store, c Call, _ None) ([]nodes.View, error) {
		return s.Nodes.List(ctx)
	}).Tool(Tool{Name: "node_list", Schema: "pawl.nodes/v1", Group: ToolsAll, Command: "nodes", Does: "List the machines that share the store."})
	SetNode = WriteStore("nodes.set", "name this node, or set its labels", "nodes set", Repeatable, func(ctx context.Context, s *Store, c Call, n NodeChange) (loop.Node, error) {
		return s.Nodes.Set(ctx, n.Name, n.Labels)
	})
	ShowForgotten = ReadStore("nodes.forgotten", "say what forgetting a node gives up", func(ctx context.Context, s *Store, c Call, r NodeRef) (nodes.Forgotten, error) {
		return s.Nodes.Plan(ctx, r.Node)
	}).NoTool("it is the first half of nodes.forget, which a person does")
	ForgetNode = WriteStore("nodes.forget", "remove a node that is gone for good", "nodes forget", Unknown, func(ctx context.Context, s *Store, c Call, r NodeRef) (nodes.Forgotten, error) {
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
	ListChannels = ReadStore("notices.channels", "list where notices are sent", func(ctx context.Context, s *Store, c Call, _ None) ([]notices.View, error) {
		return s.Notices.List(ctx)
	}).Hide(secretAddresses, "notify list").NoTool(secretAddresses)
	AddChannel = WriteStore("notices.add", "send notices to one more place", "notify add", InOneTransaction, func(ctx context.Context, s *Store, c Call, channel loop.Channel) (loop.Channel, error) {
		once := *s.Notices
		once.Claim = c.Claim
		return once.Add(ctx, c.By, channel)
	})
	RemoveChannel = WriteStore("notices.remove", "send notices to a place no more", "notify rm", Unknown, func(ctx context.Context, s *Store, c Call, r ChannelRef) (None, error) {
		return None{}, s.Notices.Remove(ctx, r.Channel)
	})
	ListNotices = ReadStore("notices.list", "list notices and whether they were delivered", func(ctx context.Context, s *Store, c Call, q NoticeQuery) ([]notices.Logged, error) {
		if err := checkLimit(q.Limit); err != nil {
			return nil, err
		}
		return s.Notices.Log(ctx, q.Before, q.Limit)
	}).ToolFrom(Tool{Name: "notice_list", Schema: "pawl.notices/v1", Group: ToolsAll, Command: "notify log", Does: "List the newest notices, and whether they were delivered."}, From(func(None) NoticeQuery { return NoticeQuery{Limit: mostRuns} }))
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
	ListAgents = ReadStore("agents.list", "list who can act", func(ctx context.Context, s *Store, c Call, _ None) ([]loop.Agent, error) {
		return s.Roster.List(ctx)
	}).AboutAll().Seen().Tool(Tool{Name: "agent_list", Schema: "pawl.agents/v1", Group: ToolsCore, Command: "agent list", Does: "List who can act in loops: the agents of the roster."})
	ShowAgent = ReadStore("agents.show", "show who acts", func(ctx context.Context, s *Store, c Call, r AgentRef) (roster.Entry, error) {
		return s.Roster.Show(ctx, r.Agent)
	}).AboutAll().Seen().Tool(Tool{Name: "agent_show", Group: ToolsAll, Command: "agent show", Does: "Show an agent of the roster."})
	CreateAgent = WriteStore("agents.create", "add an agent to the roster", "agent create", InOneTransaction, func(ctx context.Context, s *Store, c Call, r AgentChange) (roster.Entry, error) {
		once := s.Roster
		once.Claim = c.Claim
		return once.Create(ctx, r.Agent, r.Change)
	})
	SetAgent = WriteStore("agents.set", "change an agent of the roster", "agent set", Repeatable, func(ctx context.Context, s *Store, c Call, r AgentChange) (roster.Entry, error) {
		return s.Roster.Set(ctx, r.Agent, r.Change)
	})
)
