package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAProposalTestsGuardsAndStaysInSource(t *testing.T) {
	goModule := tree{"go.mod": "module x\n", "main.go": "", "internal/a/a.go": ""}
	npm := tree{"package.json": `{"scripts":{"test":"vitest run","lint":"eslint ."},"dependencies":{"a":"1"}}`, "package-lock.json": "{}", "src/index.ts": "", "eslint.config.js": ""}
	type lines struct {
		Verify, Guard, Setup string
		Scope                []string
	}
	for name, c := range map[string]struct {
		files tree
		want  lines
	}{
		"nothing known, nothing proposed": {files: tree{"README.md": "", "test/x.go": "", "docs/conf.py": ""}},
		"Go": {files: goModule, want: lines{
			Verify: "go test ./...", Guard: "go test ./... && go vet ./...", Scope: []string{"*.go", "internal/**"},
		}},
		"one language and a makefile: the tool itself": {
			files: goModule.plus(tree{"Makefile": "test:\n\tgo test ./...\n"}),
			want:  lines{Verify: "go test ./...", Guard: "go test ./... && go vet ./...", Scope: []string{"*.go", "internal/**"}},
		},
		"npm: configuration at the root is not source": {files: npm, want: lines{
			Verify: "npm test", Guard: "npm test && npm run lint", Setup: "npm ci", Scope: []string{"src/**"},
		}},
		"a flat project": {
			files: tree{"requirements.txt": "pytest\n", "app.py": "", "test_app.py": ""},
			want: lines{
				Verify: "python -m pytest", Guard: "python -m pytest",
				Setup: "python -m pip install -r requirements.txt", Scope: []string{"*.py"},
			},
		},
		"a package named like the project": {
			files: tree{"pyproject.toml": "[tool.pytest]\n", "uv.lock": "", "acme/__init__.py": "", "tests/test_x.py": "", "scripts/x.py": ""},
			want:  lines{Verify: "uv run pytest", Guard: "uv run pytest", Setup: "uv sync --frozen", Scope: []string{"acme/**"}},
		},
		"two languages and no makefile: both": {
			files: goModule.plus(tree{"web/package.json": `{"scripts":{"test":"vitest run"},"dependencies":{"a":"1"}}`, "web/src/a.ts": ""}),
			want: lines{
				Verify: "go test ./... && (cd web && npm test)", Guard: "go test ./... && (cd web && npm test) && go vet ./...",
				Setup: "(cd web && npm install)", Scope: []string{"*.go", "internal/**", "web/**"},
			},
		},
		"two languages and a makefile: the target, and the tools for what it lacks": {
			files: goModule.plus(npm).plus(tree{"Makefile": "test:\n\tx\n"}),
			want: lines{
				Verify: "make test", Guard: "make test && go vet ./... && npm run lint", Setup: "npm ci",
				Scope: []string{"*.go", "internal/**", "src/**"},
			},
		},
		"a makefile with all that is needed": {
			files: goModule.plus(npm).plus(tree{"Makefile": "setup:\ntest:\nlint:\ntypecheck:\n"}),
			want: lines{
				Verify: "make test", Guard: "make test && make typecheck && make lint", Setup: "make setup",
				Scope: []string{"*.go", "internal/**", "src/**"},
			},
		},
		"a tool without tests and a makefile with them": {
			files: tree{"package.json": `{}`, "Makefile": "test:\n\tnode --test\n", "lib/a.js": ""},
			want:  lines{Verify: "make test", Guard: "make test", Scope: []string{"lib/**"}},
		},
		"no test: nothing to verify, but something to guard": {
			files: tree{"package.json": `{"scripts":{"lint":"eslint ."}}`, "src/a.js": ""},
			want:  lines{Guard: "npm run lint", Scope: []string{"src/**"}},
		},
		"a site beside the project is not installed": {
			files: goModule.plus(tree{"site/package.json": `{"dependencies":{"a":"1"}}`}),
			want:  lines{Verify: "go test ./...", Guard: "go test ./... && go vet ./...", Scope: []string{"*.go", "internal/**"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := surveyed(t, c.files).Proposal()
			got := lines{Verify: p.Verify.Line, Guard: p.Guard.Line, Setup: p.Setup.Line, Scope: p.Scope}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("proposal (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAProposalKeepsReasonsAndNeedsOfAllItsParts(t *testing.T) {
	p := surveyed(t, tree{"go.mod": "module x\n", ".golangci.yml": "", "web/package.json": `{"scripts":{"test":"vitest run"}}`}).Proposal()
	want := Command{
		Line: "go test ./... && (cd web && npm test) && go vet ./... && golangci-lint run",
		From: "go.mod, web/package.json scripts.test, .golangci.yml",
		Needs: []Need{
			{Dir: ".", Word: "go"}, {Dir: "web", Word: "npm"}, {Dir: ".", Word: "golangci-lint"},
		},
	}
	if diff := cmp.Diff(want, p.Guard); diff != "" {
		t.Errorf("guard (-want +got)\n%s", diff)
	}
}

func TestACommandSaysWhyAndWhatItNeeds(t *testing.T) {
	repo := surveyed(t, tree{"web/package.json": `{"scripts":{"test":"react-scripts test"}}`})
	want := &Command{
		Line: "(cd web && CI=true npm test)", From: "web/package.json scripts.test",
		Needs: []Need{{Dir: "web", Word: "npm"}},
	}
	if diff := cmp.Diff(want, repo.Stacks[0].Test); diff != "" {
		t.Errorf("test (-want +got)\n%s", diff)
	}
}

func TestTheFileForAgentsIsFoundByTheCommonNameFirst(t *testing.T) {
	for name, c := range map[string]struct {
		files tree
		want  string
	}{
		"none":              {files: tree{"README.md": ""}},
		"both":              {files: tree{"CLAUDE.md": "", "AGENTS.md": ""}, want: "AGENTS.md"},
		"of one agent":      {files: tree{"GEMINI.md": ""}, want: "GEMINI.md"},
		"of Copilot":        {files: tree{".github/copilot-instructions.md": ""}, want: ".github/copilot-instructions.md"},
		"not at the root":   {files: tree{"docs/AGENTS.md": ""}},
		"a directory is no": {files: tree{"AGENTS.md/x": "", "CLAUDE.md": ""}, want: "CLAUDE.md"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := surveyed(t, c.files).AgentsFile; got != c.want {
				t.Errorf("file %q, want %q", got, c.want)
			}
		})
	}
}
