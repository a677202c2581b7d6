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

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/surface/mcp"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newMCPCommand(a *app) *cobra.Command {
	as, tools := string(loop.RoleAgent), string(verb.ToolsCore)
	var loops []string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve agents and editors over MCP, on standard input and output", Args: exactArgs(0),
		Long: `Serve one client over the Model Context Protocol, on standard input and output: loops are created, run a step at a time,
explained and stopped by tools, and read as resources.

It asks pawl up if that is at work, and else does everything in this process; when standard input ends, runs that it
has begun get 10 seconds to end, then they are interrupted and keep their work. The client is an agent: it cannot
approve, land, raise a budget, resume what a person has stopped, or edit a definition. It is told the command with
which a person does that. With --as viewer it only reads.

With --loops it reaches the loops of the folder's workspace that are named, and no others: it sees, runs, pauses and
stops those, and makes none. A workspace is reached only if a person has registered it (pawl init), and a definition
runs only as a person has accepted it (pawl check LOOP).

Tools come in groups: seed has the five of the loop lifecycle, core what is needed from day to day, all the rest.`,
		Example: "  pawl mcp\n  pawl mcp --as viewer --tools all\n  claude mcp add pawl -- pawl mcp",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if roles := []string{string(loop.RoleAgent), string(loop.RoleViewer)}; !slices.Contains(roles, as) {
				return usageError(cmd, "--as "+quoteArg(as)+": write "+strings.Join(roles, " or ")+"; who reads standard input is a program, never a person")
			}
			group := verb.ToolGroup(tools)
			if !slices.Contains(verb.ToolGroups(), group) {
				return usageError(cmd, "--tools "+quoteArg(tools)+": write seed, core or all")
			}
			names, err := parseLoopNames(cmd, loops)
			if err != nil {
				return err
			}
			var grant *loop.Grant
			if names != nil {
				if grant, err = a.grantHere(cmd.Context(), names); err != nil {
					return err
				}
			}
			return serveMCP(cmd.Context(), a, loop.Role(as), group, grant)
		},
	}
	cmd.Flags().StringVar(&as, "as", as, "what the client is: agent or viewer")
	cmd.Flags().StringVar(&tools, "tools", tools, "which tools it is offered: seed, core or all")
	cmd.Flags().StringSliceVar(&loops, "loops", nil, "`LOOP`s of the folder's workspace that the client reaches; left out: all")
	completeFlag(cmd, "loops", completeLoops(a))
	completeFlag(cmd, "as", offerWords("agent", "viewer"))
	completeFlag(cmd, "tools", offerWords("seed", "core", "all"))
	cmd.AddCommand(newMCPInstallCommand(a))
	return cmd
}

// parseLoopNames reads the names of the loops that a client reaches; nil if none are named.
func parseLoopNames(cmd *cobra.Command, given []string) (names []string, err error) {
	if !cmd.Flags().Changed("loops") {
		return nil, nil
	}
	for _, name := range given {
		if name = strings.TrimSpace(name); name == "" || strings.ContainsAny(name, " \t\r\n/") {
			return nil, usageError(cmd, "--loops: "+quoteArg(name)+" is not the name of a loop; write LOOP,LOOP")
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, usageError(cmd, "--loops names no loop; write LOOP,LOOP")
	}
	return names, nil
}

// grantHere is a grant of loops of the workspace in which the command is entered.
func (a *app) grantHere(ctx context.Context, names []string) (g *loop.Grant, err error) {
	err = a.withReadOnlyVerbs(ctx, func(s *api.Workspace) error {
		if !s.Lookup.Placed {
			return unregisteredError(s.Root, "the loops of --loops are those of the workspace in which it is started")
		}
		g = grantOf(s.Lookup.ID, names)
		return nil
	})
	return g, err
}

func grantOf(workspace string, names []string) *loop.Grant {
	g := &loop.Grant{}
	for _, name := range names {
		g.Loops = append(g.Loops, loop.GrantedLoop{Workspace: workspace, Loop: name})
	}
	return g
}

// unregisteredError is the error for a grant in a workspace that nobody has registered.
func unregisteredError(root, why string) error {
	return &loop.Fault{
		Exit: loop.ExitRefused, What: root + " is not a registered workspace", Why: why, Fix: "register it: {1} there", Actions: []loop.Command{loop.PawlCommand("init")}, Err: loop.ErrUnregistered,
	}
}

// serveMCP serves one client until its stream ends.
func serveMCP(ctx context.Context, a *app, role loop.Role, group verb.ToolGroup, grant *loop.Grant) error {
	out := a.Out
	a.Out = a.Err // Standard output is for frames only.
	by := a.actor("")
	by = loop.Actor{Who: string(role) + " of " + by.Who, Role: role, From: "mcp", Grant: grant}
	parts := &openParts{}
	s := mcp.New(mcp.Options{
		Version: version, Group: group, By: by, Dir: a.workDir(), Log: compose.Log(a.Environ),
		Open: func(r mcp.Request) verb.Caller { return &mcpCaller{a, parts, r} },
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
		grant := a.grantOfKey(ctx, of, k)
		tokens[k.token] = mcp.New(mcp.Options{
			Version: version, Group: verb.ToolsAll, By: loop.Actor{Who: k.name + " of " + user, Role: k.role, From: "mcp", Grant: grant}, Log: log,
			Open: func(r mcp.Request) verb.Caller { return of.Local(r.Dir, r.By, r.Key, r.Say) },
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

// grantOfKey is the grant of the holder of a token; nil if it reaches all loops. Loops of a
// workspace that cannot be opened, or is not registered, are not reached, and it is said.
func (a *app) grantOfKey(ctx context.Context, of *api.Server, k mcpKey) *loop.Grant {
	if k.reaches == nil {
		return nil
	}
	g := &loop.Grant{}
	for _, r := range k.reaches {
		ws, err := of.Open(ctx, r.workspace, false)
		if err == nil && !ws.Lookup.Placed {
			err = unregisteredError(ws.Root, "")
		}
		if err != nil {
			a.printer().Note("pawl: warning: %s: the token reaches none of the loops of %s: %s", output.CleanLine(filepath.Base(k.file)), output.CleanLine(r.workspace), output.CleanLine(verb.Explain(err).What))
			continue
		}
		g.Loops = append(g.Loops, grantOf(ws.Lookup.ID, r.loops).Loops...)
	}
	return g
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
func (m *mcpCaller) Call(ctx context.Context, v verb.Info, in, out any) error {
	c := &caller{a: m.a, dir: m.r.Dir, by: m.r.By, key: m.r.Key, say: m.r.Say, parts: m.parts, workspaces: map[bool]*api.Workspace{}}
	if err := c.findDaemon(ctx); err != nil {
		return err
	}
	defer c.leaveDaemon()
	return c.Call(ctx, v, in, out)
}
