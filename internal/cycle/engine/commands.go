package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// Bounds of the commands that the runtime runs for an agent.
const (
	CommandTime      = 60 * time.Second // that one may take
	CommandOutput    = 10 << 10         // bytes kept of what one prints: half from its beginning, half from its end
	mostCommandWords = 64 << 10         // bytes of what all of them printed that the next turn is told
)

// commandsMark begins the feedback of a turn whose commands the runtime has run.
const commandsMark = "commands of the last turn:"

var (
	beforeCommand = fault.New("engine.command.before")
	afterCommand  = fault.New("engine.command.after")
)

// commandRun is what became of the commands of a turn.
type commandRun struct {
	plan    []loop.PlannedCommand
	results []loop.CommandResult // of those that were looked at
	asked   *agent.Ask           // a human has to say yes to it; nil: nobody is asked
	unrun   string               // why none was run though there are some
}

// met reports whether all commands ended as the agent expected.
func (r commandRun) met() bool {
	return r.unrun == "" && len(r.results) == len(r.plan) && (len(r.plan) == 0 || r.last().State == loop.CommandMet)
}

func (r commandRun) last() loop.CommandResult { return r.results[len(r.results)-1] }

// reason is why the commands are not all met.
func (r commandRun) reason() loop.Reason {
	if len(r.results) > 0 && r.last().State == loop.CommandRefused {
		return loop.ReasonCommandRefused
	}
	return loop.ReasonCommandFailed
}

// runCommands runs the commands of a report in their order, in the tree that the turn
// left. It stops at the first that is refused, needs a human, or ends otherwise than
// expected. Each start is durable before it: a plan is never taken up again, so that no
// command of it starts twice.
func (c *cycle) runCommands(ctx context.Context, step loop.Step, turn turnResult, claimed claim) (ran commandRun, end *ending, err error) {
	commands := claimed.report.Commands
	switch {
	case len(commands) == 0:
		return ran, nil, nil
	case turn.cut != nil || turn.Failure != nil || turn.Ended != proc.Exited || turn.Exit != 0 && !turn.Claims:
		ran.unrun = "its commands were not run: the turn did not end well"
	case len(turn.Asks) > 0:
		ran.unrun = "its commands were not run: a person is asked first"
	}
	if ran.unrun != "" {
		c.said.Note("%s", ran.unrun)
		return ran, nil, nil
	}
	at, err := c.sensed.sensePlace(ctx, false)
	if err != nil {
		return ran, nil, err
	}
	defer at.Done()
	guard, err := c.guardOf(ctx, c.def, c.runEnv(), at, os.TempDir())
	if err != nil {
		return ran, nil, err
	}
	ran.plan = c.planCommands(guard, commands)
	c.emitJSON(loop.EventCommands, ran.plan)
	session, logs := c.memory.session.(CommandLog)
	var changes []loop.Change
	if logs {
		changes = session.Planned(ran.plan)
		if err := loop.CheckChanges(changes); err != nil {
			return ran, nil, fmt.Errorf("plan the commands of iteration %d: %w", len(c.its), err)
		}
	}
	c.target.Repo.Rest()
	for i, command := range commands {
		if end = stopEnding(ctx); end == nil {
			end = c.switchEnding()
		}
		if end != nil {
			break
		}
		res := loop.CommandResult{N: i + 1, Argv: ran.plan[i].Argv}
		switch ran.plan[i].Answer {
		case loop.CommandRefuse:
			res.State, res.Detail = loop.CommandRefused, ran.plan[i].Words
		case loop.CommandAsk:
			res.State, res.Detail = loop.CommandAsked, ran.plan[i].Words
			ran.asked = &agent.Ask{Argv: command.Argv, Why: strings.TrimSpace(command.Why + "\n" + ran.plan[i].Words)}
		case loop.CommandRun:
			res.State = loop.CommandStarted
			c.emitJSON(loop.EventCommand, res)
			if err := c.commit(ctx, loop.PhaseAct, c.recordChanges(changes)); err != nil {
				return ran, nil, err
			}
			changes = nil
			if err := c.applyPending(ctx); err != nil {
				return ran, nil, err
			}
			if res, err = c.runCommand(ctx, at, command, res); err != nil {
				return ran, nil, err
			}
		}
		ran.results = append(ran.results, res)
		c.emitJSON(loop.EventCommand, res)
		if res.State != loop.CommandMet {
			break
		}
	}
	if end != nil || stopEnding(ctx) != nil {
		c.tellStep(step, ran.words())
		return ran, end, nil
	}
	c.stage(c.recordChanges(changes)) // If no command of the plan ran.
	if logs {
		changes = session.Ran(ran.all())
		if err := loop.CheckChanges(changes); err != nil {
			return ran, nil, fmt.Errorf("record the commands of iteration %d: %w", len(c.its), err)
		}
		c.stage(c.recordChanges(changes))
	}
	return ran, nil, nil
}

