package engine

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// modelPort is where programs with a network of their own find the endpoint of
// their model.
const modelPort = 3129

// openTurnEnv makes what the agent's program needs around it for one turn.
func (a *agentSide) openTurnEnv(ctx context.Context, t assignment) (*turn.Env, error) {
	s := t.env
	if a.login.unsigned != nil {
		return nil, a.login.unsigned
	}
	if a.login.signed.BaseFrom != "" && !a.login.told {
		a.login.told = true
		a.said.Note("model: requests go to %s, as %s says", a.login.signed.Base.Host, a.login.signed.BaseFrom)
	}
	uid, gid := s.Owner()
	tell := a.tellOfTools()
	return turn.OpenEnv(ctx, turn.Need{
		Actor: a.login.actor, With: a.login.signed, Run: a.run.ID, Chain: a.run.LoopID, Loan: a.login.loan, Tier: s.Tier(), Port: modelPort, Dir: a.turnEnvDir(t), Kept: t.def.Resume,
		SeenHome: s.SeenHome(), UID: uid, GID: gid, PawlHome: a.Home, Holder: a.Self, Account: a.money.ledger().Account(), Tools: t.def.ModelTools,
		Upstream: s.Upstream(), Say: s.Say, Denied: turn.ReportDenials(s.Say, func(text string) { a.said.Emit(loop.EventRefused, text) }), Reopen: a.login.reopen,
		PawlTools: a.toolServer(t, tell), ToolsPort: toolsPort, Rejected: func(why string) { tell("pawl closed a connection to its tools: " + why) },
	})
}

// findCredential finds what the agent identifies itself with. What it lacks is said when it
// would act, because a run that finds nothing to do needs nothing.
func (l *login) findCredential() {
	l.signed, l.unsigned = l.actor.FindCredential(l.Environ, proc.LookupVariable(l.Environ, "HOME"), l.Now())
}

// turnEnvDir is the folder in which the agent's home is. That of a conversation that
// is gone on with outlives the run.
func (a *agentSide) turnEnvDir(t assignment) string {
	if t.def.Resume {
		return filepath.Join(a.Home, "sessions", a.run.LoopID, a.login.actor.Handle)
	}
	return filepath.Join(a.runDir(a.run.ID), "turnenv-"+strconv.Itoa(a.money.turns+1))
}

// useOf is what an agent's program needs of its place.
func (a *agentSide) useOf(turnEnv *turn.Env, dir string) runenv.Use {
	u := runenv.Use{Turn: dir, Hosts: turnEnv.Hosts, Answered: turnEnv.NoteAnswer, Masks: a.login.actor.Profile.Masks, Unseen: a.attachedFiles(), Ports: turnEnv.Ports, Binds: turnEnv.Binds}
	if turnEnv.Home != nil {
		u.Home = turnEnv.HomeDir
	}
	return u
}
