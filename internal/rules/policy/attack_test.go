package policy

import (
	"fmt"
	"strings"
	"testing"
)

func scopeOf(t *testing.T, globs ...string) Scope {
	t.Helper()
	s, err := NewScope(globs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// file is a plain file of one line.
func file(text string) File { return File{Mode: modeFile, Size: int64(len(text)), Text: text} }

func edit(path string) Change { return Change{Path: path, Old: file("old\n"), New: file("new\n")} }

func added(path string) Change { return Change{Path: path, New: file("new\n")} }

// wantRefused checks that there is exactly one refusal, with the code and path.
func wantRefused(t *testing.T, got []Verdict, code Code, path string) {
	t.Helper()
	if len(got) != 1 || got[0].Code != code || got[0].Path != path || got[0].Allowed || got[0].Rule == "" {
		t.Errorf("refused %+v, want %s for %q alone", got, code, path)
	}
}

func TestAttack001AFileOutsideTheScopeIsRefused(t *testing.T) {
	tree := []string{"README.md", "src/a", "secret.txt"}
	wantRefused(t, scopeOf(t, "src/**").Check([]Change{edit("src/a"), edit("README.md")}, tree, Limits{}), CodeScope, "README.md")
}

func TestAttack002APathThatIsNotCleanIsRefusedAlthoughTheGlobMatches(t *testing.T) {
	for _, path := range []string{"src/../secret.txt", "src/./a", "src//a", "./src/a", "src/a/", "/src/a", `src\..\secret.txt`, "src/a.", "src/a ", "src/PACKAG~1.JSO"} {
		v := scopeOf(t, "src/**", "**/*").Judge(path)
		if v.Allowed || v.Code != CodeNonCanonical {
			t.Errorf("Judge(%q) = %+v, want non_canonical", path, v)
		}
	}
}

func TestAttack004ANewSymbolicLinkIsRefusedWhereverItLeads(t *testing.T) {
	link := File{Mode: modeSymlink, Size: 13, Text: "../secret.txt"}
	s := scopeOf(t, "src/**")
	wantRefused(t, s.Check([]Change{{Path: "src/l", New: link}}, nil, Limits{}), CodeSymlink, "src/l")
	for name, old := range map[string]File{"a file": file("x\n"), "an executable": {Mode: modeExec}, "another link": {Mode: modeSymlink, Size: 1, Text: "a"}} {
		t.Run(name+" becomes one", func(t *testing.T) {
			wantRefused(t, s.Check([]Change{{Path: "src/l", Old: old, New: link}}, []string{"src/l"}, Limits{AllowExec: true}), CodeSymlink, "src/l")
		})
	}
	for name, change := range map[string]Change{"removing one": {Path: "src/l", Old: link}, "a file for one": {Path: "src/l", Old: link, New: file("x\n")}} {
		if got := s.Check([]Change{change}, []string{"src/l"}, Limits{}); len(got) > 0 {
			t.Errorf("%s: %+v, want nothing", name, got)
		}
	}
}

func TestAttack005ALinkedFolderAndWhatIsWrittenThroughItAreRefused(t *testing.T) {
	got := scopeOf(t, "src/**", ".loops/**").Check([]Change{
		{Path: "src/d", New: File{Mode: modeSymlink, Size: 9, Text: "../.loops"}}, edit(".loops/x/loop.config.yaml"),
	}, []string{".loops/x/loop.config.yaml"}, Limits{})
	if len(got) != 2 || got[0].Code != CodeSymlink || got[1].Code != CodeNever {
		t.Errorf("refused %+v, want the link and the definition", got)
	}
}

func TestAttack010NamesThatAreOneNameForSomeFileSystemAreRefused(t *testing.T) {
	tree := []string{"src/a.go", "src/straße", "src/i", "src/é", "src/dir/x", "secret.txt"}
	s := scopeOf(t, "src/**", "SRC/**")
	for name, c := range map[string]struct {
		path string
		code Code
	}{
		"a folder in capitals":                        {"SRC/x", CodeCaseCollision},
		"a file in capitals":                          {"src/A.go", CodeCaseCollision},
		"a folder below in capitals":                  {"src/Dir/y", CodeCaseCollision},
		"a dotted capital I":                          {"src/İ", CodeNormalisation},
		"a dotless i":                                 {"src/ı", CodeNormalisation},
		"the decomposed form of a name":               {"src/e\u0301", CodeNormalisation},
		"the decomposed form of nothing that exists":  {"src/u\u0308", CodeNormalisation},
		"a compatibility form":                        {"src/ａ.go", CodeNormalisation},
		"a ligature and an extended fold":             {"src/STRASSE", CodeNormalisation},
		"a zero-width space":                          {"src/a\u200b.go", CodeControlChar},
		"a zero-width joiner":                         {"src/a\u200d.go", CodeControlChar},
		"a byte order mark":                           {"src/\ufeffa.go", CodeControlChar},
		"a direction override":                        {"src/a\u202eog.", CodeControlChar},
		"a tag character":                             {"src/a\U000e0061.go", CodeControlChar},
		"a filler":                                    {"src/a\u3164.go", CodeControlChar},
		"a variation selector":                        {"src/a\ufe0f.go", CodeNormalisation},
		"a Kelvin sign, which is not in Unicode form": {"src/\u212a", CodeNormalisation},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Check([]Change{added(c.path)}, tree, Limits{})
			if len(got) == 2 && got[1].Path == c.path && got[1].Code == CodeNormalisation {
				got = got[:1] // By its spelling, and by its collision too.
			}
			wantRefused(t, got, c.code, c.path)
		})
	}
	t.Run("two new names collide with each other", func(t *testing.T) {
		wantRefused(t, s.Check([]Change{added("src/new"), added("src/New")}, tree, Limits{}), CodeCaseCollision, "src/New")
	})
	t.Run("a rename to other letters does not collide", func(t *testing.T) {
		gone := Change{Path: "src/a.go", Old: file("x\n")}
		if got := s.Check([]Change{gone, added("src/A.go")}, tree, Limits{}); len(got) > 0 {
			t.Errorf("refused %+v, want nothing", got)
		}
	})
	t.Run("names of all the world are no collision", func(t *testing.T) {
		var all []Change
		for _, path := range []string{"src/说明（新）.md", "src/é", "src/ςσ", "src/m².md", "src/наука", "src/✔️.md", "src/-components/a"} {
			all = append(all, added(path))
		}
		if got := s.Check(all, tree, Limits{}); len(got) > 0 {
			t.Errorf("refused %+v, want nothing", got)
		}
	})
}

