package loopspec

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/shell"
)

// Machine answers what only a machine or another package knows. A nil function is not
// asked, and what it would say is taken to be fine.
type Machine struct {
	Executable func(word string) bool                          // a program that gates can start: a name in PATH, or a path
	Compile    func(check string) (problem string, offset int) // what is wrong with an invariant, and at which byte of its expression; empty: nothing
	IsCommand  func(check string) bool                         // an invariant of another program is a command line; only Adopt asks
	Model      func(agent string) string                       // that an agent asks, or the configured critic for an empty name; empty: it is not known
	Named      func(command string) bool                       // a memory or a file has the command, or a person said it; only Generated asks
}

// Validate returns everything that is wrong with a spec whose absent fields have their
// defaults, and notes about what it will not do. Paths of findings are those of its
// JSON; Document.Locate adds the places.
func Validate(s Spec, m Machine) []Finding {
	v := validator{spec: s, machine: m}
	v.checkTexts()
	v.checkIdentity()
	v.checkBudget()
	rules, findings := s.Rules()
	v.findings = append(v.findings, findings...)
	v.checkGates()
	v.checkDone()
	v.checkSource(rules)
	if !Refused(findings) {
		v.checkContradictions(rules)
	}
	v.checkFamily()
	if size := len(Encode(s)); size > MaxBytes {
		v.report("", "%d bytes are more than the %d that a spec may have", size, MaxBytes)
	}
	return v.findings
}

type validator struct {
	spec     Spec
	machine  Machine
	findings []Finding
}

func (v *validator) report(path, format string, args ...any) {
	v.findings = append(v.findings, Finding{Path: path, Message: messageOf(format, args...)})
}

func (v *validator) note(path, format string, args ...any) {
	v.findings = append(v.findings, Finding{Path: path, Note: true, Message: messageOf(format, args...)})
}

// checkTexts refuses what not every database can keep.
func (v *validator) checkTexts() {
	s := &v.spec
	texts := map[string]string{
		"id": s.ID, "agentId": s.AgentID, "goal": s.Goal, "trigger.on": s.Trigger.On, "stateSource": s.StateSource, "giveUp": s.GiveUp, "errorPolicy": s.ErrorPolicy,
		"humanGate": s.HumanGate, "memoryWrites": s.MemoryWrites, "parentId": s.ParentID, "boardEntry": s.BoardEntry,
	}
	for i, text := range s.Guardrails {
		texts[fmt.Sprintf("guardrails[%d]", i)] = text
	}
	for i, g := range s.Gates {
		at := fmt.Sprintf("gates[%d].", i)
		texts[at+"check"], texts[at+"reviewer.agent"], texts[at+"reviewer.model"] = g.Check, g.Reviewer.Agent, g.Reviewer.Model
	}
	var bad []string
	for path, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			bad = append(bad, path)
		}
	}
	slices.Sort(bad)
	for _, path := range bad {
		v.report(path, "contains a NUL or is not UTF-8")
	}
}

func (v *validator) checkIdentity() {
	s := &v.spec
	if s.ID != "" && !IsID(s.ID) {
		v.report("id", "%s is not the id of a spec; remove it, and a new one is made", readiness.Quote(s.ID))
	}
	switch {
	case isBlank(s.AgentID):
		v.report("agentId", "required: the agent that does the work")
	case strings.ContainsAny(s.AgentID, " \t\r\n"):
		v.report("agentId", "%s is not the name of an agent: it has white space", readiness.Quote(s.AgentID))
	}
	if isBlank(s.Goal) {
		v.report("goal", "required: the end state that is wanted, in plain language")
	}
	checkWord(v, "loopType", s.LoopType, loop.Deterministic, loop.Nondeterministic)
	checkWord(v, "trigger.type", s.Trigger.Type, TriggerManual, TriggerSchedule, TriggerEvent)
	checkWord(v, "role", s.Role, RoleMonitor, RoleWorker, RoleCoordinator, RoleStandalone)
	checkWord(v, "concurrency", s.Concurrency, Sequential, Parallel)
	switch {
	case s.CreatedAt < 0:
		v.report("createdAt", "%d is before 1970; times are Unix milliseconds", s.CreatedAt)
	case s.UpdatedAt < s.CreatedAt:
		v.report("updatedAt", "is before createdAt")
	}
}

// checkWord reports a value that is not one of those allowed.
func checkWord[T ~string](v *validator, path string, word T, allowed ...T) {
	if slices.Contains(allowed, word) {
		return
	}
	var names []string
	for _, a := range allowed {
		names = append(names, string(a))
	}
	if word == "" {
		v.report(path, "required; there are: %s", strings.Join(names, ", "))
		return
	}
	v.report(path, "%s is unknown; %s", readiness.Quote(string(word)), readiness.Suggest(string(word), names))
}

