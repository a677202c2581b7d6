package compose

import (
	"context"
	"io"

	"github.com/pawl-run/pawl/internal/agents/toolsocket"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/mcp"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// insideTools serves pawl's own tools to the agent of one run, in the process that carries the
// run out.
type insideTools struct {
	parts *Parts
	by    loop.Actor
	root  string // of the workspace
	told  func(tool, outcome string)
}

func (d *Parts) insideTools(by loop.Actor, root string, told func(tool, outcome string)) turn.ToolServer {
	return &insideTools{d, by, root, told}
}

// Serve answers one client until its stream or ctx ends.
func (t *insideTools) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	s := mcp.New(mcp.Options{
		Version: t.parts.version, Group: verb.ToolsAll, By: t.by, Dir: t.root, Log: t.parts.engine.Log, Told: t.told,
		Open: func(r mcp.Request) verb.Caller { return &insideCaller{t, r} },
	})
	return s.Serve(ctx, conn, conn)
}

// insideCaller carries out the verbs of one request. Runs are carried out in this process, below
// the turn in which they are asked for, whether a daemon is at work or not: a queue could make a
// run wait for its own end.
type insideCaller struct {
	tools   *insideTools
	request mcp.Request
}

// Call carries a verb out.
func (c *insideCaller) Call(ctx context.Context, v verb.Info, in, out any) error {
	if v.Needs != "" {
		return verb.ErrNoDaemon
	}
	d, verbs := c.tools.parts, c.tools.parts.StoreVerbs()
	deps := d.lookup
	deps.Store = deps.Store.Inside(*c.tools.by.Grant.Inside)
	verbs.Rows = deps.Store
	return verb.Local{Request: verb.Call{
		Open: func(ctx context.Context, _ bool) (verb.Workspace, error) {
			repo, err := d.openGit(ctx, c.tools.root)
			if err != nil {
				return nil, err
			}
			w, _, err := d.openRepo(ctx, deps, repo)
			return w, err
		},
		Store: verbs, By: c.request.By, Say: c.request.Say, Key: c.request.Key,
	}}.Call(ctx, v, in, out)
}

// RunToolRelay joins standard streams to pawl's own tools and returns the exit status, if pawl
// was started for that, in the sandbox of an agent. Otherwise it does nothing.
func RunToolRelay(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) (status int, ran bool) {
	if len(args) == 0 || args[0] != toolsocket.Argument {
		return 0, false
	}
	return toolsocket.Relay(ctx, args, in, out, errOut), true
}