func TestAttack011NamesThatBreakALogOrACommandAreRefused(t *testing.T) {
	s := scopeOf(t, "**/*")
	for path, code := range map[string]Code{
		"src/a\nb": CodeControlChar, "src/a\rb": CodeControlChar, "src/\x1b[2J": CodeControlChar, "src/a\x00": CodeControlChar, "src/a\u2028b": CodeControlChar,
		"src/a\u0085b": CodeControlChar, "-rf": CodeNonCanonical, "--upload-pack=x/y": CodeNonCanonical, "src/\xff": CodeNormalisation,
		strings.Repeat("a", 256): CodeLength, strings.Repeat("a/", 2047) + "aa": CodeLength,
	} {
		if v := s.Judge(path); v.Allowed || v.Code != code {
			t.Errorf("Judge(%.40q) = %+v, want %s", path, v, code)
		}
	}
	for _, path := range []string{strings.Repeat("a", 255), strings.Repeat("a/", 2047) + "a", "src/-x"} {
		if v := s.Judge(path); !v.Allowed {
			t.Errorf("Judge(%.40q) = %+v, want allowed", path, v)
		}
	}
}

func TestAttack013AScopeThatIsNoPathInTheTreeAllowsNothing(t *testing.T) {
	for _, globs := range [][]string{nil, {}, {""}, {"/"}, {"."}, {"./"}, {"../**"}, {"/**"}, {".."}} {
		for _, path := range []string{"a", "src/a", "secret.txt", "../a", "/etc/passwd"} {
			if v := scopeOf(t, globs...).Judge(path); v.Allowed {
				t.Errorf("scope %q allows %q by %s", globs, path, v.Rule)
			}
		}
	}
}

