package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
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
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve agents and editors over MCP, on standard input and output", Args: exactArgs(0),
		Long: `Serve one client over the Model Context Protocol, on standard input and output: loops are created, run a step at a time,
explained and stopped by tools, and read as resources.

It asks pawl up if that is at work, and else does everything in this process; when standard input ends, runs that it
has begun get 10 seconds to end, then they are interrupted and keep their work. The client is an agent: it cannot
approve, land, raise a budget, resume what a person has stopped, or edit a definition. It is told the command with
which a person does that. With --as viewer it only reads.

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
			return serveMCP(cmd.Context(), a, loop.Role(as), group)
		},
	}
	cmd.Flags().StringVar(&as, "as", as, "what the client is: agent or viewer")
	cmd.Flags().StringVar(&tools, "tools", tools, "which tools it is offered: seed, core or all")
	completeFlag(cmd, "as", offerWords("agent", "viewer"))
	completeFlag(cmd, "tools", offerWords("seed", "core", "all"))
	cmd.AddCommand(newMCPInstallCommand(a))
	return cmd
}

// serveMCP serves one client until its stream ends.
func serveMCP(ctx context.Context, a *app, role loop.Role, group api.ToolGroup) error {
	out := a.Out
	a.Out = a.Err // Standard output is for frames only.
	by := a.actor("")
	by = loop.Actor{Who: string(role) + " of " + by.Who, Role: role, From: "mcp"}
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
	tokens := map[string]*mcp.Server{}
	for _, role := range []loop.Role{loop.RoleAgent, loop.RoleViewer} {
		token, err := readToken(filepath.Join(dir, string(role)+".key"))
		if err != nil {
			return nil, err
		}
		if tokens[token] != nil {
			return nil, &loop.Fault{
				Exit: loop.ExitUnreadable, What: "agent.key and viewer.key in " + dir + " have the same token", Why: "nobody could tell who asks", Fix: "remove one of the files: a new token is made",
			}
		}
		tokens[token] = mcp.New(mcp.Options{
			Version: version, Group: api.ToolsAll, By: loop.Actor{Who: string(role) + " of " + user, Role: role, From: "mcp"}, Log: log,
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

// readToken reads the token of a file, which is made if it is missing.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(file, []byte(rand.Text()+rand.Text()+"\n"), 0o600); err != nil {
			return "", err
		}
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if why := weakness(token); why != "" {
		return "", &loop.Fault{Exit: loop.ExitUnreadable, What: file + " has no token that can be used", Why: why, Fix: "remove the file: a new token is made"}
	}
	return token, nil
}

// weakness says why a token may be guessed; empty: it may not. What is estimated is how random it
// looks, by its letters and by the triples of them that repeat: who chose it may know more.
func weakness(token string) string {
	const (
		least = 32 // characters
		bits  = 80 // 32 random hexadecimal digits have about 115 by this estimate
	)
	letters, triples := map[byte]int{}, map[string]bool{}
	for i := range len(token) {
		letters[token[i]]++
		triples[token[i:min(i+3, len(token))]] = true
	}
	estimate := 0.0
	for _, n := range letters {
		estimate -= float64(n) * math.Log2(float64(n)/float64(len(token)))
	}
	estimate *= float64(len(triples)) / float64(len(token))
	switch {
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return "it has characters that are no header's"
	case len(token) < least:
		return fmt.Sprintf("it has %d characters, and a token at least %d", len(token), least)
	case estimate < bits:
		return "it repeats itself so much that it can be guessed"
	}
	return ""
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
