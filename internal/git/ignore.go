package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/program"
)

// Ignores answers whether a path is ignored by a set of .gitignore files and
// the repository's info/exclude, through one long-lived git process that is
// started with the first question if there is any rule. It is for one goroutine.
type Ignores struct {
	ctx  context.Context
	repo *Repo
	dir  string
	fill func(dir string) error

	once  sync.Once
	none  bool // there is no rule, and no process
	err   error
	in    *os.File
	out   *bufio.Reader
	close func() error
}

// Ignores prepares questions that are answered by the .gitignore files below
// dir, a directory of its own, into which fill puts them before the first
// question. What an agent writes into its tree is not a rule.
func (r *Repo) Ignores(ctx context.Context, dir string, fill func(dir string) error) *Ignores {
	return &Ignores{ctx: ctx, repo: r, dir: dir, fill: fill}
}

// Ignored reports for each path whether it is ignored. The path of a directory
// ends with a slash, and no two paths are a file and a directory of one name. A
// .gitignore is never ignored: a new one is always seen. After an error nothing
// is ignored, and Close returns the error.
func (g *Ignores) Ignored(paths []string) []bool {
	ignored := make([]bool, len(paths))
	var asked []int
	for i, path := range paths {
		if filepath.Base(path) != ".gitignore" {
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return ignored
	}
	g.once.Do(g.startProcess)
	if g.err != nil || g.none {
		return ignored
	}
	var questions []byte
	for _, i := range asked {
		g.placePath(paths[i])
		questions = append(append(questions, paths[i]...), 0)
	}
	// Git answers while it is still being asked.
	written := make(chan error, 1)
	go func() {
		_, err := g.in.Write(questions)
		written <- err
	}()
	var err error
	for _, i := range asked {
		if ignored[i], err = g.readAnswer(); err != nil {
			break
		}
	}
	if err != nil {
		g.err = fmt.Errorf("ask git what is ignored: %w", err)
		_ = g.in.Close() // It is not asked again, and the writer must not wait for it.
		ignored = make([]bool, len(paths))
	}
	if werr := <-written; werr != nil && g.err == nil {
		g.err = fmt.Errorf("ask git what is ignored: %w", werr)
	}
	return ignored
}

// placePath creates or removes a directory, because rules for directories match only
// those that exist.
func (g *Ignores) placePath(path string) {
	there := filepath.Join(g.dir, filepath.FromSlash(path))
	if strings.HasSuffix(path, "/") {
		_ = os.MkdirAll(there, 0o700)
	} else if info, err := os.Lstat(there); err == nil && info.IsDir() {
		_ = os.RemoveAll(there) // It was one when it was asked about before.
	}
}

// readAnswer reads one. It has four fields: source, line, pattern, path. Without a
// rule the first three are empty.
func (g *Ignores) readAnswer() (ignored bool, err error) {
	var fields [4]string
	for i := range fields {
		field, err := g.out.ReadString(0)
		if err != nil {
			return false, err
		}
		fields[i] = field[:len(field)-1]
	}
	return fields[2] != "" && fields[2][0] != '!', nil
}

func (g *Ignores) startProcess() {
	if err := errors.Join(os.MkdirAll(g.dir, 0o700), g.fill(g.dir)); err != nil {
		g.err = fmt.Errorf("put the ignore rules into %s: %w", g.dir, err)
		return
	}
	if g.repo.hasNoRules(g.dir) {
		g.none = true
		return
	}
	// Literal pathspecs are refused by this verb, which takes its paths
	// literally anyway.
	git := program.New(g.repo.git.Run, g.repo.GitDir, g.repo.CommonDir, g.dir).Without("GIT_LITERAL_PATHSPECS")
	git.Dir = g.dir
	s, err := git.Start(g.ctx, "check-ignore", "--stdin", "-z", "--verbose", "--non-matching", "--no-index")
	if err != nil {
		g.err = err
		return
	}
	g.in, g.out = s.In, bufio.NewReader(s.Out)
	g.close = func() error {
		err := errors.Join(s.In.Close(), ignoreNoMatch(<-s.Ended))
		return errors.Join(err, s.Out.Close())
	}
}

// hasNoRules reports whether nothing is ignored: no .gitignore is below dir, and neither
// the repository nor its configuration has rules.
func (r *Repo) hasNoRules(dir string) bool {
	config, err := readSmall(filepath.Join(r.CommonDir, "config"), 1<<20)
	if err != nil {
		return false
	}
	settings, err := gitconfig.Parse(config)
	if err != nil {
		return false
	}
	for _, s := range settings {
		if section, _, name := s.Split(); section == "include" || section == "includeif" || section == "extensions" || name == "excludesfile" {
			return false
		}
	}
	exclude, err := readSmall(filepath.Join(r.CommonDir, "info", "exclude"), 64<<10)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for line := range strings.Lines(string(exclude)) {
		if line[0] != '#' && strings.TrimSpace(line) != "" {
			return false
		}
	}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".gitignore" {
			err = fs.ErrExist
		}
		return err
	})
	return err == nil
}

// ignoreNoMatch drops the exit status that means that nothing was ignored.
func ignoreNoMatch(err error) error {
	if program.Status(err) == 1 {
		return nil
	}
	return err
}

// Close ends the process and returns the first error. Without a question it
// does nothing.
func (g *Ignores) Close() error {
	if g.close == nil {
		return g.err
	}
	return errors.Join(g.err, g.close())
}