func TestAttack014AGlobOfTenThousandBracesIsRefusedUnexpanded(t *testing.T) {
	for name, glob := range map[string]string{
		"10,000 groups":     "src/" + strings.Repeat("{a,b}", 10_000),
		"groups within 1KB": strings.Repeat("{a,a}", 200),
		"nested groups":     strings.Repeat("{a,", 255) + "b" + strings.Repeat("}", 255),
	} {
		t.Run(name, func(t *testing.T) {
			steps := testing.AllocsPerRun(1, func() {
				for _, lists := range [][2][]string{{{glob}, nil}, {nil, {glob}}} {
					if _, err := NewScope(lists[0], lists[1]); err == nil || !strings.Contains(err.Error(), "pattern-size") {
						t.Errorf("NewScope = %v, want pattern-size", err)
					}
				}
			})
			if steps > 10_000 {
				t.Errorf("%v pieces of memory were made, so it was expanded", steps)
			}
		})
	}
}

func TestAttack016AFileBecomesExecutableOnlyIfThatIsAllowed(t *testing.T) {
	s, exec := scopeOf(t, "src/**"), File{Mode: modeExec, Size: 4, Text: "new\n"}
	for name, change := range map[string]Change{
		"a file of the base": {Path: "src/a", Old: file("old\n"), New: exec},
		"the bit alone":      {Path: "src/a", Old: file("new\n"), New: exec},
		"a new file":         {Path: "src/a", New: exec},
		"a link":             {Path: "src/a", Old: File{Mode: modeSymlink}, New: exec},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefused(t, s.Check([]Change{change}, nil, Limits{}), CodeExecBit, "src/a")
			if got := s.Check([]Change{change}, nil, Limits{AllowExec: true}); len(got) > 0 {
				t.Errorf("with AllowExec refused %+v", got)
			}
		})
	}
	for name, change := range map[string]Change{
		"an executable is edited":     {Path: "src/a", Old: exec, New: File{Mode: modeExec, Size: 3, Text: "old"}},
		"an executable loses its bit": {Path: "src/a", Old: exec, New: file("x\n")},
		"an executable is removed":    {Path: "src/a", Old: exec},
	} {
		if got := s.Check([]Change{change}, nil, Limits{}); len(got) > 0 {
			t.Errorf("%s: refused %+v, want nothing", name, got)
		}
	}
}

