// Package checklist is a format of loops that pawl does not have: checklists/NAME.md makes a
// loop that works on one box at a time and ticks those that are done. A test adds it to the program
// as anybody would add one, with a folder and one line.
package checklist

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// Name is that of the format.
const Name = "checklist"

const dir = "checklists"

// Format is that of checklists.
func Format() format.Format {
	return format.Format{
		Name: Name, Protocol: protocol{}, Files: files{},
		Memory: func(string) []string { return []string{dir} },
	}
}

// files are the Markdown files in checklists/.
type files struct{}

func fileOf(name string) string { return path.Join(dir, name+".md") }

// Place implements format.Files.
func (files) Place() format.Place {
	return format.Place{Elsewhere: "only the files of " + dir + "/ have"}
}

// Find implements format.Files.
func (f files) Find(root string) (found []format.Source, err error) {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err := format.Unlistable("list checklists", err); err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".md")
		if s, there, _ := f.FindNamed(root, name); is && there {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, format.Source.Compare)
	return found, nil
}

// FindNamed implements format.Files.
func (files) FindNamed(root, name string) (format.Source, bool, error) {
	s := format.Source{Name: name, Format: Name, File: filepath.FromSlash(fileOf(name)), Infos: format.Lstat(root, fileOf(name))}
	return s, s.Infos.Exist(), nil
}

// Read implements format.Files.
func (f files) Read(root string, s format.Source) (format.Text, error) {
	body, err := definition.Read(filepath.Join(root, s.File))
	if errors.Is(err, loop.ErrNotFound) {
		err = f.Missing(root, s.Name)
	}
	return format.Text{File: s.File, Body: body, Document: func(called string, body []byte) (*definition.Document, error) {
		return document(called, s.Name, body)
	}}, err
}

// Missing implements format.Files.
func (files) Missing(_, name string) *loop.Fault {
	return &loop.Fault{Exit: loop.ExitNotFound, What: "the checklist " + name + " cannot run", Why: "there is no " + fileOf(name), Fix: "put the file back", Err: loop.ErrNotFound}
}

// document completes the keys at the top of a checklist. Its first heading is the goal.
func document(called, name string, body []byte) (*definition.Document, error) {
	doc := &definition.Document{}
	if keys, _, is := bytes.Cut(bytes.TrimPrefix(body, []byte("---\n")), []byte("\n---\n")); is && bytes.HasPrefix(body, []byte("---\n")) {
		var err error
		if doc, err = definition.Parse(called, append([]byte("\n"), keys...)); err != nil { // Lines keep their numbers.
			return nil, err
		}
	}
	doc.OfFormat(Name)
	for _, d := range [][2]string{
		{"name", name},
		{"pattern", "custom"},
		{"tier", string(loop.TierAssisted)},
		{"goal", heading(body)},
		{"permission_mode", "dontAsk"},
		{"worktree", "true"},
		{"escalation", "whatever is outside of the scope"},
		{"kill_switch", ".loops/" + name + "/PAUSED exists"},
	} {
		doc.Default(d[0], d[1])
	}
	doc.MakeOptional("cadence", "budget_tokens", "verify", "guard", "land_via")
	doc.Include("protect", fileOf(name))
	return doc, nil
}

func heading(body []byte) string {
	for line := range strings.Lines(string(body)) {
		if title, is := strings.CutPrefix(line, "# "); is {
			return strings.TrimSpace(title)
		}
	}
	return "Work on the boxes that are not ticked."
}

// protocol works on one box at a time.
type protocol struct{}

// Open implements engine.Protocol.
func (protocol) Open(_ context.Context, v engine.View) (engine.Session, error) {
	file, err := v.Files.Read(fileOf(v.Loop.Name))
	switch {
	case err == nil && !file.Exists:
		err = fs.ErrNotExist
	case err == nil && file.TooBig:
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, &engine.OpenError{Outcome: loop.OutcomeEscalated, Reason: loop.ReasonMemory, Detail: fileOf(v.Loop.Name) + ": " + err.Error()}
	}
	s := &session{v: v, before: file.Content, text: file.Content, rows: map[string]loop.Step{}}
	for _, row := range v.Steps {
		s.rows[row.Key] = row
	}
	return s, nil
}

// session is one run on a checklist.
type session struct {
	v      engine.View
	before string // the file as it was read
	text   string // and as it is to be
	rows   map[string]loop.Step
}

// box is a line of the checklist.
type box struct {
	key, text string
	ticked    bool
}

var boxLine = regexp.MustCompile(`(?m)^(\s*[-*+] \[)([ xX])(\] +)(\S.*?)[ \t\r]*$`)

func boxes(text string) (list []box) {
	for _, m := range boxLine.FindAllStringSubmatch(text, -1) {
		sum := sha256.Sum256([]byte(m[4]))
		list = append(list, box{"box-" + hex.EncodeToString(sum[:6]), m[4], m[2] != " "})
	}
	return list
}

// tick ticks the box with that key.
func (s *session) tick(key string) {
	s.text = boxLine.ReplaceAllStringFunc(s.text, func(line string) string {
		if boxes(line)[0].key == key {
			return boxLine.ReplaceAllString(line, "${1}x${3}${4}")
		}
		return line
	})
}

// Recovered implements engine.Session.
func (s *session) Recovered() []engine.Repair { return nil }

// Sources implements engine.Session.
func (s *session) Sources() []engine.Source {
	if s.v.Definition.Sense == "" {
		return nil
	}
	return []engine.Source{{Name: "sense", Command: s.v.Definition.Sense, Quiet: engine.QuietOnEmpty}}
}

// Candidates implements engine.Session.
func (s *session) Candidates(engine.Sensed, time.Time) (list []plan.Candidate) {
	for _, b := range boxes(s.text) {
		if b.ticked {
			continue
		}
		row, known := s.rows[b.key]
		if !known {
			row = loop.Step{Key: b.key, Kind: loop.StepWork, State: loop.StepOpen}
		}
		row.Title = b.text
		list = append(list, plan.Candidate{Step: row, Detail: "its box is not ticked", Memory: b.text})
	}
	return list
}

// Begin implements engine.Session.
func (s *session) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	return nil, engine.Brief{
		Goal: envelope.Field{Text: s.v.Definition.Goal, By: s.v.Definition.GoalAuthor()}, Task: envelope.Field{Text: ch.Step.Title, By: ch.Step.Author()},
		Memory: []engine.Block{{Label: fileOf(s.v.Loop.Name), Text: s.text}},
	}, nil
}

// Record implements engine.Session.
func (s *session) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	s.rows[r.Settlement.Step.Key] = r.Settlement.Step
	if r.Proposal == nil {
		return nil, nil
	}
	return nil, []loop.EffectRequest{*r.Proposal}
}

// Close implements engine.Session: what is done is ticked.
func (s *session) Close(engine.Summary) []loop.Change {
	for _, b := range boxes(s.text) {
		if !b.ticked && s.rows[b.key].State == loop.StepDone {
			s.tick(b.key)
		}
	}
	if s.text == s.before {
		return nil
	}
	return []loop.Change{{Kind: loop.ChangeEdit, Path: fileOf(s.v.Loop.Name), Before: s.before, Content: s.text}}
}
