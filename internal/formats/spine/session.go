package spine

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/stopline"
)

// PromptFile is the prompt of a loop, in its folder.
const PromptFile = "run.md"

// Keys of steps that are not items. Keys of items are in lower case, so that no text in
// a list can equal one of these.
const (
	// goalKey is the goal itself, which is worked on when Priority is empty. A loop
	// without a sense command has no other way to look.
	goalKey = "GOAL"
	// requestKey begins the key of what a person asked for.
	requestKey = "REQUEST: "
)

// goalItem is the item of Watch that says that the goal was handed to a human. While
// it is there, nobody has answered.
const goalItem = "The goal of this loop"

// logShown is how many lines of the run log an agent is shown.
const logShown = 10

// Protocol opens the memory of spine loops.
type Protocol struct{}

// CheckMerged returns an error if the files of a loop's memory have conflict markers of
// git: it is unknown which side counts. The error is a *loop.Fault with exit status 4.
func CheckMerged(files engine.Files, name string) error {
	for _, file := range []string{loop.StateFile, loop.LogFile} {
		path := path.Join(definition.Dir(name), file)
		read, err := files.Read(path)
		if err != nil {
			continue // Open returns this error.
		}
		if marks := definition.ConflictLines(read.Content, true); marks != nil {
			return &loop.Fault{
				Exit: loop.ExitUnreadable, What: path + " cannot be read", Why: definition.ConflictWords(marks),
				Fix: "resolve the conflict, and remove the markers",
			}
		}
	}
	return nil
}

// Open reads STATE.md and the end of run-log.md. A STATE.md that lacks a part is
// repaired. One that cannot be read is renamed and rebuilt from the rows, and a person
// has to look at it before anything else is done.
func (Protocol) Open(_ context.Context, v engine.View) (engine.Session, error) {
	stops, err := stopline.ParseConditions(v.Definition.StopLines)
	if err != nil {
		return nil, err
	}
	s := &session{stops: stops, v: v, rows: map[string]loop.Step{}, left: map[string]loop.StepState{}}
	for _, row := range v.Steps {
		s.rows[row.Key] = row
	}
	if err := CheckMerged(v.Files, v.Loop.Name); err != nil {
		return nil, err
	}
	file, err := v.Files.Read(s.filePath(loop.StateFile))
	if err != nil {
		return nil, err
	}
	s.before = file.Content
	switch {
	case !file.Exists && len(v.Recent) == 0:
		s.state = NewState(v.Loop.Name, "pawl")
	case !file.Exists:
		s.rebuildState("it was missing", "")
	case file.TooBig:
		s.putAside(fmt.Sprintf("it has more than %d bytes", projection.MaxFile))
	default:
		if s.state, err = ParseState(file.Content); err != nil {
			s.repairOrPutAside(err.Error())
		}
	}
	if err := s.readPrompt(); err != nil {
		return nil, err
	}
	if err := s.readLog(); err != nil {
		return nil, err
	}
	return s, nil
}

type session struct {
	v       engine.View
	rows    map[string]loop.Step
	left    map[string]loop.StepState // states of the steps that this run began, as it leaves them
	state   *State
	before  string // STATE.md as it was read, or as a repair leaves it
	log     string // the last lines of run-log.md
	role    string // run.md
	repairs []engine.Repair

	stops    []stopline.Line
	counters stopline.Counters
}

func (s *session) filePath(file string) string { return path.Join(definition.Dir(s.v.Loop.Name), file) }

// repairOrPutAside adds the parts that STATE.md lacks, or puts it aside if all
// sections are missing.
func (s *session) repairOrPutAside(why string) {
	state, did, lacked := repairState(s.v.Loop.Name, s.before)
	if state == nil {
		s.putAside(why)
		return
	}
	s.state = state
	if known := s.recallItems(lacked); known > 0 {
		did = append(did, fmt.Sprintf("%d items of them were found in the store", known))
	}
	text := s.state.String()
	s.repairs = append(s.repairs, engine.Repair{
		Changes: []loop.Change{{Kind: loop.ChangeEdit, Path: s.filePath(loop.StateFile), Before: s.before, Content: text}},
		Note:    loop.StateFile + " repaired: " + strings.Join(did, "; "),
	})
	s.before = text
}

// putAside renames the unreadable file and rebuilds it.
func (s *session) putAside(why string) {
	name := loop.StateFile + ".broken-" + s.v.Now.UTC().Format("20060102T150405Z")
	aside := loop.Change{Kind: loop.ChangeAside, Path: s.filePath(loop.StateFile), Before: s.before, Content: name}
	s.rebuildState(why+"; the old file is "+name,
		fmt.Sprintf("%s was put aside as %s (%s); move what counts into %[1]s", loop.StateFile, path.Join(definition.Dir(s.v.Loop.Name), name), why), aside)
}