func TestAttack017ProtectionWinsOverScope(t *testing.T) {
	s, err := NewScope([]string{"**/*", "src/**", "internal/**"}, []string{"src/gate/**", "**/*.sql", "internal/*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".github/workflows/ci.yml", "src/gate/check.sh", "src/x.sql", "src/X.SQL", "package-lock.json", "src/go.sum", "internal/a.go"} {
		if v := s.Judge(path); v.Allowed || v.Code != CodeProtected {
			t.Errorf("Judge(%q) = %+v, want protected", path, v)
		}
	}
}

func TestAttack019ACandidateOverTheLimitsIsRefused(t *testing.T) {
	s := scopeOf(t, "src/**")
	many := func(n int) (all []Change) {
		for i := range n {
			all = append(all, edit(fmt.Sprintf("src/%03d", i)))
		}
		return all
	}
	if got := s.Check(many(100), nil, Limits{}); len(got) > 0 {
		t.Errorf("100 files: %+v", got)
	}
	wantRefused(t, s.Check(many(101), nil, Limits{}), CodePatchSize, "src/100")
	wantRefused(t, s.Check(many(3), nil, Limits{Files: 2}), CodePatchSize, "src/002")

	large := func(kb int64) []Change {
		return []Change{edit("src/a"), {Path: "src/b", New: File{Mode: modeFile, Size: kb<<10 - 4}}}
	}
	if got := s.Check(large(1024), nil, Limits{}); len(got) > 0 {
		t.Errorf("1,024 KB: %+v", got)
	}
	wantRefused(t, s.Check(large(1025), nil, Limits{}), CodePatchSize, "src/b")
	wantRefused(t, s.Check(large(2), nil, Limits{Bytes: 1 << 10}), CodePatchSize, "src/b")
	half := File{Mode: modeFile, Size: 600 << 10}
	two := []Change{{Path: "src/b", New: half}, {Path: "src/c", New: half}}
	wantRefused(t, s.Check(two, nil, Limits{}), CodePatchSize, "src/c")
	if got := s.Check(two, nil, Limits{Bytes: 1200 << 10}); len(got) > 0 {
		t.Errorf("two files of 600 KB where 1200 KB are allowed: %+v", got)
	}
	wantRefused(t, s.Check([]Change{{Path: "src/b", New: File{Mode: modeFile, Size: -1}}}, nil, Limits{}), CodePatchSize, "src/b")

	unread := File{Mode: modeFile, Size: 2 << 20}
	for name, change := range map[string]Change{
		"the new side": {Path: "src/b", Old: file("old\n"), New: unread},
		"the old side": {Path: "src/b", Old: unread, New: file(strings.Repeat("new\n", 512<<10))},
		"either side":  {Path: "src/b", Old: unread, New: File{Mode: modeFile, Size: 3 << 20}},
	} {
		t.Run("nobody has read "+name, func(t *testing.T) {
			wantRefused(t, s.Check([]Change{change}, nil, Limits{}), CodePatchSize, "src/b")
		})
	}

	for name, c := range map[string]struct {
		old, new string
		bytes    int64
	}{
		"only new lines count":               {"a\nb\n", "a\nb\n" + "12345\n", 6},
		"a line twice is one more":           {"a\nb\n", "a\na\na\nb\n", 4},
		"a line that changes is all of it":   {"a\nb\n", "a\n12345\n", 6},
		"what goes is no more than nothing":  {"a\nb\n12345\n", "a\nb\nc\n", 2},
		"what had nothing before is all new": {"", "a\na\n", 4},
	} {
		t.Run(name, func(t *testing.T) {
			change := []Change{{Path: "src/b", Old: file(c.old), New: file(c.new)}}
			if got := s.Check(change, nil, Limits{Bytes: c.bytes}); len(got) > 0 {
				t.Errorf("%d bytes are refused: %+v", c.bytes, got)
			}
			wantRefused(t, s.Check(change, nil, Limits{Bytes: c.bytes - 1}), CodePatchSize, "src/b")
		})
	}

	long := strings.Repeat("line\n", 400<<10)
	if got := s.Check([]Change{{Path: "src/b", Old: file(long), New: file(long + "one more\n")}}, nil, Limits{}); len(got) > 0 {
		t.Errorf("one line in a file of 2 MB: %+v", got)
	}
	if got := s.Check([]Change{{Path: "src/b", Old: File{Mode: modeFile, Size: 5 << 20}}}, nil, Limits{}); len(got) > 0 {
		t.Errorf("a deletion: %+v", got)
	}
}

func TestAttack020AModeThatGitDoesNotHaveIsRefused(t *testing.T) {
	for _, mode := range []uint32{0o104755, 0o102755, 0o100777, 0o100600, 0o040000, 0o010644, 0o060644} {
		got := scopeOf(t, "src/**").Check([]Change{{Path: "src/a", New: File{Mode: mode}}}, nil, Limits{AllowExec: true})
		wantRefused(t, got, CodeMode, "src/a")
	}
}

func TestASubmoduleIsNeverChanged(t *testing.T) {
	link := File{Mode: modeGitlink}
	for name, c := range map[string]Change{
		"added": {Path: "src/m", New: link}, "moved": {Path: "src/m", Old: link, New: link}, "removed": {Path: "src/m", Old: link},
		"made of a file": {Path: "src/m", Old: file("x"), New: link}, "made a file": {Path: "src/m", Old: link, New: file("x")},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefused(t, scopeOf(t, "src/**").Check([]Change{c}, nil, Limits{AllowExec: true}), CodeGitlink, "src/m")
		})
	}
}

