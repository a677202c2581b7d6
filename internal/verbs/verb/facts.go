package verb

import (
	"context"
	"reflect"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Hide keeps a verb that only reads from agents and viewers. Command is the one with which a
// person does the same, or "".
func (v Verb[W, In, Out]) Hide(why, command string) Verb[W, In, Out] {
	v.Hidden, v.Command = why, command
	return v
}

// ForAgents lets agents ask for a verb that changes something, in every way.
func (v Verb[W, In, Out]) ForAgents() Verb[W, In, Out] {
	return v.ForAgentsUnless(func(In) string { return "" })
}

// ForAgentsUnless lets agents ask for a verb that changes something, as long as refuse returns no reason.
func (v Verb[W, In, Out]) ForAgentsUnless(refuse func(In) (why string)) Verb[W, In, Out] {
	v.AgentRefusal = func(in any) string { return refuse(in.(In)) }
	return v
}

// About says what of a workspace a request is about, so that a grant of loops may reach the verb. One without
// it is about more than loops.
func (v Verb[W, In, Out]) About(about func(In) Subject) Verb[W, In, Out] {
	v.SubjectOf = func(in any) Subject { return about(in.(In)) }
	return v
}

// AboutAll is About for a verb whose request names no loop, and that tells or changes nothing of those that
// are not granted.
func (v Verb[W, In, Out]) AboutAll() Verb[W, In, Out] {
	return v.About(func(In) Subject { return Subject{All: true} })
}

// Cut leaves of a result what a grant of loops reaches; it reports false if that is nothing at all. Limit is
// how many entries a request asks for, so that they are counted after the cut; nil: it does not say.
func (v Verb[W, In, Out]) Cut(limit func(*In) *int, cut func(out Out, reached Reached, most int) (Out, bool)) Verb[W, In, Out] {
	v.widen = func(in any) (any, int) {
		wide, most := in.(In), 0
		if limit != nil {
			asked := limit(&wide)
			most, *asked = *asked, 0
		}
		return wide, most
	}
	v.cut = func(out any, reached Reached, most int) (any, bool) { return cut(out.(Out), reached, most) }
	return v
}

// Seen lets the agent of a run ask for a verb that only reads: one that tells of the workspace of the run, and
// of nothing that may contain secrets.
func (v Verb[W, In, Out]) Seen() Verb[W, In, Out] {
	return v.SeenUnless(func(In) string { return "" })
}

// SeenUnless lets the agent of a run ask for a verb that only reads, as long as refuse returns no reason.
func (v Verb[W, In, Out]) SeenUnless(refuse func(In) (why string)) Verb[W, In, Out] {
	v.ReadRefusal = func(in any) string { return refuse(in.(In)) }
	return v
}

// Post lets the agent of a run that may post ask for a verb that changes something, as long as refuse returns
// no reason. Limit says in words what it is limited to.
func (v Verb[W, In, Out]) Post(limit string, refuse func(ctx context.Context, w W, of *loop.Inside, in In) (why string, err error)) Verb[W, In, Out] {
	v.PostLimit = limit
	v.PostRefusal = func(ctx context.Context, _ Info, w Workspace, of *loop.Inside, in any) (string, error) {
		return refuse(ctx, w.(W), of, in.(In))
	}
	return v
}

// PostBelow is Post for what is about a loop that the run's own has made, or about a run of one. About comes
// before it.
func (v Verb[W, In, Out]) PostBelow(limit string) Verb[W, In, Out] {
	if v.SubjectOf == nil {
		panic(v.Name + ": PostBelow needs About")
	}
	v.PostLimit, v.PostRefusal = limit, refuseOthers
	return v
}

// PostAny is Post without a check here: the verb itself refuses what the agent may not do.
func (v Verb[W, In, Out]) PostAny(limit string) Verb[W, In, Out] {
	return v.Post(limit, func(context.Context, W, *loop.Inside, In) (string, error) { return "", nil })
}

// OnDaemon makes a verb that queues a run one that only a daemon carries out. Without a daemon, the twin
// carries out the same run in the process that asks.
func (v Verb[W, In, Out]) OnDaemon(twin Info) Verb[W, In, Out] {
	v.Needs, v.Twin = "runs for which nobody waits are executed by a daemon", twin.Name
	return v
}

// EndsRuns marks a verb that ends runs. A daemon that is shutting down, and takes no new work, still carries
// it out.
func (v Verb[W, In, Out]) EndsRuns() Verb[W, In, Out] {
	v.Brief = true
	return v
}

// Tool offers the verb to agents, with its own arguments and its own result.
func (v Verb[W, In, Out]) Tool(t Tool) Verb[W, In, Out] {
	return v.ToolFrom(t, From(func(in In) In { return in }))
}

// ToolFrom offers the verb to agents with other arguments.
func (v Verb[W, In, Out]) ToolFrom(t Tool, from Arguments[In]) Verb[W, In, Out] {
	return v.ToolBy(func(ask Ask[In, Out]) Tool {
		return t.calling(from.of, reflect.TypeFor[Out](), func(ctx context.Context, c Caller, in any) (any, error) {
			return ask(ctx, c, from.request(in))
		})
	})
}

// ToolBy offers the verb to agents by a tool that has arguments or a result of its own.
func (v Verb[W, In, Out]) ToolBy(by ToolFor[In, Out]) Verb[W, In, Out] {
	v.tool = func(i Info) Tool { return by(Verb[W, In, Out]{i}.Call) }
	return v
}

// NoTool says why no tool offers the verb to agents. A verb that only people may ask for needs no reason.
func (v Verb[W, In, Out]) NoTool(why string) Verb[W, In, Out] {
	v.WhyNoTool = why
	return v
}
