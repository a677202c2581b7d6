package engine

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/runenv"
	"github.com/pawl-run/pawl/internal/turn"
)

// modelPort is where programs with a network of their own find the endpoint of
// their model.
const modelPort = 3129

// openTurnEnv makes what the agent's program needs around it for one turn.
func (c *cycle) openTurnEnv(ctx context.Context) (*turn.Env, error) {
	s := c.runEnv()
	if c.unsigned != nil {
		return nil, c.unsigned
	}
	c.run.Auth = c.signed.Auth
	if c.signed.BaseFrom != "" && c.turns == 0 {
		c.said.Note("model: requests go to %s, as %s says", c.signed.Base.Host, c.signed.BaseFrom)
	}
	uid, gid := s.Owner()
	return turn.Open(ctx, turn.Need{
		Actor: c.actor, With: c.signed, Run: c.run.ID, Chain: c.run.LoopID, Loan: c.loan, Tier: s.Tier(), Port: modelPort, Dir: c.turnEnvDir(), Kept: c.def.Resume,
		SeenHome: s.SeenHome(), UID: uid, GID: gid, PawlHome: c.Home, Holder: c.Self, Account: c.ledger().Account(), Tools: c.def.ModelTools,
		Upstream: s.Upstream(), Say: s.Say, Denied: turn.Denials(s.Say, func(text string) { c.said.Emit(loop.EventRefused, text) }), Reopen: c.reopen(ctx),
	})
}

// sign finds what the agent identifies itself with. What it lacks is said when it
// would act, because a run that finds nothing to do needs nothing.
func (c *cycle) sign() {
	c.signed, c.unsigned = c.actor.Credential(c.Environ, proc.Variable(c.Environ, "HOME"), c.Now())
}

// turnEnvDir is the folder in which the agent's home is. That of a conversation that
// is gone on with outlives the run.
func (c *cycle) turnEnvDir() string {
	if c.def.Resume {
		return filepath.Join(c.Home, "sessions", c.run.LoopID, c.actor.Handle)
	}
	return filepath.Join(c.runDir(c.run.ID), "turnenv-"+strconv.Itoa(c.turns+1))
}

// useOf is what an agent's program needs of its place.
func (c *cycle) useOf(turnEnv *turn.Env, dir string) runenv.Use {
	u := runenv.Use{Turn: dir, Hosts: turnEnv.Hosts, Answered: turnEnv.Answered, Masks: c.actor.Profile.Masks, Unseen: c.attached(), Ports: turnEnv.Ports, Binds: turnEnv.Binds}
	if turnEnv.Home != nil {
		u.Home = turnEnv.HomeDir
	}
	return u
}
