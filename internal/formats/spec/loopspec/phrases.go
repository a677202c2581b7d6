package loopspec

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Field is a text of a spec, or a part of one, that has a table of phrases.
type Field string

// The fields that have one.
const (
	FieldGiveUp      Field = "giveUp"
	FieldConsequence Field = "giveUp after the arrow"
	FieldErrorPolicy Field = "errorPolicy"
	FieldErrorEnd    Field = "errorPolicy after then"
	FieldHumanGate   Field = "humanGate"
	FieldGuardrail   Field = "guardrails"
	FieldStateSource Field = "stateSource"
)

// Phrase is a row of the table of phrases. In Text, N is a number, and PATHS, PATH,
// COMMAND and TEXT are what the user writes; a part in brackets may be missing. The
// other words do not vary.
type Phrase struct {
	Field   Field  `json:"field"`
	Text    string `json:"phrase"`
	Meaning string `json:"meaning"`
	Default bool   `json:"default"` // an empty text means this row

	value any // what the row means, as the type that its field is parsed into
}

// What approval does with a result that leaves the workspace or moves a branch.
var (
	openPull   = HumanGate{Gate: loop.HumanGateDecide, LandVia: "pr"}
	landOnBase = HumanGate{Gate: loop.HumanGateDecide, LandVia: "human"}
)

// Phrases is the table of what the texts of a spec may say. The parser, its messages
// and the documents read it.
var Phrases = []Phrase{
	{FieldGiveUp, "same gate fails [N×] with no diff", "the same gate fails N times in a row, 3 unless a number is written, and nothing changes", true, loop.RepeatGateAndTree},
	{FieldGiveUp, "same gate [N×]", "the same gate fails N times in a row, whatever changes", false, loop.RepeatGate},
	{FieldGiveUp, "same gate fails [N×]", "the same", false, loop.RepeatGate},
	{FieldGiveUp, "same test [N×]", "the same test fails N times in a row; where no tests are known by name, the same gate", false, loop.RepeatTest},
	{FieldGiveUp, "same test fails [N×]", "the same", false, loop.RepeatTest},
	{FieldGiveUp, "N iterations without new findings", "N iterations in a row report nothing that was not seen before", false, loop.RepeatFindings},

	{FieldConsequence, "escalate", "it gives up, and a person gets a report of what was tried", true, loop.GiveUpRule{Then: loop.ThenEscalate}},
	{FieldConsequence, "stop", "it gives up, without a report", false, loop.GiveUpRule{Then: loop.ThenStop}},
	{FieldConsequence, "pause", "it is paused", false, loop.GiveUpRule{Then: loop.ThenPause}},
	{FieldConsequence, "pause and report", "it is paused, and a person gets a report of what was tried", false, loop.GiveUpRule{Then: loop.ThenPause, Report: true}},

	{FieldErrorPolicy, "retry N× with backoff", "up to N retries, the first after 1.5 s, each later one after twice as long", false, loop.ErrorPolicy{Wait: backoff, Doubling: true}},
	{FieldErrorPolicy, "retry N×", "up to N retries at once", false, loop.ErrorPolicy{}},
	{FieldErrorPolicy, "pause + log", "no retry: it is paused, and the error is in the log", false, loop.ErrorPolicy{Then: loop.PauseAndLog}},

	{FieldErrorEnd, "pause + log", "it is paused, and the error is in the log", true, loop.PauseAndLog},
	{FieldErrorEnd, "escalate", "it waits for a person, who gets the error", false, loop.HandOver},
	{FieldErrorEnd, "stop", "it gives up", false, loop.GiveUpAtOnce},

	{FieldHumanGate, "hand the result to a human", "approval accepts the result; nothing leaves, and no branch moves", true, HumanGate{Gate: loop.HumanGateAccept}},
	{FieldHumanGate, "hand a digest to a human", "the same", false, HumanGate{Gate: loop.HumanGateAccept}},
	{FieldHumanGate, "propose a branch, do not merge", "approval keeps the proposed branch as the accepted result; nothing is pushed or merged", false, HumanGate{Gate: loop.HumanGateKeep}},
	{FieldHumanGate, "propose, do not commit", "the same", false, HumanGate{Gate: loop.HumanGateKeep}},
	{FieldHumanGate, "open a PR, do not merge", "approval pushes the branch and opens a pull request; people merge it", false, openPull},
	{FieldHumanGate, "open a PR", "the same", false, openPull},
	{FieldHumanGate, "land after approval", "approval lands the tree that passed on the base", false, landOnBase},
	{FieldHumanGate, "merge after approval", "the same", false, landOnBase},

	{FieldGuardrail, "edits limited to PATHS", "only these paths may be changed, a directory with all below it; without such an entry nothing is written", false, guardScope},
	{FieldGuardrail, "no destructive actions", "irreversible actions, and the deletion of files that were there before the run, are refused", false, loop.DenyDestructive},
	{FieldGuardrail, "prepare output, do not commit", "no branch: what it makes is kept as output and as a snapshot", false, guardNoBranch},
	{FieldGuardrail, "digest only, no outside notification", "it only reports; the one message is the entry in the inbox", false, guardReportOnly},
	{FieldGuardrail, "no force-push", "a forced push is refused", false, loop.DenyForcePush},
	{FieldGuardrail, "no push", "a push is refused", false, loop.DenyPush},
	{FieldGuardrail, "no merge", "a merge is refused", false, loop.DenyMerge},
	{FieldGuardrail, "no deploy", "a deployment is refused", false, loop.DenyDeploy},
	{FieldGuardrail, "no network", "no host but the model's can be reached", false, loop.DenyNetwork},
	{FieldGuardrail, "note: TEXT", "advice, not enforced: the agent and the reviewer read it", false, guardNote},

	{FieldStateSource, "`COMMAND`", "the command's output and exit status; a failing command was sensed, too", false, SenseCommand},
	{FieldStateSource, "test output", "the same, with the command of the first command gate", false, SenseTestOutput},
	{FieldStateSource, "diff", "what the spec has changed so far", false, SenseDiff},
	{FieldStateSource, "queue: COMMAND", "one item for each line of output; no line and exit status 0: there is nothing to do", false, SenseQueue},
	{FieldStateSource, "memory", "what the agent remembers that fits the goal", false, SenseMemory},
	{FieldStateSource, "file: PATH", "the file; that it is missing is said", false, SenseFile},
}