// planCommands asks policy about each command before any of them runs.
func (c *cycle) planCommands(guard policy.Guard, commands []report.Command) []loop.PlannedCommand {
	plan := make([]loop.PlannedCommand, len(commands))
	for i, command := range commands {
		p := loop.PlannedCommand{Argv: c.said.HideAll(command.Argv), Why: c.said.Hide(command.Why), Answer: loop.CommandRefuse}
		if command.Expect != nil {
			p.Exit, p.Output = command.Expect.Exit, c.said.Hide(command.Expect.Output)
		}
		answer := guard.JudgeCommand(command.Argv)
		switch {
		case answer.Allow:
			p.Answer = loop.CommandRun
		case answer.Ask:
			p.Answer = loop.CommandAsk
		}
		p.Rule, p.Words = answer.Rule, c.said.Hide(answer.Words)
		plan[i] = p
	}
	return plan
}

// runCommand runs one command and compares its end with what the agent expects.
func (c *cycle) runCommand(ctx context.Context, at runenv.Place, command report.Command, res loop.CommandResult) (loop.CommandResult, error) {
	if err := beforeCommand.Hit(ctx); err != nil {
		return res, err
	}
	kept := proc.NewRing(CommandOutput/2, CommandOutput/2)
	out := c.said.Secrets().Writer(kept)
	limit := c.timeWithin(c.CommandTime)
	done, err := at.Run(ctx, proc.Spec{
		Argv: command.Argv, Dir: at.Dir, Env: c.runEnv().StepEnv(), Stdout: out, Stderr: out, Timeout: limit, Tag: runenv.Tag(c.run.ID),
	})
	_ = out.Close() // Writing to a Ring never fails.
	c.run.Spent.Agent += done.Took
	c.current().Agent += done.Took
	if err != nil && !cannotStart(ctx, err) {
		return res, fmt.Errorf("run the command %q: %w", command.Argv[0], err)
	}
	res.Exit, res.Took, res.Output, res.State = done.Exit, done.Took, kept.String(), loop.CommandMet
	wantExit, wantOutput := 0, ""
	if command.Expect != nil {
		wantExit, wantOutput = command.Expect.Exit, command.Expect.Output
	}
	switch {
	case err != nil:
		res.Detail = "it could not be started: " + c.said.Hide(err.Error())
	case done.Ended == proc.TimedOut:
		res.Detail = fmt.Sprintf("it was stopped after %s", limit.Round(time.Millisecond))
	case done.Ended == proc.Limited:
		res.Detail = "it was stopped: " + runenv.LimitText(done.Limit, done.Took)
	case done.Ended == proc.Canceled:
		res.Detail = "it was stopped with the run"
	case done.Exit != wantExit:
		res.Detail = fmt.Sprintf("exit status %d was expected", wantExit)
	case !strings.Contains(res.Output, wantOutput):
		res.Detail = fmt.Sprintf("the output does not contain %q", c.said.Hide(wantOutput))
	}
	if res.Detail != "" {
		res.State = loop.CommandUnmet
	}
	return res, afterCommand.Hit(ctx)
}

// cannotStart reports whether a program did not start because of what it is: whoever
// named it is told so. Anything else is an error of the run.
func cannotStart(ctx context.Context, err error) bool {
	if broken, ok := errors.AsType[*sandbox.SetupError](err); ok {
		return broken.MissesProgram()
	}
	return ctx.Err() == nil
}

