package spine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Scaffold returns the four files of a new loop, in the order in which they should be
// written: the definition is last, because it makes the folder a loop. The same
// request gives the same bytes. A refused request is a *loop.Fault with exit status 2,
// also if a value cannot be written so that readers return exactly the same value.
func Scaffold(b format.LoopRequest) ([]format.NewFile, error) {
	s, err := newTemplateData(b)
	if err != nil {
		return nil, err
	}
	config := []byte(s.configText())
	if err := s.checkReadBack(config); err != nil {
		return nil, err
	}
	state := NewState(s.Name, "pawl")
	state.SetHeader(s.Now, 0, 100)
	return []format.NewFile{
		{Name: loop.StateFile, Body: []byte(state.String())},
		{Name: loop.LogFile, Body: []byte(runlog.Header(s.Name))},
		{Name: PromptFile, Body: []byte(s.promptText())},
		{Name: definition.ConfigFile, Body: config},
	}, nil
}

// templateData fills the texts of the files.
type templateData struct {
	format.LoopRequest
	Folder     string
	Mode       string // permission mode
	Budget     int64  // output tokens of a run
	KillSwitch string
	Gated      bool // L2 and above
	Tried      bool // verify and guard are written, because they judge or are sensed
	Alone      bool // L3

	written map[string][]string // values written so far, by key
}

// Placeholders for what a person still has to write.
const (
	blankGoal       = "<one sentence: what the loop does and what it must not do>"
	blankScope      = "<fill: globs that the loop may touch, like src/**>"
	blankEscalation = "<fill: what is handed to a human instead of done>"
	blankVerify     = "<fill: the command that judges the work, like go test ./...>"
	blankGuard      = "<fill: the command that must always pass, like go vet ./...>"
)

// sandboxEscalation is added to what a loop at L3 hands over.
const sandboxEscalation = ", anything that cannot be done inside its isolated sandbox"

func newTemplateData(b format.LoopRequest) (*templateData, error) {
	b.Pattern, b.Tier, b.Cadence = cmp.Or(b.Pattern, pattern.Custom), cmp.Or(b.Tier, loop.TierReport), cmp.Or(b.Cadence, "1h")
	if err := validate(b); err != nil {
		return nil, err
	}
	s := &templateData{
		LoopRequest: b, Folder: definition.Dir(b.Name), Mode: "dontAsk", KillSwitch: definition.Dir(b.Name) + "/PAUSED exists, OR the loop-pause label is set",
		Gated: b.Tier != loop.TierReport, Alone: b.Tier == loop.TierUnattended, written: map[string][]string{},
	}
	if s.Alone {
		s.Mode = "bypassPermissions"
	}
	p, known := pattern.Find(b.Pattern)
	if !known {
		p, _ = pattern.Find(pattern.Custom)
	}
	s.fillFromPattern(p)
	return s, nil
}

// fillFromPattern fills the empty fields of the request from a pattern.
func (s *templateData) fillFromPattern(p pattern.Pattern) {
	if s.Alone && p.Escalation != "" {
		p.Escalation += sandboxEscalation
	}
	s.Goal = cmp.Or(s.Goal, p.Goal, blankGoal)
	s.Escalation = cmp.Or(s.Escalation, p.Escalation, blankEscalation)
	s.Verify = cmp.Or(s.Verify, p.Verify, blankVerify)
	s.Guard = cmp.Or(s.Guard, p.Guard, blankGuard)
	if s.Gated {
		s.Sense = cmp.Or(s.Sense, p.Sense)
	}
	s.LandVia = cmp.Or(s.LandVia, "human")
	s.Budget = p.Budget
	s.Tried = s.Gated || s.Sense == loop.SenseGates
	if len(s.Scope) == 0 {
		s.Scope = []string{cmp.Or(p.Scope, blankScope)}
	}
}

var (
	kebabCase = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	cadences  = lazyregexp.New(`^([0-9]+[mhd]|[0-9 */,-]+)$`)
)