// Largest numbers of a budget.
const (
	mostIterations = 1_000_000
	mostWallClock  = 10 * 365 * 24 * 3600 * 1000
)

func (v *validator) checkBudget() {
	for _, b := range []struct {
		name           string
		n, least, most int64
	}{
		{"maxIterations", v.spec.Budget.MaxIterations, 1, mostIterations},
		{"maxTokens", v.spec.Budget.MaxTokens, 1, mostExact},
		{"maxWallClockMs", v.spec.Budget.MaxWallClockMs, 1, mostWallClock},
		{"maxItems", v.spec.Budget.MaxItems, 0, mostIterations},
	} {
		if b.n < b.least || b.n > b.most {
			v.report("budget."+b.name, "%d must be from 1 to %d", b.n, b.most)
		}
	}
}

func (v *validator) checkGates() {
	kinds := []loop.GateKind{loop.GateCommand, loop.GateInvariant, loop.GateReviewer}
	var names []string
	for i, g := range v.spec.Gates {
		at := fmt.Sprintf("gates[%d].", i)
		switch {
		case !isGateName(g.Name):
			v.report(at+"name", "%s is not the name of a gate; write letters, digits, _ and -, a letter first, 64 at most", readiness.Quote(g.Name))
		case slices.Contains(ownNames, g.Name):
			v.report(at+"name", "%s is what the runtime calls a check of its own; write another name", readiness.Quote(g.Name))
		case slices.Contains(names, g.Name):
			v.report(at+"name", "%s is the name of another gate; give each its own", readiness.Quote(g.Name))
		}
		names = append(names, g.Name)
		checkWord(v, at+"kind", g.Kind, kinds...)
		switch {
		case isBlank(g.Check), isBlank(GateText(g.Check)):
			v.report(at+"check", "required: %s", whatToCheck(g.Kind))
		case g.Kind == loop.GateCommand:
			v.checkCommand(at+"check", g.Check)
		case g.Kind == loop.GateInvariant:
			v.checkInvariant(at+"check", g.Check)
		}
		v.checkReviewer(at+"reviewer", g)
	}
}

// ownNames are what results name that no gate of a spec has decided.
var ownNames = []string{"agent", "changes", "scope"}

func isGateName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && len(name) <= 64 && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+"0123456789_-") == ""
}

func whatToCheck(k loop.GateKind) string {
	switch k {
	case loop.GateInvariant:
		return "an expression, like `diff.files <= 3`"
	case loop.GateReviewer:
		return "what the reviewer has to find"
	case loop.GateCommand:
	}
	return "a command, like `go test ./...`"
}

// checkCommand refuses a check that is a sentence, which the shell would try to run.
func (v *validator) checkCommand(path, check string) {
	text := GateText(check)
	offset := strings.Index(check, text)
	report := func(format string, args ...any) {
		v.findings = append(v.findings, Finding{
			Path: path, Offset: offset, Message: messageOf(format, args...) + "; write a command in backticks, like `go test ./...`",
		})
	}
	word, ok := firstWord(text)
	switch {
	case !ok:
		report("%s cannot be read by the shell", readiness.Quote(text))
	case word == "" || slices.Contains(builtins, word) || v.machine.Executable == nil || v.machine.Executable(word):
	default:
		report("%s is not a program that can be run here", readiness.Quote(word))
	}
}

// builtins are commands of the shell itself that a gate may begin with.
var builtins = strings.Fields(": . [ cd command echo eval exec exit export false printf set test true")

// firstWord returns the program of the first command of a text for the shell; empty if
// only the shell knows it. It reports false if the shell cannot read the text.
func firstWord(text string) (string, bool) {
	if _, err := shell.Parse(text); err != nil {
		return "", false
	}
	commands := shell.Commands(text)
	if len(commands) == 0 {
		return "", true
	}
	return commands[0][0], true
}

func (v *validator) checkInvariant(path, check string) {
	if v.machine.Compile == nil {
		return
	}
	text := GateText(check)
	problem, at := v.machine.Compile(check)
	if problem == "" {
		return
	}
	v.findings = append(v.findings, Finding{Path: path, Offset: strings.Index(check, text) + at, Message: messageOf("%s", problem)})
}