// all are the results of the whole plan.
func (r commandRun) all() []loop.CommandResult {
	results := r.results
	for i := len(results); i < len(r.plan); i++ {
		results = append(results, loop.CommandResult{N: i + 1, Argv: r.plan[i].Argv, State: loop.CommandSkipped})
	}
	return results
}

// words are the results for whoever goes on with the step.
func (r commandRun) words() string {
	if r.unrun != "" {
		return r.unrun
	}
	return commandWords(r.all())
}

// summary says in a few words what became of the commands.
func (r commandRun) summary() string {
	switch {
	case len(r.results) == 0:
		return r.unrun
	case r.met():
		return fmt.Sprintf("ran %d commands as expected", len(r.plan))
	}
	last := r.last()
	return strings.Join(printables([]string{fmt.Sprintf("command %d of %d, `%s`, is %s: %s", last.N, len(r.plan), strings.Join(last.Argv, " "), last.State, last.Detail)}), "")
}

// commandWords tells what became of the commands of a plan.
func commandWords(results []loop.CommandResult) string {
	if len(results) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(commandsMark + "\n")
	for _, res := range results {
		fmt.Fprintf(&b, "$ %s\n", strings.Join(printables([]string{strings.Join(res.Argv, " ")}), ""))
		switch res.State {
		case loop.CommandStarted:
			b.WriteString("[it was started, and how it ended is not known]\n")
		case loop.CommandSkipped:
			b.WriteString("[not run]\n")
		case loop.CommandAsked, loop.CommandRefused:
			fmt.Fprintf(&b, "[not run: %s]\n", res.Detail)
		case loop.CommandMet, loop.CommandUnmet:
			if text := strings.TrimRight(res.Output, "\n"); text != "" {
				b.WriteString(cutMiddle(text, mostCommandWords/len(results)) + "\n")
			}
			end := fmt.Sprintf("[exit status %d", res.Exit)
			if res.Detail != "" {
				end += "; not as expected: " + res.Detail
			}
			b.WriteString(end + "]\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// cutMiddle keeps the beginning and the end of a text, and says that it did.
func cutMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + fmt.Sprintf("\n[%d bytes are left out]\n", len(text)-most/2*2) + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// emitJSON records what scripts and protocols read again.
func (j *journal) emitJSON(kind string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("engine: " + kind + " does not marshal: " + err.Error())
	}
	j.said.Emit(kind, string(body))
}

// tellStep tells the next attempt at a step what it would not know otherwise.
func (p *progress) tellStep(step loop.Step, words string) {
	if s, ok := p.steps[step.Key]; ok && words != "" {
		s.Feedback = words
		p.steps[step.Key] = s
	}
}

// commandsOfDead tells what is known of the commands of the turn in which a run was
// lost: those that its process began, and how they ended if that is durable.
func (c *cycle) commandsOfDead(ctx context.Context) (string, error) {
	var ran commandRun
	for after := int64(0); ; {
		const page = 500
		var events []loop.Event
		err := c.Store.View(ctx, func(r *store.Reader) (err error) {
			events, err = r.Events(ctx, c.run.ID, after, page)
			return err
		})
		for _, e := range events {
			after = e.Seq
			switch {
			case e.Kind == loop.EventPhase && e.Text == string(loop.PhaseDecide):
				ran = commandRun{}
			case e.Kind == loop.EventCommands:
				err = errors.Join(err, json.Unmarshal([]byte(e.Text), &ran.plan))
			case e.Kind == loop.EventCommand:
				var res loop.CommandResult
				err = errors.Join(err, json.Unmarshal([]byte(e.Text), &res))
				if n := len(ran.results); n > 0 && ran.results[n-1].N == res.N {
					ran.results = ran.results[:n-1]
				}
				ran.results = append(ran.results, res)
			}
		}
		if err != nil {
			return "", fmt.Errorf("read the commands of run %s: %w", c.run.ID, err)
		}
		if len(events) < page {
			return ran.words(), nil
		}
	}
}