// rebuildState makes STATE.md from the rows, or from the template if there are none.
// A text for a person, if any, goes to Watch.
func (s *session) rebuildState(why, escalate string, first ...loop.Change) {
	s.state = NewState(s.v.Loop.Name, "pawl")
	known := s.recallItems(sections)
	s.state.Add(SectionWatch, 0, escalate)
	if len(s.v.Recent) > 0 {
		last := s.v.Recent[0]
		s.state.SetHeader(last.Ended, last.N, last.Readiness)
	}
	text := s.state.String()
	s.repairs = append(s.repairs, engine.Repair{
		Changes:  append(first, loop.Change{Kind: loop.ChangeEdit, Path: s.filePath(loop.StateFile), Content: text}),
		Note:     fmt.Sprintf("%s rebuilt from the store with %d items: %s", loop.StateFile, known, why),
		Escalate: escalate,
	})
	s.before = text
}

// recallItems adds the items of these sections that the store has, and counts them.
func (s *session) recallItems(lost []Section) (known int) {
	for _, row := range s.v.Steps {
		if row.Key == goalKey && row.State == loop.StepEscalated {
			row.Title = goalItem
		} else if row.Key == goalKey || strings.HasPrefix(row.Key, requestKey) || row.State == loop.StepDone {
			continue
		}
		section := SectionPriority
		if row.State == loop.StepEscalated || row.State == loop.StepWaiting {
			section = SectionWatch
		}
		if slices.Contains(lost, section) && s.state.Add(section, 0, row.Title) {
			known++
		}
	}
	return known
}

func (s *session) readLog() error {
	file, err := s.v.Files.Read(s.filePath(loop.LogFile))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(file.Content, "\n"), "\n")
	s.log = strings.Join(lines[max(0, len(lines)-logShown):], "\n")
	s.healLog(file.Content)
	return nil
}

func (s *session) readPrompt() error {
	file, err := s.v.Files.Read(s.filePath(PromptFile))
	s.role = strings.TrimSpace(file.Content)
	return err
}

// Recovered implements engine.Session.
func (s *session) Recovered() []engine.Repair { return s.repairs }

// Sources implements engine.Session: the definition's sense command, or its gates. If
// the gates pass, the items in Priority are still worked on, and so is a request of a
// person.
func (s *session) Sources() []engine.Source {
	d := s.v.Definition
	src := engine.Source{Name: "sense", Command: d.SenseCommand(), Quiet: engine.QuietOnEmpty}
	switch {
	case d.Sense == "":
		return nil
	case d.Sense == loop.SenseGates && len(s.state.Priority()) == 0:
		src.Gates, src.Quiet = true, engine.QuietOnPass
	case d.Sense == loop.SenseGates:
		src.Gates, src.Quiet = true, engine.QuietNever
	}
	if s.v.Run.Request != "" {
		src.Quiet = engine.QuietNever
	}
	return []engine.Source{src}
}

