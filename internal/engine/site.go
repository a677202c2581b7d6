package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
)

// site is where the programs of a definition work: their copies, environment
// and time limits, all under one id, which is that of a run or of a try.
type site struct {
	*Engine
	id      string
	loop    string // name
	repo    *git.Repo
	def     loop.Definition // with defaults
	started time.Time
	step    []string // variables of the step at hand, the same for its agent and its gates
}

func (c *cycle) site() site {
	s := site{Engine: c.Engine, id: c.run.ID, loop: c.t.Loop.Name, repo: c.t.Repo, def: c.def, started: c.started}
	if len(c.its) > 0 {
		s.step = c.stepEnviron(c.run.ID, stepText(c.stepOf(c.current())), len(c.its))
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
		// The copy lies in no repository; without this git would look for one
		// in the folders above.
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
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
	return "PATH=" + strings.Join(dirs, string(os.PathListSeparator))
}
