package specs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/formats/spec"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// GenerateRequest says what a spec is wanted for.
type GenerateRequest struct {
	Task     string `json:"task"`
	By       string `json:"by,omitempty"`       // the agent that writes it, in a run of the loop spec-generate; empty: a template is filled
	Model    string `json:"model,omitempty"`    // of By; empty: its own
	Template string `json:"template,omitempty"` // without By; empty: the one that the words of the task ask for
	Fill

	Create bool `json:"create,omitempty"` // the spec, instead of only showing it

	Claim store.Claim `json:"-"` // of the call that creates it
}

// Generated is a spec that was made for a task, schema pawl.spec_generated/v1.
type Generated struct {
	Schema   string             `json:"schema"`
	ID       string             `json:"id,omitempty"`       // of the spec that was created
	Template string             `json:"template,omitempty"` // that was filled
	Word     string             `json:"word,omitempty"`     // of the task, by which the template was chosen
	By       string             `json:"by,omitempty"`       // the agent that wrote it
	Run      string             `json:"run,omitempty"`      // in which an agent was asked: LOOP#N
	Reason   string             `json:"reason,omitempty"`   // why what the agent wrote is not used: parse-failed, schema-failed, or the reason of the run
	Why      []loopspec.Finding `json:"why,omitempty"`      // the reason in words
	Spec     loopspec.Spec      `json:"spec"`
	Sources  map[string]string  `json:"sources"` // path of each field → where its value comes from
	Tried    []Try              `json:"tried"`   // the gates on the base, as it is now
	Notes    []loopspec.Finding `json:"notes,omitempty"`
}

// Try is what a gate says of the base.
type Try struct {
	Gate   string        `json:"gate"`
	Kind   loop.GateKind `json:"kind"`
	Pass   bool          `json:"pass"`
	Exit   int           `json:"exit"`
	Output string        `json:"output,omitempty"` // its last lines, of one that does not pass
}

// Generate makes a spec for a task: of a template, or by an agent. Nothing of it is invented:
// a command that no memory and no file has, and that was not said, is refused. The gates are
// tried on the base before the spec is shown; one that cannot start refuses the spec. Live sees
// each event of the run of the agent; it may be nil.
func (s *Service) Generate(ctx context.Context, by loop.Actor, r GenerateRequest, live func(loop.Event)) (Generated, error) {
	var g Generated
	switch {
	case s.Engine == nil:
		return g, errors.New("generate a spec: this service only reads")
	case strings.TrimSpace(r.Task) == "":
		return g, &loop.Fault{Exit: loop.ExitUsage, What: "a spec is generated for a task", Why: "none is named", Fix: "say what is wanted with --task TEXT"}
	case r.By != "" && r.Template != "":
		return g, &loop.Fault{Exit: loop.ExitUsage, What: "an agent and a template are both named", Why: "an agent chooses itself", Fix: "leave out --by or --template"}
	}
	if strings.TrimSpace(r.Goal) == "" {
		r.Goal = r.Task
	}
	agentFrom, err := s.chooseAgent(ctx, &r.Agent)
	if err != nil {
		return g, err
	}
	remembered, err := s.remembered(ctx)
	if err != nil {
		return g, err
	}
	t, err := s.fill(r.Fill, remembered)
	if err != nil {
		return g, err
	}
	if r.By != "" {
		if g, err = s.askAgent(ctx, by, r, t, live); err != nil {
			return g, err
		}
	} else {
		if g.Template = r.Template; g.Template == "" {
			g.Template, g.Word = loopspec.ChooseTemplate(r.Task)
		}
		if g.Spec, err = loopspec.FromTemplate(g.Template, t.Task); err != nil {
			return g, err
		}
	}
	g.Schema = "pawl.spec_generated/v1"
	findings, err := s.validate(ctx, g.Spec)
	if err != nil {
		return g, err
	}
	if err := refusal(CreateRequest{}, nil, findings); err != nil {
		return g, err
	}
	g.Notes = onlyNotes(findings)
	other := g.By
	if g.Template != "" {
		other = "template " + g.Template
	}
	g.Sources = t.sourcesOf(g.Spec, agentFrom, other)
	if g.Tried, err = s.tryGates(ctx, g.Spec, g.Sources); err != nil || !r.Create {
		return g, err
	}
	_, err = s.insert(ctx, by, g.Spec, CreateRequest{}, func(tx *store.Tx, id string) error {
		g.ID, g.Spec.ID = id, id
		return tx.AnswerCall(ctx, r.Claim, g)
	})
	return g, err
}

