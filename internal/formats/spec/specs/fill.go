package specs

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/record/memory"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// filling is what templates are filled with, and where it comes from.
type filling struct {
	loopspec.Task

	remembered []loop.Memory // entries of the memory that count

	paths    string            // where the paths come from
	commands map[string]string // where a command comes from that a memory or a file has, or that was said
}

// Where a part of a spec comes from, beside memories and files.
const (
	fromSaid    = "said" // a person wrote it
	fromDefault = "default"
	fromSources = "the source folders of the repository"
)

// fill finds what a template is filled with: what was said, then what is remembered, then what
// the repository says of itself.
func (s *Service) fill(f Fill, remembered []loop.Memory) (filling, error) {
	t := filling{
		Task: loopspec.Task{Goal: f.Goal, AgentID: f.Agent, Paths: f.Paths}, remembered: remembered, paths: fromSaid, commands: map[string]string{},
	}
	files, done, err := s.root()
	if err != nil {
		return t, err
	}
	defer done()
	repo := probe.Repository(files)
	proposed := repo.Proposal()
	var types, lints []probe.Command
	for _, stack := range repo.Stacks {
		for _, c := range []*probe.Command{stack.Test, stack.Typecheck, stack.Lint, stack.Build} {
			if c != nil {
				t.name(c.Line, placeOf(files, c.From))
			}
		}
		if stack.Typecheck != nil {
			types = append(types, *stack.Typecheck)
		}
		if stack.Lint != nil {
			lints = append(lints, *stack.Lint)
		}
	}
	passed := map[loopspec.Use]string{}
	for _, m := range memory.ForGoal(remembered, f.Goal, len(remembered)) {
		if m.Kind != loop.MemoryCommand || m.LoopID != "" || strings.Contains(m.Text, "`") {
			continue
		}
		gates := []string{m.Last.Gate}
		for _, by := range m.Sources {
			gates = append(gates, by.Gate)
		}
		t.name(m.Text, fmt.Sprintf("memory #%d", m.N))
		if use := loopspec.CommandUse(m.Text, gates...); passed[use] == "" {
			passed[use] = m.Text
		}
	}
	for _, c := range []struct {
		to    *string
		said  string
		use   loopspec.Use
		named []probe.Command
	}{
		{&t.Test, f.Test, loopspec.UseTest, []probe.Command{proposed.Verify}},
		{&t.TypeCheck, f.TypeCheck, loopspec.UseTypeCheck, types},
		{&t.Lint, f.Lint, loopspec.UseLint, lints},
		{&t.Coverage, f.Coverage, loopspec.UseCoverage, nil},
		{&t.Source, f.Source, loopspec.UseNone, nil},
	} {
		switch {
		case strings.TrimSpace(c.said) != "":
			*c.to = c.said
			t.commands[oneLine(c.said)] = fromSaid
		case c.use != loopspec.UseNone && passed[c.use] != "":
			*c.to = passed[c.use]
		default:
			*c.to = t.join(files, c.named)
		}
	}
	if len(t.Paths) == 0 {
		t.paths = fromDefault
		for _, glob := range proposed.Scope {
			t.Paths, t.paths = append(t.Paths, "/"+strings.TrimSuffix(glob, "/**")), fromSources
		}
	}
	t.nameDerived()
	return t, nil
}

// name notes where a command comes from. What is noted first stays, unless a memory has it.
func (t *filling) name(line, from string) {
	line = oneLine(line)
	if t.commands[line] == "" || strings.HasPrefix(from, "memory ") && !strings.HasPrefix(t.commands[line], "memory ") {
		t.commands[line] = from
	}
}

// join makes one line of commands that files name.
func (t *filling) join(files fs.FS, commands []probe.Command) string {
	var lines, from []string
	for _, c := range commands {
		if c.Line == "" {
			continue
		}
		lines = append(lines, c.Line)
		for part := range strings.SplitSeq(c.From, ", ") {
			if at := placeOf(files, part); !slices.Contains(from, at) {
				from = append(from, at)
			}
		}
	}
	line := strings.Join(lines, " && ")
	if line != "" {
		t.name(line, strings.Join(from, ", "))
	}
	return line
}

// nameDerived notes the commands that templates make of others.
func (t *filling) nameDerived() {
	for _, template := range loopspec.Templates {
		made, err := loopspec.FromTemplate(template.ID, t.Task)
		if err != nil {
			continue // It is not possible for this repository.
		}
		for _, line := range made.Commands() {
			for _, inner := range []string{t.Lint, t.TypeCheck} {
				if inner = strings.TrimSpace(inner); inner != "" && strings.Contains(line, inner) {
					t.name(line, t.commands[oneLine(inner)])
				}
			}
		}
	}
}

// oneLine is a command without differences in white space.
func oneLine(command string) string { return strings.Join(strings.Fields(command), " ") }

// placeOf is what package probe says of where a command is from, with the line of the file if
// one line says so.
func placeOf(files fs.FS, from string) string {
	file, what, _ := strings.Cut(from, " ")
	switch path.Base(file) {
	case "go.mod":
		what = "module"
	case "go.work":
		what = "use"
	case "GNUmakefile", "makefile", "Makefile", "justfile", "Justfile", ".justfile":
	default:
		return from
	}
	const most = 1 << 20
	info, err := fs.Stat(files, file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return from
	}
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return from
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if rest, ok := bytes.CutPrefix(line, []byte(what)); ok && len(rest) > 0 && bytes.IndexByte([]byte(": \t("), rest[0]) >= 0 {
			return fmt.Sprintf("%s:%d", file, n)
		}
	}
	return from
}
