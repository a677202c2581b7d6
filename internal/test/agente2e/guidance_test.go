//go:build agents && linux

package agente2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// guides are files with instructions, each with a canary of its own. The last
// ones must reach no agent.
var guides = []struct {
	path, canary string
	given        bool
}{
	{"AGENTS.md", "canary-agents-0f1", true},
	{"CLAUDE.md", "canary-claude-1e2", true},
	{"GEMINI.md", "canary-gemini-2d3", true},
	{"QWEN.md", "canary-qwen-3c4", true},
	{".goosehints", "canary-goose-4b5", true},
	{".cursorrules", "canary-cursor-5a6", true},
	{".claude/CLAUDE.md", "canary-dotclaude-697", true},
	{".claude/rules/style.md", "canary-rules-788", true},
	{".github/copilot-instructions.md", "canary-copilot-879", true},
	{"src/AGENTS.md", "canary-src-agents-96a", true},
	{"src/CLAUDE.md", "canary-src-claude-a5b", true},
	{"src/GEMINI.md", "canary-src-gemini-b4c", true},
	{"src/QWEN.md", "canary-src-qwen-c3d", true},
	{"src/.goosehints", "canary-src-goose-d2e", true},
	{"src/deep/AGENTS.md", "canary-deep-agents-e1f", true},
	{"src/deep/CLAUDE.md", "canary-deep-claude-f00", true},
	{"src/only/CLAUDE.md", "canary-only-claude-0b1", true},
	{"docs/style.md", "canary-imported-1a1", true},
	{"other/AGENTS.md", "canary-other-2b2", false},
	{"AGENTS.override.md", "canary-override-3c3", false},
	{"AGENT.md", "canary-agent-4d4", false},
	{"docs/mentioned.txt", "canary-mentioned-5e5", false},
	{"CLAUDE.local.md", "canary-local-6f6", false},
}

func TestEachInstructionOfTheRepositoryReachesEachAgentExactlyOnce(t *testing.T) {
	t.Parallel()
	var head []string
	for _, g := range guides {
		if g.given {
			head = append(head, "`"+g.path+"`")
		}
	}
	drawn := newTable(t, "guidance", line(append([]string{"agent"}, head...)...)+"|---|"+strings.Repeat("---|", len(head))+"\n", subjectKeys())
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(v *fixture) fakemodel.Script {
				return fakemodel.Script{Turns: []fakemodel.Turn{
					fakemodel.Read(filepath.Join(v.root, "src/readme.txt")),
					fakemodel.Read(filepath.Join(v.root, "src/deep/notes.txt")),
					fakemodel.Read(filepath.Join(v.root, "src/only/notes.txt")),
					fakemodel.Write(filepath.Join(v.root, "src/answer.txt"), "two\n"),
					fakemodel.Say("The value is two now."),
				}}
			})
			v.write("src/deep/notes.txt", "nothing\n")
			v.write("src/only/notes.txt", "nothing\n")
			for _, g := range guides {
				v.write(g.path, "Mind the "+g.canary+".\n")
			}
			v.write("CLAUDE.md", "Mind the canary-claude-1e2.\n@AGENTS.md\n@docs/style.md\nAsk @docs/mentioned.tx or `@docs/mentioned.txt`.\nThe file `@docs/mentioned.txt` is not imported.\n")
			v.git("add", "-A", "-f")
			v.git("commit", "-q", "-m", "instructions")
			run, exit := v.run()
			if run.Outcome != loop.OutcomeProposed || exit != 0 {
				t.Fatalf("the run ended %s (%s), exit status %d: %s\n%s\n%s", run.Outcome, run.Reason, exit, run.Detail, v.logs(), v.said())
			}
			cells := []string{s.name}
			for _, g := range guides {
				var counts []int
				for _, e := range v.model.Turns() {
					counts = append(counts, strings.Count(string(e.Body), g.canary))
				}
				slices.Sort(counts)
				counts = slices.Compact(counts)
				want := 0
				if g.given {
					want = 1
					cells = append(cells, "once")
				}
				if !slices.Equal(counts, []int{want}) {
					t.Errorf("%s is in the requests %d times, want %d", g.path, counts, want)
				}
			}
			if !t.Failed() {
				drawn.add(line(cells...))
			}
			if n := len(run.Instructions); n < len(head) {
				t.Errorf("the run row names %d files: %v", n, run.Instructions)
			}
		})
	}
}
