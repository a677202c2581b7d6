package engine

import (
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
}

func (c *cycle) site() site {
	return site{c.Engine, c.run.ID, c.t.Loop.Name, c.t.Repo, c.def, c.started}
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
				env = append(env, kv)
			}
		}
	}
	env = append(env, Tag(s.id), "PAWL_LOOP="+s.loop,
		// The copy lies in no repository; without this git would look for one
		// in the folders above.
		"GIT_CEILING_DIRECTORIES="+s.treesDir())
	return append(env, more...)
}
