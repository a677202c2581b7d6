package probe

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// shim is a version manager that installs a file in place of each program. When it
// is run, that file, the shim, chooses the real program.
type shim struct {
	name   string
	env    string   // names its directory
	home   string   // its directory below that of the user
	sub    string   // the directory of the shims below it
	marks  []string // one of these is in each script that is a shim, wherever it is
	target string   // a link to this program is a shim
	manual string   // the fix if the manager names none; WORD is replaced

	managed bool // it can be asked for the real program of a word
}

var shims = []shim{
	{name: "pyenv", env: "PYENV_ROOT", home: ".pyenv", sub: "shims", marks: []string{`pyenv" exec`, "pyenv exec"}, manual: "pyenv install 3 && pyenv local 3", managed: true},
	{name: "rbenv", env: "RBENV_ROOT", home: ".rbenv", sub: "shims", marks: []string{`rbenv" exec`, "rbenv exec"}, manual: "rbenv install", managed: true},
	{name: "nodenv", env: "NODENV_ROOT", home: ".nodenv", sub: "shims", marks: []string{`nodenv" exec`, "nodenv exec"}, manual: "nodenv install", managed: true},
	{name: "goenv", env: "GOENV_ROOT", home: ".goenv", sub: "shims", marks: []string{`goenv" exec`, "goenv exec"}, manual: "goenv install", managed: true},
	{name: "jenv", env: "JENV_ROOT", home: ".jenv", sub: "shims", marks: []string{`jenv" exec`, "jenv exec"}, manual: "jenv local VERSION", managed: true},
	{name: "phpenv", env: "PHPENV_ROOT", home: ".phpenv", sub: "shims", marks: []string{`phpenv" exec`, "phpenv exec"}, manual: "phpenv install", managed: true},
	{name: "asdf", env: "ASDF_DATA_DIR", home: ".asdf", sub: "shims", marks: []string{`asdf" exec`, "asdf exec"}, manual: "asdf install", managed: true},
	{name: "mise", env: "MISE_DATA_DIR", home: ".local/share/mise", sub: "shims", marks: []string{"mise exec", "mise x "}, target: "mise", manual: "mise install", managed: true},
	{name: "volta", env: "VOLTA_HOME", home: ".volta", sub: "bin", target: "volta-shim", manual: "volta install WORD", managed: true},
	{name: "proto", env: "PROTO_HOME", home: ".proto", sub: "shims", target: "proto-shim", manual: "proto install WORD", managed: true},
	{name: "rustup", env: "CARGO_HOME", home: ".cargo", target: "rustup", manual: "rustup default stable", managed: true},
	{name: "corepack", marks: []string{"corepack.cjs", "corepack/dist/"}, manual: "corepack install"},
}

// shimOf returns the manager whose shim the file is, or nil.
func (p Prober) shimOf(path string) *shim {
	link, _ := os.Readlink(path)
	head := scriptHead(path)
	for i := range shims {
		s := &shims[i]
		if s.ownsFile(p, path) || s.isOwnProgram(path, link) {
			return s
		}
		for _, mark := range s.marks {
			if strings.Contains(head, mark) {
				return s
			}
		}
	}
	return nil
}

// ownsFile reports whether a file is in the directory of the manager's shims.
func (s *shim) ownsFile(p Prober, path string) bool {
	if s.sub == "" || filepath.Base(path) == s.name {
		return false
	}
	for _, root := range s.rootDirs(p) {
		if filepath.Dir(path) == filepath.Join(root, s.sub) {
			return true
		}
	}
	return false
}

// isOwnProgram reports whether a file is a symbolic or hard link to the manager's
// own program, under another name.
func (s *shim) isOwnProgram(path, link string) bool {
	if s.target == "" || filepath.Base(path) == s.target {
		return false
	}
	if filepath.Base(link) == s.target {
		return true
	}
	own, err := os.Stat(filepath.Join(filepath.Dir(path), s.target))
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && os.SameFile(own, info)
}

// rootDirs lists the directories in which the manager may be installed.
func (s *shim) rootDirs(p Prober) []string {
	var all []string
	if s.env != "" {
		if root := proc.LookupVariable(p.Environ, s.env); filepath.IsAbs(root) {
			all = append(all, root)
		}
	}
	if s.home != "" && p.Home != "" {
		all = append(all, filepath.Join(p.Home, filepath.FromSlash(s.home)))
	}
	return all
}

// scriptHead returns the beginning of a script, or an empty string for other files.
func scriptHead(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 2<<10))
	if err != nil || !strings.HasPrefix(string(head), "#!") {
		return ""
	}
	return string(head)
}