// validate refuses a request that cannot be a new loop, and text that looks different
// from what it is.
func validate(b format.LoopRequest) error {
	switch {
	case !kebabCase.MatchString(b.Name):
		return unusableValue("name", b.Name, "a name is lower-case words and digits joined by single hyphens", "write it like ci-watch")
	case !kebabCase.MatchString(b.Pattern):
		return unusableValue("pattern", b.Pattern, "a pattern is lower-case words joined by single hyphens",
			"use one of: "+strings.Join(pattern.Names(), ", "))
	case !b.Tier.IsKnown():
		return unusableValue("tier", string(b.Tier), "it is not one of L1, L2 and L3", "use L1, L2 or L3; every loop starts at L1")
	case !cadences.MatchString(b.Cadence):
		return unusableValue("cadence", b.Cadence, "it is neither an interval nor five cron fields of digits, spaces and * / , -",
			"write it like 10m, 6h, 1d or 0 9 * * 1-5")
	}
	if _, err := schedule.ParseFor(b.Cadence, b.Name); err != nil {
		return unusableValue("cadence", b.Cadence, err.Error(), "write it like 10m, 6h, 1d or 0 9 * * 1-5")
	}
	for _, v := range freeTexts(b) {
		if r, ok := findUnwritable(v.text); ok {
			return unusableValue(v.key, v.text, fmt.Sprintf("it holds %s, which readers drop or hide", r), "write it without")
		}
	}
	return nil
}

func unusableValue(key, value, why, fix string) error {
	return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%s %s cannot be used", key, readiness.Quote(value)), Why: why, Fix: fix}
}

type keyedText struct{ key, text string }

// freeTexts lists the texts of the request that a person writes freely.
func freeTexts(b format.LoopRequest) []keyedText {
	list := []keyedText{
		{"goal", b.Goal},
		{"escalation", b.Escalation},
		{"verify", b.Verify},
		{"guard", b.Guard},
		{"setup", b.Setup},
		{"setup", b.SetupFound},
		{"land_via", b.LandVia},
		{"sense", b.Sense},
		{"agent", b.Agent},
		{"agent_command", b.AgentCommand},
	}
	for _, glob := range b.Scope {
		list = append(list, keyedText{"scope", glob})
	}
	for _, name := range b.Env {
		list = append(list, keyedText{"env", name})
	}
	return list
}

// findUnwritable finds characters that some readers take for the end of a line, drop,
// or show in another order. The joiners of emoji are allowed.
func findUnwritable(text string) (string, bool) {
	for at, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[at:], "\uFFFD"):
			return "bytes that are not UTF-8", true
		case r == '\n', r == '\u200c', r == '\u200d', unicode.IsGraphic(r):
		default:
			return fmt.Sprintf("the character %U", r), true
		}
	}
	return "", false
}

func (s *templateData) writeEntry(key, value string) string {
	s.written[key] = []string{value}
	return definition.WriteEntry(key, value)
}

// writeBare writes an entry whose value is a word of YAML and not a text.
func (s *templateData) writeBare(key string, value any) string {
	text := fmt.Sprint(value)
	s.written[key] = []string{text}
	return key + ": " + text
}

func (s *templateData) writeList(key string, items []string) string {
	s.written[key] = items
	return definition.WriteList(key, items)
}

// commentedEntry is an entry that is commented out, on each of its lines.
func commentedEntry(key, value string) string {
	return "# " + strings.ReplaceAll(definition.WriteEntry(key, value), "\n", "\n# ")
}

// checkReadBack reads the definition back. One that says anything else than the
// request must not be written.
func (s *templateData) checkReadBack(config []byte) error {
	doc, err := definition.Parse(definition.ConfigFile, config)
	refused := &loop.Fault{Exit: loop.ExitUsage, What: "write the definition of " + s.Name, Err: err, Fix: "use shorter and simpler values"}
	switch {
	case err != nil:
		refused.Why = err.Error()
		return refused
	case doc.Notice != "":
		refused.Why = doc.Notice
		return refused
	}
	for _, key := range doc.Keys() {
		var got []string
		for _, v := range doc.List(key.Name) {
			got = append(got, v.Text)
		}
		if want := s.written[key.Name]; !slices.Equal(got, want) {
			return unusableValue(key.Name, strings.Join(want, " "), "readers would not give back exactly this text", "write it in one line, with one kind of quotes")
		}
	}
	if got, want := len(doc.Keys()), len(s.written); got != want {
		return fmt.Errorf("write the definition of %s: %d keys instead of %d", s.Name, got, want)
	}
	return nil
}