// chooseAgent names the only agent of the roster if none is named, and returns where it is
// from.
func (s *Service) chooseAgent(ctx context.Context, agent *string) (from string, err error) {
	if strings.TrimSpace(*agent) != "" {
		return fromSaid, nil
	}
	var all []loop.Agent
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		all, err = r.Agents(ctx)
		return err
	})
	switch {
	case err != nil && !lookup.Absent(err):
		return "", err
	case len(all) != 1:
		return "", &loop.Fault{
			Exit: loop.ExitUsage, What: "a spec needs an agent that works on it", Why: fmt.Sprintf("none is named, and the roster has %d", len(all)),
			Fix: "name one with --agent; {1} lists them", Actions: []loop.Command{loop.PawlCommand("agent list")},
		}
	}
	*agent = "@" + all[0].Handle
	return "the only agent of the roster", nil
}

// mostRemembered is how many entries of the memory are looked at, the newest.
const mostRemembered = 1000

// remembered are the entries of the memory that count.
func (s *Service) remembered(ctx context.Context) (list []loop.Memory, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.Memories(ctx, store.MemoryQuery{Workspace: s.ws.ID, Active: true, Limit: mostRemembered})
		return err
	})
	if lookup.Absent(err) {
		err = nil // Nothing was learned yet.
	}
	return list, err
}

// askAgent lets an agent write the spec, in a run of its own: it is budgeted, metered,
// redacted and shown like any other. What it wrote is not used if it is not a spec that
// pawl would run.
func (s *Service) askAgent(ctx context.Context, by loop.Actor, r GenerateRequest, t filling, live func(loop.Event)) (g Generated, err error) {
	d := spec.Generation(loop.Reviewer{Agent: strings.TrimPrefix(r.By, "@"), Model: r.Model})
	actor, err := s.ws.Actor(ctx, d)
	if err != nil {
		return g, err
	}
	prompt, err := t.prompt(r, by.Role)
	if err != nil {
		return g, err
	}
	generator := &spec.Generator{Prompt: prompt}
	target := s.ws.Target(d)
	target.Protocol, target.Said = generator, true
	run, err := s.Engine.Run(ctx, target, engine.Firing{Trigger: "manual", Request: r.Task, By: by, Live: live})
	if err != nil {
		return g, err
	}
	if ctx.Err() != nil {
		return g, context.Cause(ctx)
	}
	g.By, g.Run = "@"+actor.Handle, fmt.Sprintf("%s#%d", spec.GenerateLoop, run.N)
	reply := ""
	if generator.Reply != nil {
		reply = *generator.Reply
	}
	m := s.machine(ctx)
	m.Named = func(line string) bool { return t.commands[oneLine(line)] != "" }
	g.Spec, g.Reason, g.Why = loopspec.Generated(reply, t.Task, m)
	if generator.Reply == nil {
		g.Reason, g.Why = string(run.Reason), []loopspec.Finding{{Message: run.Reason.Explain(run.Detail)}}
	}
	if g.Reason == "" {
		g.Why = nil
		return g, nil
	}
	g.Why = slices.DeleteFunc(g.Why, func(f loopspec.Finding) bool { return f.Note })
	g.Template = loopspec.Skeleton
	return g, nil
}