// Candidates implements engine.Session: the request, then Priority from the
// top, and the goal itself when there is neither. None of them may be worked on when a stop
// line was crossed.
func (s *session) Candidates(_ engine.Sensed, now time.Time) []plan.Candidate {
	var list []plan.Candidate
	if req := s.v.Run.Request; req != "" {
		step := s.itemStep(requestKey+ItemKey(req), oneLine(req)).WrittenBy(s.v.Run.Requester())
		list = append(list, plan.Candidate{Step: step, Detail: envelope.Field{By: step.Author()}.Asker() + " asks for it in this run"})
	}
	priority := s.state.Priority()
	for _, it := range priority {
		c := plan.Candidate{Step: s.itemStep(it.Key, it.Text)}
		if it.Priority > 0 {
			c.Detail = fmt.Sprintf("priority %d of the Priority list", it.Priority)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		list = append(list, plan.Candidate{
			Step: s.goalStep(), Detail: "Priority is empty, so the goal itself is the step", Memory: s.role,
			Depends: true, // Changes of an item are on the base only after a person approved them.
		})
	}
	s.counters.Minutes = now.Sub(s.v.Run.Started).Minutes()
	if crossed := stopline.Judge(s.stops, s.counters); len(crossed) > 0 {
		for i := range list {
			list[i].Drop, list[i].Detail, list[i].Ends = loop.ReasonStopLine, crossed[0].String(), loop.OutcomeGaveUp
		}
	}
	for _, section := range []Section{SectionWatch, SectionNoise} {
		for _, it := range s.state.Items(section) {
			list = append(list, plan.Candidate{
				Step: s.itemStep(it.Key, it.Text), Drop: loop.ReasonNotEligible, Detail: "it is in " + string(section) + ", not in Priority",
			})
		}
	}
	return list
}

// itemStep returns the row of an item. An item of Priority that is settled in the rows
// was put there again and starts as new.
func (s *session) itemStep(key, title string) loop.Step {
	row, ok := s.rows[key]
	if !ok {
		row = loop.Step{Key: key, State: loop.StepOpen, Kind: loop.StepWork}
	}
	row.Title = title
	switch row.State {
	case loop.StepDone, loop.StepDropped, loop.StepEscalated:
		return row.AsNew()
	case loop.StepOpen, loop.StepClaimed, loop.StepBlocked, loop.StepFailed, loop.StepWaiting:
	}
	return row
}

// goalStep returns the row of the goal, which nobody can put into a list again. It is
// worked on again when its inputs have changed. If it was handed to a human, it is also
// worked on again when somebody has removed goalItem.
func (s *session) goalStep() loop.Step {
	row := s.rows[goalKey]
	fresh := s.itemStep(goalKey, oneLine(s.v.Definition.Goal))
	if row.Inputs == "" {
		return fresh
	}
	row.Title = fresh.Title
	handed := s.state.hasItem(ItemKey(goalItem))
	switch row.State {
	case loop.StepEscalated, loop.StepFailed, loop.StepBlocked:
		if handed {
			row.State = loop.StepEscalated
			return row
		}
	case loop.StepDone:
		return row
	case loop.StepOpen, loop.StepClaimed, loop.StepWaiting, loop.StepDropped:
	}
	return fresh
}

// Begin implements engine.Session. A spine loop writes nothing before it acts.
func (s *session) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	s.left[ch.Step.Key] = loop.StepClaimed
	d := s.v.Definition
	rules := []string{"Hand over instead of doing: " + d.Escalation}
	if len(d.StopLines) > 0 {
		rules = append(rules, "The run halts at these stop lines: "+strings.Join(d.StopLines, ", ")+`. Say in your report how sure you are of your work, as "confidence": from 0 to 1.`)
	}
	brief := engine.Brief{
		Goal: envelope.Field{Text: d.Goal, By: d.GoalAuthor()}, Role: s.role, Rules: rules, Task: envelope.Field{Text: ch.Step.Title, By: ch.Step.Author()},
		Memory: []engine.Block{{Label: loop.StateFile, Text: s.before}, {Label: "the end of " + loop.LogFile, Text: s.log}},
	}
	if len(s.v.Recent) > 0 && !s.v.Recent[0].Outcome.IsSuccess() {
		last := s.v.Recent[0]
		text := fmt.Sprintf("run #%d ended %s: %s", last.N, last.Outcome, last.Detail)
		if last.Snapshot != "" {
			text += "; its work is kept in " + last.Snapshot
		}
		brief.Memory = append(brief.Memory, engine.Block{Label: "The run before this one", Text: text})
	}
	return nil, brief, nil
}

// Record implements engine.Session: a gated tree goes on a branch of its own.
func (s *session) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	s.left[r.Settlement.Step.Key] = r.Settlement.Step.State
	s.counters.Add(r.Iteration)
	if r.Proposal == nil {
		return nil, nil
	}
	return nil, []loop.EffectRequest{*r.Proposal}
}

// Close implements engine.Session: STATE.md is rewritten and one line appended
// to run-log.md, whatever the outcome.
func (s *session) Close(sum engine.Summary) []loop.Change {
	had := s.priorityKeys()
	s.moveItems(sum)
	s.state.SetHeader(sum.Now, sum.Run.N, sum.Run.Readiness)
	changes := []loop.Change{{
		Kind: loop.ChangeEdit, Path: s.filePath(loop.StateFile), Before: s.before, Content: s.state.String(),
	}}
	changes = append(append(changes, s.dropMissingRows(sum)...), s.recordAuthors(had, sum)...)
	if sum.Run.Outcome.Meaning().Action == "" {
		return changes
	}
	return append(changes, s.logLine(sum.Run, sum.Now))
}

// CloseUnopened appends the run's line to run-log.md. STATE.md stays as it is, because
// it is unknown what it should become. If the log cannot be read, the first run that
// can read it adds the line.
func (Protocol) CloseUnopened(v engine.View, sum engine.Summary) []loop.Change {
	s := &session{v: v}
	if _, err := v.Files.Read(s.filePath(loop.LogFile)); err != nil || sum.Run.Outcome.Meaning().Action == "" {
		return nil
	}
	return []loop.Change{s.logLine(sum.Run, sum.Now)}
}

func (s *session) priorityKeys() map[string]bool {
	keys := map[string]bool{}
	for _, it := range s.state.Priority() {
		keys[it.Key] = true
	}
	return keys
}