// managerQuestion makes the question which file a word means in dir. If the manager
// is missing, it returns false and sets Problem and Fix of prog.
func (p Prober) managerQuestion(prog *Program, dir string, s *shim) (question, bool) {
	manager := p.findManager(s, prog.Path)
	if manager == "" {
		prog.Problem = prog.Word + " is a shim of " + s.name + ", which is not there itself"
		prog.Fix = "install " + s.name + ", or put its directory into PATH"
		return question{}, false
	}
	verb := "which"
	if s.name == "proto" {
		verb = "bin"
	}
	q := question{dir: dir, argv: []string{manager, verb, filepath.Base(prog.Word)}, limit: askTools, shim: s}
	if shims := filepath.Dir(prog.Path); s.env != "" && proc.LookupVariable(p.Environ, s.env) == "" && filepath.Base(shims) == s.sub {
		q.env = []string{s.env + "=" + filepath.Dir(shims)} // The home may be another user's, as in a cron job or in CI.
	}
	return q, true
}

// findManager finds the program of a manager: in PATH, where it installs itself, or
// beside the shim.
func (p Prober) findManager(s *shim, path string) string {
	if found := p.FindInPath(s.name); found != "" {
		return found
	}
	dirs := []string{filepath.Dir(path)}
	for _, root := range s.rootDirs(p) {
		dirs = append(dirs, filepath.Join(root, "bin"), root)
	}
	if link, err := filepath.EvalSymlinks(path); err == nil {
		dirs = append(dirs, filepath.Dir(link))
	}
	for _, dir := range dirs {
		if found := filepath.Join(dir, s.name); checkExecutable(found) == nil {
			return found
		}
	}
	return ""
}

// What managers say if they have no program for a word. Only plain characters are
// taken from an answer: a person may paste the fix, and the answer may repeat text
// from a file of the project.
var (
	missingVersion = lazyregexp.New("version [`'\"]([A-Za-z0-9][A-Za-z0-9._-]*)[`'\"]? is not installed")
	otherVersions  = lazyregexp.New(`(?m)command exists in these \S+ versions:\n\s+([A-Za-z0-9][A-Za-z0-9._-]*)`)
	asdfChoices    = lazyregexp.New(`one of the following versions in your config file.*\n([a-z0-9-]+ [A-Za-z0-9][A-Za-z0-9._-]*)`)
	ofPython       = lazyregexp.New(`^(?:python|pip)[0-9.]*$`)
	toolchain      = lazyregexp.New(`toolchain '([A-Za-z0-9][A-Za-z0-9._-]*)' is not installed`)
	advised        = lazyregexp.New(`(?:asdf (?:install|set|global)|mise (?:use|install)|volta (?:install|pin)|` +
		`rustup (?:default|toolchain install|component add)|proto (?:install|use|pin)) [A-Za-z0-9][A-Za-z0-9@._-]*(?: [A-Za-z0-9][A-Za-z0-9@._-]*)?`)
)

// fixFor returns what a person does so that the manager finds a program for word.
func (s *shim) fixFor(word, said string) string {
	if m := missingVersion.FindStringSubmatch(said); m != nil {
		return s.name + " install " + m[1]
	}
	if m := otherVersions.FindStringSubmatch(said); m != nil {
		return s.name + " local " + m[1]
	}
	if m := asdfChoices.FindStringSubmatch(said); m != nil {
		return "add the line " + m[1] + " to .tool-versions"
	}
	if m := advised.FindString(strings.ReplaceAll(said, " -g ", " ")); m != "" {
		return m
	}
	if m := toolchain.FindStringSubmatch(said); m != nil {
		return "rustup toolchain install " + m[1]
	}
	if s.name == "pyenv" && !ofPython.MatchString(word) {
		return "python -m pip install " + Quoted(word) + " && pyenv rehash"
	}
	return strings.ReplaceAll(s.manual, "WORD", word)
}

// firstLine returns the first line of an answer that is not progress, at most 200
// characters of it, without colours and control characters.
func firstLine(said string) string {
	printable := func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(strings.Map(printable, escapes.ReplaceAllString(line, "")))
		if line == "" || strings.HasPrefix(line, "info:") || strings.HasPrefix(line, "warning:") {
			continue
		}
		const most = 200
		if runes := []rune(line); len(runes) > most {
			line = string(runes[:most]) + "…"
		}
		return line
	}
	return ""
}

var escapes = lazyregexp.New("\x1b\\[[0-9;?]*[A-Za-z]")
