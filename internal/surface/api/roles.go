package api

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// agentsMay has the verbs with which an agent may change something. What a verb asks beyond
// that it says itself. Everything else that changes something is for people.
var agentsMay = map[string]func(in any) (why string){
	CreateSpec.Name: func(in any) string {
		if r := in.(specs.CreateRequest); r.Document != "" || r.Foreign || !reflect.DeepEqual(r.Fill, specs.Fill{Goal: r.Goal, Agent: r.Agent}) {
			return "an agent creates a spec from a template: goal, agent and template are its to choose, and what is executed and what may be changed are not"
		}
		return ""
	},
	FlagSpec.Name: mayAlways, StepSpec.Name: mayAlways, QueueStep.Name: mayAlways, StopSpec.Name: mayAlways,
	RecoverRuns.Name: mayAlways, StartRun.Name: mayStart, FireRun.Name: mayStart, StopRun.Name: mayAlways,
	PauseLoops.Name: func(in any) string {
		if in.(SwitchRequest).Loop == "" {
			return "an agent pauses one loop at a time"
		}
		return ""
	},
	CreateTask.Name: func(in any) string { return asAgent(in.(boards.CreateTaskRequest).By) },
	SetTask.Name:    mayAlways, MoveTask.Name: mayAlways, AssignTask.Name: mayAlways, ClaimTask.Name: mayAlways,
	CommentTask.Name: func(in any) string { return asAgent(in.(boards.CommentRequest).By) },
	SendMessage.Name: func(in any) string { return asAgent(in.(boards.SendRequest).From) },
	ResumeLoops.Name: func(in any) string { // Which ones, package loops decides: those that an agent paused.
		if in.(LoopRef).Loop == "" {
			return "an agent resumes one loop at a time"
		}
		return ""
	},
}

// asAgent refuses an agent to write in the name of a person.
func asAgent(handle string) string {
	if h := strings.TrimPrefix(handle, "@"); h == "" || h == board.Human || h == "owner" {
		return "an agent writes in the name of an agent, and not in a person's"
	}
	return ""
}

func mayAlways(any) string { return "" }

func mayStart(in any) string {
	r := in.(runs.StartRequest)
	plain := runs.StartRequest{Loop: r.Loop, Request: r.Request, Wait: r.Wait, Overrides: loop.Overrides{MaxIterations: r.Overrides.MaxIterations}}
	if !reflect.DeepEqual(r, plain) {
		return "an agent runs a loop as its definition says: what is executed, by whom and how it is confined are not its to choose"
	}
	return ""
}

const readsFiles = "it reads files of the machine by their paths, and says what is in them"

// hiddenFromAgents has the verbs that only read, and that an agent may not ask for, each
// with the reason.
var hiddenFromAgents = map[string]string{
	ListChannels.Name: "the addresses of channels may have secrets in them",
	PlanBoot.Name:     readsFiles, PlanImport.Name: readsFiles, PlanBoardImport.Name: readsFiles,
}

