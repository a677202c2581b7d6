package engine

import (
	"os"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

// site is where the programs of a definition work: their copies, environment
// and time limits, all under one id, which is that of a run or of a try.
type site struct {
	*Engine
	id      string
	loop    string // name
	root    string // of the checkout
	repo    *git.Repo
	def     loop.Definition // with defaults
	started time.Time

	agent     []string // command lines of the agent's program
	tools     *tools
	say       func(string) // shows an event of whoever works at the site
	iteration int
	step      []string // variables of the step at hand, the same for its agent and its gates
}

func (c *cycle) site() site {
	s := site{Engine: c.Engine, id: c.run.ID, loop: c.t.Loop.Name, root: c.t.Workspace.Root, repo: c.t.Repo, def: c.def, started: c.started, agent: c.actor.Lines(), tools: &c.tools, say: func(text string) { c.note("%s", c.hide(text)) }}
	if s.iteration = len(c.its); s.iteration > 0 {
		s.step = s.stepEnviron(stepText(c.stepOf(c.current())), len(c.its))
	}
	return s
}

func (c *cycle) within(limit time.Duration) time.Duration { return c.site().within(limit) }

func (c *cycle) environ(more []string) []string { return c.site().environ(more) }

// within is a time limit that does not reach beyond the definition's own, but
// for a second in which a program can say something.
func (s site) within(limit time.Duration) time.Duration {
	return min(limit, max(time.Second, s.def.MaxWallClock-s.Now().Sub(s.started)))
}

// environ is the complete environment of agents, gates and sense commands: a
// few variables without which programs do not run, what the definition allows,
// and what pawl says. Nothing else is passed on.
func (s site) environ(more []string) []string {
	allowed := append([]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}, s.def.Env...)
	var env []string
	for _, name := range allowed {
		for _, kv := range s.Environ {
			if strings.HasPrefix(kv, name+"=") {
				env = append(env, rooted(kv))
			}
		}
	}
	env = append(env, Tag(s.id), "PAWL_LOOP="+s.loop,
		// Without this, git would look in the folders above for the repository of
		// a copy whose own directory of git was taken away.
		"GIT_CEILING_DIRECTORIES="+s.treesDir())
	return append(env, more...)
}

// rooted takes the entries of a PATH away that mean another folder in another
// place: in a copy they would be an agent's. Other variables stay as they are.
func rooted(kv string) string {
	list, ok := strings.CutPrefix(kv, "PATH=")
	if !ok {
		return kv
	}
	return "PATH=" + strings.Join(proc.PathDirs(list), string(os.PathListSeparator))
}