// checkReviewer refuses a reviewer that is the maker, or that asks the maker's model.
func (v *validator) checkReviewer(path string, g loop.Gate) {
	r := g.Reviewer
	if g.Kind != loop.GateReviewer {
		if r != (loop.Reviewer{}) {
			v.report(path, "only a gate of the kind %s has a reviewer; remove it", loop.GateReviewer)
		}
		return
	}
	if r.Model == "" && r.Agent == v.spec.AgentID && r.Agent != "" {
		v.report(path+".agent", "%s does the work, and may not review it; name another agent, or another model", readiness.Quote(r.Agent))
		return
	}
	maker, theirs := v.modelOf(v.spec.AgentID), r.Model
	switch {
	case r.Model != "":
		path += ".model"
	case r.Agent != "":
		path, theirs = path+".agent", v.modelOf(r.Agent)
	default:
		theirs = v.modelOf("")
	}
	if maker != "" && strings.EqualFold(strings.TrimSpace(theirs), maker) {
		v.report(path, "%s is the model that does the work; name another one", readiness.Quote(theirs))
	}
}

func (v *validator) modelOf(agent string) string {
	if v.machine.Model == nil {
		return ""
	}
	return strings.TrimSpace(v.machine.Model(agent))
}

// checkDone notes why no verdict can be a pass.
func (v *validator) checkDone() {
	s := &v.spec
	const ends = "its verdict is pending at best, and a human decides"
	switch {
	case len(s.Gates) == 0:
		v.note("gates", "without a gate %s", ends)
	case s.LoopType == loop.Deterministic && !s.hasKind(loop.GateCommand, loop.GateInvariant):
		v.note("gates", "a deterministic loop without a command or an invariant: %s", ends)
	case s.LoopType == loop.Nondeterministic && !s.hasKind(loop.GateReviewer):
		v.note("gates", "a nondeterministic loop without a reviewer: %s", ends)
	}
}

func (v *validator) checkSource(r Rules) {
	if r.StateSource.Kind == SenseTestOutput && !v.spec.hasKind(loop.GateCommand) {
		v.report("stateSource", "test output runs the first command gate, and the spec has no command gate; add one, or write the command in backticks")
	}
}

// checkContradictions refuses rules of which one forbids what another one asks for.
func (v *validator) checkContradictions(r Rules) {
	g, human := r.Guardrails, readiness.Quote(v.spec.HumanGate)
	moves := r.HumanGate.Gate != loop.HumanGateAccept
	against := func(holds bool, entry string) {
		if holds {
			v.report("humanGate", "%s contradicts the guardrail %s; remove one of them", human, readiness.Quote(entry))
		}
	}
	against(moves && g.NoBranch, "prepare output, do not commit")
	against(moves && g.ReportOnly, "digest only, no outside notification")
	against(r.HumanGate == landOnBase && g.Denies(loop.DenyMerge), "no merge")
	against(r.HumanGate == openPull && g.Denies(loop.DenyPush), "no push")
	if moves && len(g.Scope) == 0 {
		v.report("humanGate", "%s needs changes, and nothing may be written; add a guardrail like 'edits limited to /src and /tests'", human)
	}
	if g.ReportOnly && len(g.Scope) > 0 {
		v.report("guardrails", "'edits limited to …' contradicts 'digest only, no outside notification'; remove one of them")
	}
	for i, text := range v.spec.Guardrails {
		if m, ok := matchPhrase(FieldGuardrail, text, wordsOf(text), 0); ok && m.row.value == guardNote {
			v.note(fmt.Sprintf("guardrails[%d]", i), "not enforced: the agent and the reviewer read it")
		}
	}
}

// checkFamily checks the parent and the children of a spec.
func (v *validator) checkFamily() {
	s := &v.spec
	switch {
	case s.ParentID == "":
	case !IsID(s.ParentID):
		v.report("parentId", "%s is not the id of a spec", readiness.Quote(s.ParentID))
	case s.ParentID == s.ID:
		v.report("parentId", "a spec is not its own parent")
	case s.Role != RoleWorker:
		v.report("role", "a spec with a parent is a %s, not a %s", RoleWorker, s.Role)
	case s.Trigger.Type != TriggerManual:
		v.report("trigger.type", "a spec with a parent is started by it: write %s", TriggerManual)
	}
	if len(s.ChildIDs) > 0 && !s.Role.maySpawn() {
		v.report("childIds", "a %s has no children; only a %s or a %s has", s.Role, RoleMonitor, RoleCoordinator)
	}
	for i, child := range s.ChildIDs {
		at := fmt.Sprintf("childIds[%d]", i)
		switch {
		case !IsID(child):
			v.report(at, "%s is not the id of a spec", readiness.Quote(child))
		case child == s.ID:
			v.report(at, "a spec is not its own child")
		case slices.Contains(s.ChildIDs[:i], child):
			v.report(at, "%s is named twice", readiness.Quote(child))
		}
	}
}