// commands are those with which a person does what an agent may not, by the name of the
// verb. The first text of the request is their argument.
var commands = map[string]loop.Command{
	CreateSpec.Name: loop.PawlCommand("spec create"), GenerateSpec.Name: loop.PawlCommand("spec generate"), EditSpec.Name: loop.PawlCommand("spec edit"), SpawnSpec.Name: loop.PawlCommand("spec spawn"), DeleteSpec.Name: loop.PawlCommand("spec delete"),
	FlagSpec.Name: loop.PawlCommand("spec flag"), StepSpec.Name: loop.PawlCommand("spec step"), QueueStep.Name: loop.PawlCommand("spec step"), StopSpec.Name: loop.PawlCommand("spec stop"),
	TryGate.Name: loop.PawlCommand("gate try"), StartRun.Name: loop.PawlCommand("run"), FireRun.Name: loop.PawlCommand("run"), RerunRun.Name: loop.PawlCommand("rerun"), StopRun.Name: loop.PawlCommand("stop"), RecoverRuns.Name: loop.PawlCommand("recover"),
	RegisterLoops.Name: loop.PawlCommand("reload"), AcceptLoops.Name: loop.PawlCommand("check"), RegisterWorkspace.Name: loop.PawlCommand("init"), PauseLoops.Name: loop.PawlCommand("pause"), ResumeLoops.Name: loop.PawlCommand("resume"), KillLoops.Name: loop.PawlCommand("kill"), ForgetLoop.Name: loop.PawlCommand("rm"),
	PauseEverywhere.Name: loop.PawlCommand("pause"), ResumeEverywhere.Name: loop.PawlCommand("resume"),
	InitBoot.Name: loop.PawlCommand("boot init"), MigrateBoot.Name: loop.PawlCommand("boot migrate"), InitOrg.Name: loop.PawlCommand("org init"), ImportOrg.Name: loop.PawlCommand("org import"),
	Approve.Name: loop.PawlCommand("approve"), Reject.Name: loop.PawlCommand("reject"), ShowLanding.Name: loop.PawlCommand("land"), Land.Name: loop.PawlCommand("land"),
	RestoreSnapshot.Name: loop.PawlCommand("recover restore"), PruneSnapshots.Name: loop.PawlCommand("recover prune"), SetBudget.Name: loop.PawlCommand("budget set"), RewriteRunLog.Name: loop.PawlCommand("audit log"),
	AddMemory.Name: loop.PawlCommand("memory add"), ApproveMemory.Name: loop.PawlCommand("memory approve"), ForgetMemory.Name: loop.PawlCommand("memory forget"),
	SetNode.Name: loop.PawlCommand("nodes set"), ForgetNode.Name: loop.PawlCommand("nodes forget"), AcceptAsked.Name: loop.PawlCommand("nodes accept"), ListChannels.Name: loop.PawlCommand("notify list"), AddChannel.Name: loop.PawlCommand("notify add"), RemoveChannel.Name: loop.PawlCommand("notify rm"),
	CreateBoard.Name: loop.PawlCommand("board create"), SetBoard.Name: loop.PawlCommand("board set"), ImportBoards.Name: loop.PawlCommand("board import"),
	CreateTask.Name: loop.PawlCommand("task create"), SetTask.Name: loop.PawlCommand("task set"), MoveTask.Name: loop.PawlCommand("task move"), AssignTask.Name: loop.PawlCommand("task assign"), ClaimTask.Name: loop.PawlCommand("task assign"),
	CommentTask.Name: loop.PawlCommand("task comment"), SendMessage.Name: loop.PawlCommand("msg send"),
	CreateMember.Name: loop.PawlCommand("agent create"), SetMember.Name: loop.PawlCommand("agent set"),
	CreateResource.Name: loop.PawlCommand("resource create"), SetResource.Name: loop.PawlCommand("resource set"),
	CreateAgent.Name: loop.PawlCommand("agent create"), SetAgent.Name: loop.PawlCommand("agent set"),
}

// RefusesAgents says why an agent may never ask for the verb, whatever it asks. Empty: it may.
func (i Info) RefusesAgents() string {
	if why := hiddenFromAgents[i.Name]; why != "" {
		return why
	}
	if i.Writes && agentsMay[i.Name] == nil {
		return "only a person may " + i.Does
	}
	return ""
}

// RefusesViewers says why a viewer may not ask for the verb. Empty: it may.
func (i Info) RefusesViewers() string {
	if i.Writes {
		return "a viewer only reads"
	}
	return hiddenFromAgents[i.Name]
}

// PersonsCommand is the command with which a person does what the verb does; the zero
// Command if no person has such a command.
func (i Info) PersonsCommand(in any) loop.Command {
	c, ok := commands[i.Name]
	if arg := firstText(reflect.ValueOf(in)); ok && arg != "" {
		c.Args = []string{arg}
	}
	return c
}

// firstText is the first field of a request if it is a text.
func firstText(v reflect.Value) string {
	if v.Kind() == reflect.Struct && v.NumField() > 0 && v.Field(0).Kind() == reflect.String {
		return v.Field(0).String()
	}
	return ""
}

// checkRole refuses what the actor's role may not ask for.
func (i Info) checkRole(by loop.Actor, in any) error {
	why := ""
	if by.Role == loop.RoleViewer {
		why = i.RefusesViewers()
	}
	if by.Role == loop.RoleAgent {
		if why = i.RefusesAgents(); why == "" && i.Writes {
			why = agentsMay[i.Name](in)
		}
	}
	if why == "" {
		return nil
	}
	return RoleFault(i, by, why, in)
}

// RoleFault refuses a verb to an agent or a viewer. The fix is the command with which a person
// does it.
func RoleFault(i Info, by loop.Actor, why string, in any) error {
	f := &loop.Fault{Exit: loop.ExitRefused, What: fmt.Sprintf("%s may not %s", by.Who, i.Does), Why: why, Err: loop.ErrRole, Fix: "let a person do it, outside of a run"}
	if c := i.PersonsCommand(in); c.Verb != "" {
		return f.WithAdvice(loop.Advise("let a person do it, outside of a run: {1}", c))
	}
	return f
}
