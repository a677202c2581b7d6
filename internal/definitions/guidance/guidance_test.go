package guidance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/definitions/guidance"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// read commits the files and reads the instructions of that commit.
func read(t *testing.T, files map[string]string, scope, choice []string) []guidance.File {
	t.Helper()
	return readAt(t, gittest.Repo(t, files), scope, choice)
}

func readAt(t *testing.T, dir string, scope, choice []string) []guidance.File {
	t.Helper()
	repo, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := guidance.Read(t.Context(), repo, gittest.Run(t, dir, "rev-parse", "HEAD"), scope, choice)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// given is what is given, as "path: text", and what is not, as "path (note)".
func given(files []guidance.File) (all []string) {
	for _, f := range files {
		line := f.Path
		if f.Note != "" {
			line += " (" + f.Note + ")"
		}
		if f.Given > 0 {
			line += ": " + f.Text
		}
		all = append(all, line)
	}
	return all
}

func TestInstructionsAreThoseAlongTheScopeAndBelowIt(t *testing.T) {
	files := map[string]string{
		"AGENTS.md": "top", "CLAUDE.md": "claude", "GEMINI.md": "gemini", "QWEN.md": "qwen", ".goosehints": "goose", ".cursorrules": "cursor",
		".claude/CLAUDE.md": "dot claude", ".claude/rules/a/b.md": "rule", ".claude/rules/a/b.txt": "no rule", ".github/copilot-instructions.md": "copilot",
		".claude/agents/x.md": "an agent", ".claude/skills/s/SKILL.md": "a skill", ".claude/skills/s/run.sh": "its program", ".claude/skills/s/more.md": "more of it",
		"src/AGENTS.md": "src", "src/api/AGENTS.md": "api", "src/api/v1/CLAUDE.md": "v1", "src/api/.claude/rules/r.md": "rule of api", "src/web/AGENTS.md": "web",
		"src/api/vendor/x/AGENTS.md": "of others", "src/api/node_modules/x/CLAUDE.md": "of others too", "docs/AGENTS.md": "docs", "src/agents.md": "small letters",
	}
	top := []string{
		"AGENTS.md: top", "CLAUDE.md: claude", "GEMINI.md: gemini", "QWEN.md: qwen", ".goosehints: goose", ".claude/CLAUDE.md: dot claude",
		".claude/rules/a/b.md: rule", ".cursorrules: cursor", ".github/copilot-instructions.md: copilot",
	}
	for name, c := range map[string]struct {
		scope, choice, want []string
	}{
		"a folder": {
			scope: []string{"src/api/**"},
			want:  append(top[:5:5], ".claude/CLAUDE.md: dot claude", ".claude/rules/a/b.md: rule", ".cursorrules: cursor", ".github/copilot-instructions.md: copilot", "src/AGENTS.md: src", "src/api/AGENTS.md: api", "src/api/.claude/rules/r.md: rule of api", "src/api/v1/CLAUDE.md: v1"),
		},
		"braces and a file": {
			scope: []string{"{docs,src/web}/*.md", "src/api.go"},
			want:  append(top[:5:5], ".claude/CLAUDE.md: dot claude", ".claude/rules/a/b.md: rule", ".cursorrules: cursor", ".github/copilot-instructions.md: copilot", "docs/AGENTS.md: docs", "src/AGENTS.md: src", "src/web/AGENTS.md: web"),
		},
		"no scope":          {want: top},
		"none":              {scope: []string{"src/**"}, choice: []string{"none"}},
		"a choice of files": {scope: []string{"docs/**"}, choice: []string{"src/web/AGENTS.md", "**/vendor/*/AGENTS.md"}, want: []string{"src/web/AGENTS.md: web", "src/api/vendor/x/AGENTS.md: of others"}},
		"skills and sub-agents": {
			choice: []string{".claude/skills/**", ".claude/agents"},
			want:   []string{".claude/agents/x.md: an agent", ".claude/skills/s/SKILL.md: a skill"},
		},
		"a file of a skill by its name":     {choice: []string{".claude/skills/s/more.md"}, want: []string{".claude/skills/s/more.md: more of it"}},
		"a choice of one that is not there": {choice: []string{"docs/style.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, given(read(t, files, c.scope, c.choice))); diff != "" {
				t.Errorf("instructions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSameInstructionsAreGivenOnce(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{
		"AGENTS.md": "all of it\n", "CLAUDE.md": "all of it\n", "QWEN.md": "all of it  \n\n", "src/AGENTS.md": "@../AGENTS.md\n", "src/CLAUDE.md": "\n",
	})
	if err := os.Symlink("AGENTS.md", filepath.Join(dir, "GEMINI.md")); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-q", "-m", "link")
	want := []string{
		"AGENTS.md: all of it", "CLAUDE.md (the same as AGENTS.md)", "GEMINI.md (the same as AGENTS.md)", "QWEN.md (the same as AGENTS.md)",
		"src/AGENTS.md (it says nothing of its own)", "src/CLAUDE.md (it says nothing of its own)",
	}
	if diff := cmp.Diff(want, given(readAt(t, dir, []string{"src/**"}, nil))); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
}

func TestImportsAreFollowedInTheTreeOnly(t *testing.T) {
	got := given(read(t, map[string]string{
		"CLAUDE.md": "See @docs/style.md, (@README) and `@docs/code.md`.\n@docs/loop.md\n@~/.claude/own.md @/etc/passwd @../x @nobody @types/node a@docs/code.md\n```\n@docs/code.md\n```\n",
		"README":    "read me", "docs/style.md": "style\n@deep/more.md\n", "docs/deep/more.md": "more @../style.md", "docs/code.md": "not imported", "docs/loop.md": "@loop.md\nround",
	}, nil, nil))
	want := []string{
		"CLAUDE.md: See docs/style.md, (README) and `@docs/code.md`.\n@~/.claude/own.md @/etc/passwd @../x @nobody @types/node a@docs/code.md\n```\n@docs/code.md\n```",
		"docs/style.md: style", "docs/deep/more.md: more ../style.md", "README: read me", "docs/loop.md: round",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
}

func TestImportsEndAfterFiveHops(t *testing.T) {
	files := map[string]string{"CLAUDE.md": "0 @f1"}
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		files["f"+n] = n + " @f" + string(n[0]+1)
	}
	got := read(t, files, nil, nil)
	if last := got[len(got)-1].Path; last != "f5" {
		t.Errorf("the last file is %s, want f5: %v", last, given(got))
	}
}

func TestAttack051ALinkOutOfTheTreeIsNotRead(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"docs/real.md": "real"})
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("a secret of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"AGENTS.md": outside, "CLAUDE.md": "../" + filepath.Base(filepath.Dir(outside)) + "/secret", "GEMINI.md": "docs/real.md", "QWEN.md": "QWEN.md", ".goosehints": ".git/config",
		".cursorrules": "docs",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-q", "-m", "links")
	want := []string{
		"AGENTS.md (left out: it is a link that leads out of the tree)", "CLAUDE.md (left out: it is a link that leads out of the tree)", "GEMINI.md: real",
		"QWEN.md (left out: its links do not end)", ".goosehints (left out: it is a link to nothing)", ".cursorrules (left out: it is a link to nothing)",
	}
	if diff := cmp.Diff(want, given(readAt(t, dir, nil, nil))); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
}

func TestAttack051HugeInstructionsAreCutAndSayIt(t *testing.T) {
	files := map[string]string{"AGENTS.md": strings.Repeat("ä", 5<<20), "CLAUDE.md": strings.Repeat("b", 20<<10), "GEMINI.md": "x\x00y", "QWEN.md": strings.Repeat("c", 20<<10), ".goosehints": "late"}
	for i := range 60 {
		files["src/"+strings.Repeat("d/", i%20)+"f"+string(rune('a'+i/20))+"/AGENTS.md"] = strings.Repeat("e", 400) + strings.Repeat("f", i)
	}
	got := read(t, files, []string{"src/**"}, nil)
	total, shown := 0, 0
	for _, f := range got {
		total += len(f.Text)
		if f.Given != len(f.Text) || !utf8.ValidString(f.Text) || f.Given > guidance.MaxFile {
			t.Errorf("%s: %d bytes, said to be %d", f.Path, len(f.Text), f.Given)
		}
		if f.Given > 0 {
			shown++
		}
	}
	if total > guidance.MaxTotal || shown > 40 {
		t.Errorf("%d bytes of %d files are given", total, shown)
	}
	if f := got[0]; f.Path != "AGENTS.md" || f.Bytes != 10<<20 || f.Note != "cut: the first 32768 of 10485760 bytes are given" {
		t.Errorf("the first file is %s, %d bytes (%s)", f.Path, f.Bytes, f.Note)
	}
	if f := got[2]; f.Path != "GEMINI.md" || f.Given > 0 || f.Note != "left out: it is not text" {
		t.Errorf("a file with a NUL: %+v", f)
	}
	if f := got[len(got)-1]; f.Note == "" {
		t.Errorf("nothing was left out: %+v", f)
	}
}

func TestWhateverTheFilesSayNothingIsOverItsBoundsOrTwice(t *testing.T) {
	names := []string{"AGENTS.md", "CLAUDE.md", "src/AGENTS.md", "src/a b.md", "docs/x.md", ".claude/rules/r.md"}
	dir := gittest.Repo(t, map[string]string{"keep": ""})
	sample.Checks(t, 25) // Each is two processes of git.
	rapid.Check(t, func(rt *rapid.T) {
		files := map[string]string{}
		for _, name := range names {
			files[name] = strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
				"@", "@docs/x.md", " @../AGENTS.md\n", "`", "```\n", "\n", "@src/a\\ b.md", "@" + strings.Repeat("../", 9) + "etc/passwd", "@docs/x.md#part",
			})), 0, 6).Draw(rt, name), "")
		}
		gittest.Write(t, dir, files)
		gittest.Run(t, dir, "add", "-A")
		gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
		seen := map[string]bool{}
		for _, f := range readAt(t, dir, []string{"src/**"}, nil) {
			if seen[f.Path] || f.Given > 0 && seen["text "+f.Text] {
				rt.Fatalf("%s is given twice", f.Path)
			}
			seen[f.Path], seen["text "+f.Text] = true, true
			if !utf8.ValidString(f.Text) {
				rt.Fatalf("%s is not UTF-8", f.Path)
			}
		}
	})
}
