// Package runenv is where the programs of a definition work: copies of its
// repository with their dependencies prepared, what programs find beside them, the
// environment and the limits that they run with, and what confines them. All that
// belongs to one run, or to one try, bears one id.
//
// It never decides which program runs or what its end means, never acts on a
// checkout, and knows no rows: what a run is in the store is not its business.
package runenv

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Host is what all run environments of this process share. All but Guard, Egress and GatesOf is required.
type Host struct {
	Home    string   // folder for trees, layers, caches and run files
	Environ []string // of this process; what a definition allows is taken from it
	Exec    proc.Runner
	Guard   *proc.Guard // of the programs of runs; may be nil
	Now     func() time.Time
	Log     *slog.Logger
	Egress  func(*meter.Egress)          // may change a proxy before it serves; may be nil
	GatesOf func(loop.Definition) []Gate // in the order in which they run; nil: the commands of the definition
}

// Env is where the programs of one definition work.
type Env struct {
	Host
	ID         string // of the run or the try
	Loop       string // name
	Root       string // of the checkout
	Repo       *git.Repo
	Base       string          // commit that the gates are read from, and whose history programs may read; empty: only what the gates' lines name is known, and the history is that of each copy
	Definition loop.Definition // with defaults
	Started    time.Time

	Agent     []string     // command lines of the agent's program
	Tools     *Tools       // those of the same id share it
	Disk      *Disk        // those of the same id share it; nil: what is written is not measured
	Say       func(string) // shows an event of the run or the try
	Ask       gate.Ask     // asks a model for a gate, and charges the run; nil: no model can be asked
	Work      gate.Work    // what gates that are not commands judge beside the tree; the zero value is that of the base
	Iteration int          // that programs work on; 0: none yet
	Step      string       // that the iteration works on, as programs are told
}

// Tag is the environment entry by which processes of a run are recognised.
func Tag(id string) string { return "PAWL_RUN=" + id }

// treesDir holds the copies.
func (h Host) treesDir() string { return filepath.Join(h.Home, "trees") }

// RunDir holds the prompt and the report of a run while it lives.
func (h Host) RunDir(id string) string { return filepath.Join(h.Home, "runs", id) }

// Within is a time limit that does not reach beyond the definition's own, but
// for a second in which a program can say something.
func (s Env) Within(limit time.Duration) time.Duration {
	return min(limit, max(time.Second, s.Definition.MaxWallClock-s.Now().Sub(s.Started)))
}

// ProgramEnv is the complete environment of agents, gates and sense commands: a
// few variables without which programs do not run, what the definition allows,
// and what pawl says. Nothing else is passed on.
func (s Env) ProgramEnv() []string {
	allowed := append([]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}, s.Definition.Env...)
	var env []string
	for _, name := range allowed {
		for _, kv := range s.Environ {
			if strings.HasPrefix(kv, name+"=") {
				env = append(env, withoutRelativeDirs(kv))
			}
		}
	}
	return append(env, Tag(s.ID), "PAWL_LOOP="+s.Loop,
		// Without this, git would look in the folders above for the repository of
		// a copy whose own directory of git was taken away.
		"GIT_CEILING_DIRECTORIES="+s.treesDir())
}

// StepEnv is the environment of an agent and of its gates: they are told the
// same of the step, so that nothing in the tree can tell who runs it.
func (s Env) StepEnv() []string {
	env := append(s.ProgramEnv(), fmt.Sprintf("PAWL_ITERATION=%d", s.Iteration))
	if s.Iteration == 0 {
		return env
	}
	dir := s.SeenTurn(s.TurnDir(s.ID, s.Iteration))
	return append(env, "PAWL_STEP="+s.Step, "PAWL_PROMPT="+filepath.Join(dir, promptName), "PAWL_REPORT="+filepath.Join(dir, reportName))
}

// withoutRelativeDirs removes the relative entries of a PATH: in a copy they would be
// folders of an agent's. Other variables stay as they are.
func withoutRelativeDirs(kv string) string {
	list, ok := strings.CutPrefix(kv, "PATH=")
	if !ok {
		return kv
	}
	return "PATH=" + strings.Join(proc.PathDirs(list), string(os.PathListSeparator))
}
