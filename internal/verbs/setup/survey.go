package setup

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Survey is what a repository and a machine have that a first loop can use, schema
// pawl.survey/v1.
type Survey struct {
	Schema     string        `json:"schema"`
	Root       string        `json:"root"`
	Stacks     []StackView   `json:"stacks"`
	Agents     []AgentView   `json:"agents"` // only installed ones
	AgentsFile string        `json:"agents_file,omitempty"`
	Problems   []ProblemView `json:"problems"`

	Repo    probe.Repo `json:"-"` // as it was probed
	Package string     `json:"-"` // folder of the package for which a loop is proposed; empty: all
}

// StackView is one way to build and test the repository.
type StackView struct {
	Name      string        `json:"name"`
	Dir       string        `json:"dir"`
	Manifest  string        `json:"manifest"`
	Setup     string        `json:"setup,omitempty"`
	Test      string        `json:"test,omitempty"`
	Lint      string        `json:"lint,omitempty"`
	Typecheck string        `json:"typecheck,omitempty"`
	Build     string        `json:"build,omitempty"`
	Programs  []ProgramView `json:"programs"`        // that these commands start
	Needs     []string      `json:"needs,omitempty"` // files that a copy of the repository does not have

	Usable probe.Stack `json:"-"` // without commands whose program is missing
}

// isUsable reports whether the stack can judge work on this machine.
func (v StackView) isUsable() bool {
	u := v.Usable
	judges := u.Test != nil || v.Test == "" && (u.Lint != nil || u.Typecheck != nil)
	return judges && (v.Setup == "" || u.Setup != nil)
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
	v, err := s.surveyRepository(ctx, p)
	if err != nil {
		return v, err
	}
	for _, a := range p.FindAgents(ctx) {
		if a.Path != "" {
			problem, fix := a.Advice()
			v.Agents = append(v.Agents, AgentView{a.Name, a.Path, a.Version, a.Login, a.How, problem, fix})
		}
	}
	return v, ctx.Err()
}

// surveyRepository is Survey without the agents of the machine.
func (s *Service) surveyRepository(ctx context.Context, p probe.Prober) (Survey, error) {
	v := Survey{Schema: "pawl.survey/v1", Root: s.ws.Root, Stacks: []StackView{}, Agents: []AgentView{}, Problems: []ProblemView{}}
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return v, err
	}
	defer root.Close()
	repo := probe.Repository(root.FS())
	v.AgentsFile, v.Repo = repo.AgentsFile, repo
	for _, stack := range repo.Stacks {
		view := s.stackView(ctx, p, stack)
		view.Needs = probe.UnmetNeeds(root.FS(), stack.Dir)
		v.Stacks = append(v.Stacks, view)
	}
	for _, problem := range repo.Problems {
		v.Problems = append(v.Problems, ProblemView(problem))
	}
	return v, ctx.Err()
}

// FindTests returns the command that Survey would propose as the gate of a first loop; empty:
// none was found.
func (s *Service) FindTests(ctx context.Context, p probe.Prober) (string, error) {
	v, err := s.surveyRepository(ctx, p)
	if err != nil {
		return "", err
	}
	return v.proposal().Verify.Line, nil
}

// Packages returns the folders with their own tests, if there is more than one.
func (v Survey) Packages() []string {
	var dirs []string
	for _, s := range v.Stacks {
		if s.Test != "" && s.Dir != "." && !slices.Contains(dirs, s.Dir) {
			dirs = append(dirs, s.Dir)
		}
	}
	if len(dirs) < 2 {
		return nil
	}
	return dirs
}

// ForPackage returns the survey for a loop of one package. If the folder has no
// package, the error is a *loop.Fault.
func (v Survey) ForPackage(dir string) (Survey, error) {
	v.Package = path.Clean(filepath.ToSlash(dir))
	if !slices.ContainsFunc(v.Stacks, func(s StackView) bool { return s.Dir == v.Package }) {
		var dirs []string
		for _, s := range v.Stacks {
			dirs = append(dirs, s.Dir)
		}
		return v, &loop.Fault{
			Exit: loop.ExitNotFound, What: fmt.Sprintf("%q is not a package of this repository", dir), Why: "no manifest that pawl knows is there",
			Fix: "use one of: " + strings.Join(dirs, ", "),
		}
	}
	return v, nil
}

// proposal returns the proposal for the chosen package, with the stacks that can run on
// this machine, or with all if none can.
func (v Survey) proposal() probe.Proposal {
	var usable, all []probe.Stack
	for i, s := range v.Repo.Stacks {
		if v.Package != "" && s.Dir != v.Package {
			continue
		}
		all = append(all, s)
		if v.Stacks[i].isUsable() {
			usable = append(usable, v.Stacks[i].Usable)
		}
	}
	repo := v.Repo
	if repo.Stacks = usable; len(usable) == 0 {
		repo.Stacks = all
	}
	if v.Package != "" && v.Package != "." {
		repo.Sources = []string{v.Package + "/**"}
	}
	return repo.Proposal()
}

// LeftOut names the packages whose tests are not in the proposal because a program is
// missing, each with that program.
func (v Survey) LeftOut() []string {
	var all []string
	for _, s := range v.Stacks {
		if s.Test == "" || s.isUsable() || v.Package != "" || !slices.ContainsFunc(v.Stacks, StackView.isUsable) {
			continue
		}
		i := slices.IndexFunc(s.Programs, func(p ProgramView) bool { return !p.OK })
		all = append(all, fmt.Sprintf("%s is left out: %s; %s", s.Manifest, s.Programs[i].Problem, s.Programs[i].Fix))
	}
	return all
}

func (s *Service) stackView(ctx context.Context, p probe.Prober, stack probe.Stack) StackView {
	v := StackView{Name: stack.Name, Dir: stack.Dir, Manifest: stack.Manifest, Programs: []ProgramView{}, Usable: stack}
	found := map[probe.Need]bool{}
	u := &v.Usable
	for _, c := range []struct {
		command **probe.Command
		into    *string
	}{{&u.Setup, &v.Setup}, {&u.Test, &v.Test}, {&u.Lint, &v.Lint}, {&u.Typecheck, &v.Typecheck}, {&u.Build, &v.Build}} {
		if *c.command == nil {
			continue
		}
		*c.into = (*c.command).Line
		for _, need := range (*c.command).Needs {
			if _, asked := found[need]; asked {
				continue
			}
			prog := p.FindProgram(ctx, filepath.Join(s.ws.Root, filepath.FromSlash(need.Dir)), need.Word)
			v.Programs = append(v.Programs, ProgramView{prog.Word, prog.Path, prog.Shim, prog.Version, prog.OK, prog.Problem, prog.Fix})
			found[need] = prog.OK
		}
		if slices.ContainsFunc((*c.command).Needs, func(n probe.Need) bool { return !found[n] }) {
			*c.command = nil
		}
	}
	return v
}

// LoggedIn returns the agents of this machine that have a login.
func LoggedIn(ctx context.Context, p probe.Prober) (names []string) {
	for _, one := range p.FindAgents(ctx) {
		if one.Path != "" && one.Login == probe.LoginYes {
			names = append(names, one.Name)
		}
	}
	return names
}