// Example is the row as somebody may write it.
func (p Phrase) Example() string {
	return strings.NewReplacer(
		"[N×]", "3×", "N×", "3×", "N ", "3 ", "PATHS", "/src and /tests", "PATH", "notes.md", "queue: COMMAND", "queue: gh issue list", "COMMAND", "go test ./...",
		"TEXT", "be brief",
	).Replace(p.Text)
}

// PhrasesOf returns the rows of a field, in the order of the table.
func PhrasesOf(field Field) []Phrase {
	var rows []Phrase
	for _, p := range Phrases {
		if p.Field == field {
			rows = append(rows, p)
		}
	}
	return rows
}

var defaultTexts = map[Field]string{
	FieldGiveUp:      "same gate fails 3× with no diff → escalate",
	FieldErrorPolicy: "retry once w/ backoff, then pause + log",
	FieldHumanGate:   "hand the result to a human",
}

// DefaultText returns what an empty text of a field means, as the format writes it;
// empty: the field has no default.
func DefaultText(field Field) string { return defaultTexts[field] }

// writeOneOf is the fix for a text that has no row of a field.
func writeOneOf(field Field) string {
	fix := "write one of: " + examplesOf(field, "")
	switch field {
	case FieldGiveUp:
		fix += "; and after it, if you like, " + examplesOf(FieldConsequence, "→ ")
	case FieldErrorPolicy:
		fix += "; after a retry " + examplesOf(FieldErrorEnd, "then ")
	case FieldConsequence, FieldErrorEnd, FieldHumanGate, FieldGuardrail, FieldStateSource:
	}
	return fix
}

// examplesOf lists the rows of a field as examples, each after a joiner.
func examplesOf(field Field, joiner string) string {
	var texts []string
	for _, p := range PhrasesOf(field) {
		texts = append(texts, joiner+p.Example())
	}
	return strings.Join(texts, " | ")
}
