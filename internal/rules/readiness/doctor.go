package readiness

import (
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// States of a Row.
const (
	StateOK   = "ok"
	StateWarn = "warn" // the loop runs, but not everything is as its definition says
	StateBad  = "bad"  // the loop cannot run as its definition says
)

// Row is one thing that a loop needs in order to run, and its state. Detail and Fix
// are one line each. Fix is the change to make; empty if missing.
type Row struct {
	State  string
	Check  string
	Detail string
	Fix    string
}

// DoctorRows returns the rows that need only the definition. perRun is how many tokens
// all agents of one run of its pattern usually use; known is false if the pattern is
// not in the catalogue. About isolation it is stricter than Check on purpose.
func DoctorRows(c Config, perRun int64, known bool) []Row {
	rows := []Row{modeRow(c)}
	if c.Tier.Text == string(loop.TierUnattended) && c.PermissionMode.Text == "bypassPermissions" {
		rows = append(rows, isolationRow(c))
	}
	if known && isDigits(c.BudgetTokens.Text) {
		rows = append(rows, budgetRow(c.BudgetTokens.Text, perRun))
	}
	return rows
}

// modeRow judges only whether the mode works without a person; Check says whether it
// is valid.
func modeRow(c Config) Row {
	mode := c.PermissionMode.Text
	row := Row{State: StateOK, Check: "permission_mode", Detail: Quote(mode)}
	if mode != "" && mode != "default" {
		return row
	}
	row.State, row.Detail = StateBad, "missing; the agent would ask, and nobody is there"
	if mode != "" {
		row.Detail = "'default' is interactive; the agent would ask, and nobody is there"
	}
	row.Fix = "set permission_mode: dontAsk"
	if c.Tier.Text == string(loop.TierUnattended) {
		row.Fix = "set permission_mode: bypassPermissions"
	}
	return row
}

func isolationRow(c Config) Row {
	if declaresIsolation(&c) {
		return Row{State: StateOK, Check: "isolation", Detail: "declared in escalation or scope"}
	}
	return Row{
		State: StateBad, Check: "isolation", Detail: "bypassPermissions at L3, and no isolation is declared",
		Fix: `add to escalation "runs only in a container", and see to it that it does`,
	}
}

func budgetRow(budget string, perRun int64) Row {
	// ParseInt reads a number that is too large as the largest.
	n, _ := strconv.ParseInt(budget, 10, 64)
	need := strconv.FormatInt(perRun, 10)
	if n >= perRun {
		return Row{State: StateOK, Check: "budget", Detail: Quote(budget) + " covers " + need + " tokens/run"}
	}
	return Row{
		State: StateBad, Check: "budget", Detail: Quote(budget) + " is less than " + need + " tokens/run of the pattern",
		Fix: "set budget_tokens: " + need,
	}
}

// GateProgram returns the program that a verify or guard command starts: its first
// word without a =, and without quotes. The word is empty if there is none. Skip is
// true for a command that is empty or a placeholder.
func GateProgram(command string) (word string, skip bool) {
	if !IsFilled(command) {
		return "", true
	}
	for command != "" {
		word, command = cutWord(command)
		if word != "" && !strings.Contains(word, "=") {
			return word, false
		}
	}
	return "", false
}

// cutWord cuts the first word off a command. White space in quotes is part of a word;
// a quote that is not closed is an ordinary character.
func cutWord(command string) (word, rest string) {
	command = strings.TrimSpace(command)
	var b strings.Builder
	for i := 0; i < len(command); i++ {
		switch c := command[i]; c {
		case ' ', '\t', '\n', '\r':
			return b.String(), command[i:]
		case '"', '\'':
			if length := strings.IndexByte(command[i+1:], c); length >= 0 {
				b.WriteString(command[i+1 : i+1+length])
				i += length + 1
				continue
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
