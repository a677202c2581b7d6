package cli

import (
	"cmp"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/api"
	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/daemon"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/mcp"
)

func newMCPCommand(a *app) *cobra.Command {
	as, tools := string(loop.RoleAgent), string(api.ToolsCore)
	var loops []string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve agents and editors over MCP, on standard input and output", Args: exactArgs(0),
		Long: `Serve one client over the Model Context Protocol, on standard input and output: loops are created, run a step at a time,
explained and stopped by tools, and read as resources.

It asks pawl up if that is at work, and else does everything in this process; when standard input ends, runs that it
has begun get 10 seconds to end, then they are interrupted and keep their work. The client is an agent: it cannot
approve, land, raise a budget, resume what a person has stopped, or edit a definition. It is told the command with
which a person does that. With --as viewer it only reads.

With --loops it reaches the loops that are named, and no others: it sees, runs, pauses and stops those, and makes none.

Tools come in groups: seed has the five of the loop lifecycle, core what is needed from day to day, all the rest.`,
		Example: "  pawl mcp\n  pawl mcp --as viewer --tools all\n  claude mcp add pawl -- pawl mcp",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if roles := []string{string(loop.RoleAgent), string(loop.RoleViewer)}; !slices.Contains(roles, as) {
				return usageError(cmd, "--as "+quoteArg(as)+": write "+strings.Join(roles, " or ")+"; who reads standard input is a program, never a person")
			}
			group := api.ToolGroup(tools)
			if !slices.Contains(api.ToolGroups(), group) {
				return usageError(cmd, "--tools "+quoteArg(tools)+": write seed, core or all")
			}
			grant, err := parseGrant(cmd, loops)
			if err != nil {
				return err
			}
			return serveMCP(cmd.Context(), a, loop.Role(as), group, grant)
		},
	}
	cmd.Flags().StringVar(&as, "as", as, "what the client is: agent or viewer")
	cmd.Flags().StringVar(&tools, "tools", tools, "which tools it is offered: seed, core or all")
	cmd.Flags().StringSliceVar(&loops, "loops", nil, "`LOOP`s that the client reaches; left out: all")
	completeFlag(cmd, "loops", completeLoops(a))
	completeFlag(cmd, "as", offerWords("agent", "viewer"))
	completeFlag(cmd, "tools", offerWords("seed", "core", "all"))
	cmd.AddCommand(newMCPInstallCommand(a))
	return cmd
}

// parseGrant reads the loops that a client reaches; nil if none are named.
func parseGrant(cmd *cobra.Command, names []string) (*loop.Grant, error) {
	if !cmd.Flags().Changed("loops") {
		return nil, nil
	}
	g := &loop.Grant{}
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, usageError(cmd, "--loops: "+quoteArg(name)+" is not the name of a loop; write LOOP,LOOP")
		}
		g.Loops = append(g.Loops, name)
	}
	if len(g.Loops) == 0 {
		return nil, usageError(cmd, "--loops names no loop; write LOOP,LOOP")
	}
	return g, nil
}

// serveMCP serves one client until its stream ends.
func serveMCP(ctx context.Context, a *app, role loop.Role, group api.ToolGroup, grant *loop.Grant) error {
	out := a.Out
	a.Out = a.Err // Standard output is for frames only.
	by := a.actor("")
	by = loop.Actor{Who: string(role) + " of " + by.Who, Role: role, From: "mcp", Grant: grant}
	parts := &openParts{}
	s := mcp.New(mcp.Options{
		Version: version, Group: group, By: by, Dir: a.workDir(), Log: compose.Log(a.Environ),
		Open: func(r mcp.Request) api.Caller { return &mcpCaller{a, parts, r} },
	})
	err := s.Serve(ctx, io.NopCloser(a.In), writeOnly{out})
	return cmp.Or(err, parts.close())
}

// serveAgents serves agents over HTTP until stop is called.
func serveAgents(ctx context.Context, a *app, of *api.Server, l net.Listener) (stop func(context.Context), err error) {
	o, err := a.composeOptions()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Settings.Home, "mcp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, user := compose.Log(a.Environ), a.actor("").Who
	tokens, files := map[string]*mcp.Server{}, map[string]string{}
	keys, err := readKeys(dir)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if before := files[k.token]; before != "" {
			return nil, &loop.Fault{
				Exit: loop.ExitUnreadable, What: before + " and " + filepath.Base(k.file) + " in " + dir + " have the same token", Why: "nobody could tell who asks", Fix: "remove one of the files: a new token is made",
			}
		}
		files[k.token] = filepath.Base(k.file)

		tokens[k.token] = mcp.New(mcp.Options{
			Version: version, Group: api.ToolsAll, By: loop.Actor{Who: k.name + " of " + user, Role: k.role, From: "mcp", Grant: k.grant}, Log: log,
			Open: func(r mcp.Request) api.Caller { return of.Local(r.Dir, r.By, r.Key, r.Say) },
		})
	}
	stopServing := daemon.Serve(ctx, l, mcp.Handler(tokens), log)
	return func(ctx context.Context) {
		stopServing(ctx)
		for _, s := range tokens {
			s.Close()
		}
	}, nil
}

// writeOnly leaves standard output open.
type writeOnly struct{ io.Writer }

// Close does nothing.
func (writeOnly) Close() error { return nil }

// mcpCaller carries out the verbs of one request of a client: each by the daemon, if one is at
// work by then.
type mcpCaller struct {
	a     *app
	parts *openParts
	r     mcp.Request
}

// Call carries a verb out.
func (m *mcpCaller) Call(ctx context.Context, v api.Info, in, out any) error {
	c := &caller{a: m.a, dir: m.r.Dir, by: m.r.By, key: m.r.Key, say: m.r.Say, parts: m.parts, workspaces: map[bool]*api.Workspace{}}
	if err := c.findDaemon(ctx); err != nil {
		return err
	}
	defer c.leaveDaemon()
	return c.Call(ctx, v, in, out)
}