func TestAttack055WhatIsRunToJudgeIsProtectedAndTakenFromBase(t *testing.T) {
	s := scopeOf(t, "**/*", "*", "src/**", "**/*.{yml,yaml,json,toml,ts,js,py,sh,xml}")
	for _, path := range []string{
		"Makefile", "sub/makefile", "GNUmakefile", "x.mk", "package.json", "sub/Package.json", ".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile",
		"justfile", "Taskfile.yml", "Rakefile", "build.gradle.kts", "settings.gradle", "gradlew", "gradle/wrapper/gradle-wrapper.properties", "pom.xml", "mvnw",
		".mvn/extensions.xml", "CMakeLists.txt", "Dockerfile", "Dockerfile.dev", "docker-compose.yml", "compose.yaml", "deno.json", "turbo.json", "nx.json",
		"BUILD.bazel", ".bazelrc", "go.work", "buf.gen.yaml", "src/a_test.go", "src/test/java/ATest.java", "web/a.spec.ts",
	} {
		if v := s.Judge(path); v.Allowed || v.Code != CodeProtected {
			t.Errorf("Judge(%q) = %+v, want protected", path, v)
		}
		if !Judging(path) {
			t.Errorf("Judging(%q) is false", path)
		}
	}
}

func TestAttack056WhatChangesTheVerdictFromAsideIsProtectedAndTakenFromBase(t *testing.T) {
	s := scopeOf(t, "**/*", "*", "src/**", "tests/**", "**/tests/**")
	for _, path := range []string{
		"conftest.py", "tests/conftest.py", "src/sitecustomize.py", "x.pth", "jest.config.js", "jest.config.mjs", "vite.config.ts", "vitest.config.ts", "webpack.config.js",
		"rollup.config.js", "babel.config.js", ".babelrc", "eslint.config.mjs", ".eslintrc.cjs", "go.mod", "sub/go.mod", ".npmrc", ".yarnrc.yml", ".pnpmfile.cjs",
		"bunfig.toml", "pytest.ini", "tests/pytest.ini", "tox.ini", "setup.cfg", "setup.py", "noxfile.py", "pyproject.toml", ".cargo/config.toml", "rust-toolchain.toml",
		".tool-versions", ".python-version", ".nvmrc", "mise.toml", ".env", ".env.test", ".envrc", "node_modules/.bin/jest", "node_modules/jest/index.js", "build.rs", "go.sum",
	} {
		if v := s.Judge(path); v.Allowed || v.Code != CodeProtected {
			t.Errorf("Judge(%q) = %+v, want protected", path, v)
		}
		if !Judging(path) {
			t.Errorf("Judging(%q) is false", path)
		}
	}
}

func TestAttack061AProgramOfATrustedNameCannotBeAdded(t *testing.T) {
	exec := File{Mode: modeExec, Size: 4, Text: "true"}
	s := scopeOf(t, "**/*", "*")
	wantRefused(t, s.Check([]Change{{Path: "go", New: exec}}, nil, Limits{}), CodeExecBit, "go")
	wantRefused(t, s.Check([]Change{{Path: "node_modules/.bin/jest", New: exec}}, nil, Limits{AllowExec: true}), CodeProtected, "node_modules/.bin/jest")
}