// recordAuthors makes rows of the items that the agent has put into Priority in this run, so
// that no later run takes them for a person's. Those that it worked on have newer rows.
func (s *session) recordAuthors(had map[string]bool, sum engine.Summary) (changes []loop.Change) {
	for _, it := range sum.Iterations {
		had[ItemKey(it.Step)] = true
	}
	for _, it := range s.state.Priority() {
		if had[it.Key] {
			continue
		}
		row, known := s.rows[it.Key]
		if !known {
			row = loop.Step{ID: engine.StepID(s.v.Loop.ID, it.Key), LoopID: s.v.Loop.ID, Key: it.Key, Kind: loop.StepWork, State: loop.StepOpen}
		}
		row.Title = it.Text
		row = row.WrittenBy(loop.RoleAgent)
		changes = append(changes, loop.Change{Kind: loop.ChangeStep, Step: &row})
	}
	return changes
}

func runSubject(r loop.Run) string {
	subject := r.Subject()
	if subject == "" && r.Commit != "" {
		return "branch=" + r.Branch
	}
	return subject
}

// moveItems replaces the lists by those of the agent's report, if it has lists, and
// then moves the items that the run settled. Items for a human say why.
func (s *session) moveItems(sum engine.Summary) {
	for _, it := range sum.Iterations {
		s.adoptReport(it)
	}
	if sum.Run.Request != "" {
		s.state.Remove(ItemKey(goalItem)) // A person has answered, by asking for something.
	}
	over := sum.Run.Outcome == loop.OutcomeEscalated || sum.Run.Outcome == loop.OutcomeGaveUp
	if over && len(sum.Iterations) == 0 {
		s.state.Add(SectionWatch, 0, fmt.Sprintf("Run #%d escalated: %s", sum.Run.N, sum.Run.Detail))
	}
	for i, it := range sum.Iterations {
		item, row := it.Step, ItemKey(it.Step)
		switch {
		case s.state.hasItem(row):
		case it.Step == oneLine(s.v.Definition.Goal):
			item, row = goalItem, goalKey
			s.state.Remove(ItemKey(goalItem))
		case it.Step == oneLine(sum.Run.Request):
			row = requestKey + row
		default:
			continue // The agent's own lists no longer have it.
		}
		key := ItemKey(item)
		first := slices.ContainsFunc(s.state.Items(SectionPriority), func(item Item) bool { return item.Key == key })
		switch {
		case it.Verdict == loop.VerdictPass && !first:
		case it.Verdict == loop.VerdictPass && sum.Run.Outcome == loop.OutcomeDone:
			s.state.Move(key, SectionNoise)
		case it.Verdict == loop.VerdictPass && (sum.Run.Outcome.IsSuccess() || isProposed(sum, it)):
			s.state.Move(key, SectionWatch) // A human looks at the branch or the report next.
		case over || s.wasEscalated(row):
			if first {
				s.state.Move(key, SectionWatch)
			}
			why := cmp.Or(it.Feedback, it.Reason.Sentence())
			if over && i == len(sum.Iterations)-1 {
				why = cmp.Or(sum.Run.Detail, why)
			}
			s.state.Add(SectionWatch, 0, item)
			s.state.SetNote(key, sum.Run.N, strings.SplitN(why, "\n", 2)[0])
			continue
		}
		if it.Verdict == loop.VerdictPass {
			s.state.SetNote(key, 0, "")
		}
	}
}

// isProposed reports whether the tree of an iteration is on a branch, however its run
// ended.
func isProposed(sum engine.Summary, it loop.Iteration) bool {
	return slices.ContainsFunc(sum.Effects, func(e loop.Effect) bool {
		return e.Kind == effect.KindPropose && e.State == loop.EffectDone && e.Args[effect.ArgTree] == it.Tree
	})
}

// wasEscalated reports whether the run handed an item to a human, also if another item
// made the run a success. A session that did not see the run uses the row.
func (s *session) wasEscalated(key string) bool {
	state, seen := s.left[key]
	if !seen {
		state = s.rows[key].State
	}
	return state == loop.StepEscalated
}

// dropMissingRows drops the rows of items that are in no list any more. Items that this
// run worked on are left to the engine, whose rows are newer.
func (s *session) dropMissingRows(sum engine.Summary) []loop.Change {
	kept := map[string]bool{goalKey: true}
	for _, section := range sections {
		for _, it := range s.state.Items(section) {
			kept[it.Key] = true
		}
	}
	for _, it := range sum.Iterations {
		kept[ItemKey(it.Step)] = true
	}
	var changes []loop.Change
	for _, row := range s.v.Steps {
		if !kept[row.Key] && loop.MayChange("step", row.State, loop.StepDropped) && !strings.HasPrefix(row.Key, requestKey) {
			row.State, row.By = loop.StepDropped, "" // Whoever writes it again is its author.
			changes = append(changes, loop.Change{Kind: loop.ChangeStep, Step: &row})
		}
	}
	return changes
}