// sourcesOf says where each field of a spec comes from. Other is who filled in what is neither
// known nor a default. The agent that wrote a spec is not asked: what it claims counts
// nothing.
func (t filling) sourcesOf(s loopspec.Spec, agentFrom, other string) map[string]string {
	byDefault, commands := leavesOf(loopspec.Spec{}.WithDefaults()), s.Commands()
	sources := map[string]string{}
	for path, value := range leavesOf(s) {
		line, isCommand := commands[path]
		field, _, _ := strings.Cut(path, ".")
		switch {
		case path == "agentId":
			sources[path] = agentFrom
		case path == "goal" && value == t.Goal:
			sources[path] = fromSaid
		case isCommand && t.commands[oneLine(line)] != "":
			sources[path] = t.commands[oneLine(line)]
		case value == byDefault[path] && slices.Contains([]string{"budget", "giveUp", "errorPolicy", "humanGate", "role", "concurrency"}, field):
			sources[path] = fromDefault
		case strings.HasPrefix(path, "guardrails[") && value == loopspec.EditsLimited(t.Paths):
			sources[path] = t.paths
		default:
			sources[path] = other
		}
	}
	return sources
}

// leavesOf are the values of the document of a spec that hold no others, by their paths. The
// texts are without quotes.
func leavesOf(s loopspec.Spec) map[string]string {
	leaves := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, below := range v {
				walk(strings.TrimPrefix(path+"."+name, "."), below)
			}
		case []any:
			for i, below := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), below)
			}
		case float64: // Of more digits than its default form has.
			leaves[path] = fmt.Sprintf("%.0f", v)
		default:
			leaves[path] = fmt.Sprint(v)
		}
	}
	var doc any
	if err := json.Unmarshal(loopspec.Encode(s), &doc); err != nil {
		panic("specs: a spec does not encode as JSON: " + err.Error())
	}
	walk("", doc)
	maps.DeleteFunc(leaves, func(path, value string) bool { return value == "" || path == "createdAt" || path == "updatedAt" }) // These are made when it is created.
	return leaves
}

// tryGates runs the gates of a spec on the base, as its next run would. It is not a run, and
// keeps nothing. One that could not do its work at all is a *loop.Fault.
func (s *Service) tryGates(ctx context.Context, of loopspec.Spec, sources map[string]string) ([]Try, error) {
	tries := []Try{}
	if !slices.ContainsFunc(of.Gates, func(g loop.Gate) bool { return g.Kind != loop.GateReviewer }) {
		return tries, nil
	}
	if paused, err := s.ws.Paused(ctx); err != nil {
		return tries, err
	} else if !paused.IsZero() {
		return tries, engine.PausedFault(spec.GenerateLoop, paused)
	}
	defer waiting.For(ctx, "the gates to be tried on the base", nil)()
	d, _ := of.Definition(spec.GenerateLoop)
	results, err := s.Engine.TryGates(ctx, s.ws.Target(d), nil)
	if err != nil {
		return tries, err
	}
	for _, res := range results {
		res.Evidence = s.Engine.Hide(res.Evidence)
		if why, fix := gate.Obstacle(res, d); why != "" {
			at := slices.IndexFunc(of.Gates, func(g loop.Gate) bool { return g.Name == res.Name })
			return tries, &loop.Fault{
				Exit: loop.ExitUnreadable, What: fmt.Sprintf("the spec is refused: its gate %s, which is from %s, cannot start on the base", res.Name, readiness.Quote(sources[fmt.Sprintf("gates[%d].check", at)])),
				Why: lastLines(why), Fix: fix,
			}
		}
		t := Try{Gate: res.Name, Kind: res.Kind, Pass: res.Pass, Exit: res.Exit}
		if !t.Pass {
			t.Output = lastLines(strings.Join([]string{res.Note, res.Evidence}, "\n"))
		}
		tries = append(tries, t)
	}
	return tries, nil
}

// lastLines is the end of a text.
func lastLines(text string) string {
	const most = 8
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
