package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// phaseTexts says in words what begins. Phases that take no time have no text.
var phaseTexts = map[loop.Phase]string{
	loop.PhaseSense:  "looking, without spending a token",
	loop.PhaseAct:    "the agent takes a turn",
	loop.PhaseGather: "taking what the agent changed",
	loop.PhaseVerify: "running the gates",
	loop.PhaseEffect: "carrying out what was decided",
}

// describeEvent is an event in words; nothing for one that nobody needs to read.
func describeEvent(e loop.Event) string {
	switch e.Kind {
	case loop.EventPhase:
		return phaseTexts[loop.Phase(e.Text)]
	case loop.EventPrompt:
		return fmt.Sprintf("prompt of %s bytes", formatNumber(int64(len(e.Text))))
	case loop.EventConsidered:
		return describeDecision(e.Text)
	case loop.EventInstructions:
		files, err := runs.InstructionsIn(e.Text)
		if err != nil {
			return e.Text
		}
		lines := []string{"instructions of the repository:"}
		for _, f := range files {
			lines = append(lines, "  "+describeInstruction(f))
		}
		return strings.Join(lines, "\n")
	case loop.EventCommands:
		return describePlan(e.Text)
	case loop.EventCommand:
		return describeCommand(e.Text)
	case loop.EventOutput:
		return output.Quote(e.Text)
	case loop.EventGate:
		return gateMark(e.Text) + " " + e.Text
	case loop.EventOutcome:
		return "run ends " + e.Text
	}
	return e.Text
}

// gateMark is the mark of a gate's verdict, which the engine writes as "name: pass",
// "name: fail (…)" or "name: pending (…)"; more may follow.
func gateMark(text string) string {
	_, verdict, _ := strings.Cut(text, ": ")
	switch word, _, _ := strings.Cut(verdict, " "); strings.TrimSuffix(word, ",") {
	case "pass":
		return "✓"
	case "pending":
		return "!"
	}
	return "✗"
}

// describeDecision is a decision in words: the first candidates with their reasons.
func describeDecision(body string) string {
	var list []loop.Considered
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return body
	}
	if len(list) == 0 {
		return "there is nothing to do"
	}
	const shown = 8
	var lines []string
	for i, c := range list {
		if i == shown {
			lines = append(lines, fmt.Sprintf("and %d more", len(list)-shown))
			break
		}
		mark := "–"
		if c.Chosen {
			mark = "→"
		}
		lines = append(lines, fmt.Sprintf("%s %s (%s)", mark, excerpt(c.Step, 100), excerpt(c.Reason.Explain(c.Detail), 100)))
	}
	return strings.Join(lines, "\n")
}

// describePlan lists the commands that an agent wants pawl to run, with the answers.
func describePlan(body string) string {
	var plan []loop.PlannedCommand
	if err := json.Unmarshal([]byte(body), &plan); err != nil {
		return body
	}
	lines := []string{"commands of the agent:"}
	for i, p := range plan {
		line := fmt.Sprintf("  %d %s", i+1, excerpt(output.CleanLine(strings.Join(p.Argv, " ")), 100))
		if p.Answer != loop.CommandRun {
			line += " – " + excerpt(output.CleanLine(p.Words), 100)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// describeCommand says that a command has started, or what became of it.
func describeCommand(body string) string {
	var res loop.CommandResult
	if err := json.Unmarshal([]byte(body), &res); err != nil {
		return body
	}
	name := fmt.Sprintf("command %d: %s", res.N, excerpt(output.CleanLine(strings.Join(res.Argv, " ")), 100))
	switch res.State {
	case loop.CommandStarted:
		return "→ " + name
	case loop.CommandAsked, loop.CommandSkipped:
		return "! " + name + " (not run: " + excerpt(output.CleanLine(res.Detail), 100) + ")"
	case loop.CommandRefused:
		return "✗ " + name + " (not run: " + excerpt(output.CleanLine(res.Detail), 100) + ")"
	case loop.CommandMet, loop.CommandUnmet:
	}
	text := fmt.Sprintf("✓ %s (exit status %d)", name, res.Exit)
	if res.State == loop.CommandUnmet {
		text = fmt.Sprintf("✗ %s (exit status %d; %s)", name, res.Exit, excerpt(output.CleanLine(res.Detail), 100))
	}
	if res.Output != "" {
		text += "\n" + output.Quote(res.Output)
	}
	return text
}

// describeInstruction says how much of a file an agent was given.
func describeInstruction(f runs.Instruction) string {
	text := output.CleanLine(f.Path)
	if f.Blob != "" {
		text += " " + shortHash(f.Blob)
	}
	if f.Given > 0 {
		text += fmt.Sprintf(", %s bytes given", formatNumber(int64(f.Given)))
	}
	return joinNonEmpty("; ", text, output.CleanLine(f.Note))
}

// stampLines puts time and phase before each line of a text.
func stampLines(e loop.Event, layout, body string) []string {
	if body == "" {
		return nil
	}
	head := fmt.Sprintf("%s %-8s ", e.At.Local().Format(layout), e.Phase)
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(output.Clean(body), "\n"), "\n") {
		lines = append(lines, head+line)
	}
	return lines
}
