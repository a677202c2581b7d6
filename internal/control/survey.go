package control

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/probe"
)

// Survey is what a repository and a machine offer to a first loop, schema
// pawl.survey/v1.
type Survey struct {
	Schema     string        `json:"schema"`
	Root       string        `json:"root"`
	Stacks     []StackView   `json:"stacks"`
	Agents     []AgentView   `json:"agents"` // only those that are installed
	AgentsFile string        `json:"agents_file,omitempty"`
	Problems   []ProblemView `json:"problems"`
	proposal   probe.Proposal
}

// StackView is one way to build and test that the repository has.
type StackView struct {
	Name      string        `json:"name"`
	Dir       string        `json:"dir"`
	Manifest  string        `json:"manifest"`
	Setup     string        `json:"setup,omitempty"`
	Test      string        `json:"test,omitempty"`
	Lint      string        `json:"lint,omitempty"`
	Typecheck string        `json:"typecheck,omitempty"`
	Build     string        `json:"build,omitempty"`
	Programs  []ProgramView `json:"programs"` // what these commands start
}

// ProgramView is a program behind a command, resolved through shims.
type ProgramView struct {
	Word    string `json:"word"`
	Path    string `json:"path,omitempty"`
	Shim    string `json:"shim,omitempty"`
	Version string `json:"version,omitempty"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// AgentView is an agent that is installed.
type AgentView struct {
	Name    string      `json:"name"`
	Path    string      `json:"path"`
	Version string      `json:"version,omitempty"`
	Login   probe.Login `json:"login"`
	How     string      `json:"how,omitempty"`
	Problem string      `json:"problem,omitempty"`
	Fix     string      `json:"fix,omitempty"`
}

// ProblemView is a file that was left out, and why.
type ProblemView struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Survey looks at the repository and the machine. It writes nothing and runs
// no code of the project.
func (s *Service) Survey(ctx context.Context, p probe.Prober) (Survey, error) {
	v := Survey{Schema: "pawl.survey/v1", Root: s.Root(), Stacks: []StackView{}, Agents: []AgentView{}, Problems: []ProblemView{}}
	root, err := os.OpenRoot(s.Root())
	if err != nil {
		return v, err
	}
	defer root.Close()
	repo := probe.Repository(root.FS())
	v.AgentsFile, v.proposal = repo.AgentsFile, repo.Proposal()
	for _, stack := range repo.Stacks {
		v.Stacks = append(v.Stacks, s.stackView(ctx, p, stack))
	}
	for _, a := range p.Agents(ctx) {
		if a.Path != "" {
			problem, fix := a.Advice()
			v.Agents = append(v.Agents, AgentView{a.Name, a.Path, a.Version, a.Login, a.How, problem, fix})
		}
	}
	for _, problem := range repo.Problems {
		v.Problems = append(v.Problems, ProblemView(problem))
	}
	return v, ctx.Err()
}

func (s *Service) stackView(ctx context.Context, p probe.Prober, stack probe.Stack) StackView {
	v := StackView{Name: stack.Name, Dir: stack.Dir, Manifest: stack.Manifest, Programs: []ProgramView{}}
	var asked []probe.Need
	for _, c := range []struct {
		from *probe.Command
		into *string
	}{{stack.Setup, &v.Setup}, {stack.Test, &v.Test}, {stack.Lint, &v.Lint}, {stack.Typecheck, &v.Typecheck}, {stack.Build, &v.Build}} {
		if c.from == nil {
			continue
		}
		*c.into = c.from.Line
		for _, need := range c.from.Needs {
			if slices.Contains(asked, need) {
				continue
			}
			asked = append(asked, need)
			prog := p.Program(ctx, filepath.Join(s.Root(), filepath.FromSlash(need.Dir)), need.Word)
			v.Programs = append(v.Programs, ProgramView{prog.Word, prog.Path, prog.Shim, prog.Version, prog.OK, prog.Problem, prog.Fix})
		}
	}
	return v
}
