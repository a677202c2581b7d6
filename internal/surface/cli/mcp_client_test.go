package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpClient is a client of pawl mcp for scripts:
//
//	mcpclient [FLAG ...] [--] list | resources | templates
//	mcpclient [FLAG ...] [--] read URI | prompt NAME [ARG=VALUE ...] | complete URI ARG PREFIX
//	mcpclient [FLAG ...] [--] TOOL [ARG=VALUE ...]
//
// Flags are those of pawl mcp; with --url=URL it asks a daemon over HTTP, with the token of
// $MCP_TOKEN. --structured prints the structured content of a tool, --progress what it tells
// meanwhile, too. It exits with 5 if the tool failed, and with 6 if the protocol did.
func mcpClient(args []string) int {
	var flags []string
	structured, progress, url := false, false, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		switch name, value, _ := strings.Cut(args[0], "="); name {
		case "--structured":
			structured = true
		case "--progress":
			progress = true
		case "--url":
			url = value
		case "--":
		default:
			flags = append(flags, args[0])
		}
		args = args[1:]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, failed, err := askMCP(ctx, flags, url, args, structured, progress)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 6
	}
	if failed {
		fmt.Fprintln(os.Stderr, out)
		return 5
	}
	fmt.Println(out)
	return 0
}

type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+os.Getenv("MCP_TOKEN"))
	return http.DefaultTransport.RoundTrip(r)
}

func askMCP(ctx context.Context, flags []string, url string, args []string, structured, progress bool) (out string, failed bool, err error) {
	var notes []string
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			notes = append(notes, r.Params.Message)
		},
	})
	server := exec.CommandContext(ctx, "pawl", append([]string{"mcp"}, flags...)...)
	server.Stderr = os.Stderr
	var transport mcp.Transport = &mcp.CommandTransport{Command: server}
	if url != "" {
		transport = &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken{}}, DisableStandaloneSSE: true}
	}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = session.Close() }()
	switch name, rest := args[0], args[1:]; name {
	case "list":
		var lines []string
		for t, err := range session.Tools(ctx, nil) {
			if err != nil {
				return "", false, err
			}
			lines = append(lines, t.Name+" "+t.Description)
		}
		return strings.Join(lines, "\n"), false, nil
	case "resources":
		var lines []string
		for r, err := range session.Resources(ctx, nil) {
			if err != nil {
				return "", false, err
			}
			lines = append(lines, r.URI)
		}
		return strings.Join(lines, "\n"), false, nil
	case "templates":
		var lines []string
		for r, err := range session.ResourceTemplates(ctx, nil) {
			if err != nil {
				return "", false, err
			}
			lines = append(lines, r.URITemplate)
		}
		return strings.Join(lines, "\n"), false, nil
	case "read":
		r, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: rest[0]})
		if err != nil {
			return "", false, err
		}
		return r.Contents[0].Text, false, nil
	case "complete":
		r, err := session.Complete(ctx, &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: "ref/resource", URI: rest[0]}, Argument: mcp.CompleteParamsArgument{Name: rest[1], Value: strings.Join(rest[2:], "")},
		})
		if err != nil {
			return "", false, err
		}
		return strings.Join(r.Completion.Values, "\n"), false, nil
	case "prompt":
		given := map[string]string{}
		for _, arg := range rest[1:] {
			name, value, _ := strings.Cut(arg, "=")
			given[name] = value
		}
		r, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: rest[0], Arguments: given})
		if err != nil {
			return "", false, err
		}
		return r.Messages[0].Content.(*mcp.TextContent).Text, false, nil
	default:
		given := map[string]any{}
		for _, arg := range rest {
			name, value, _ := strings.Cut(arg, "=")
			if json.Unmarshal([]byte(value), new(any)) == nil {
				given[name] = json.RawMessage(value)
			} else {
				given[name] = value
			}
		}
		params := &mcp.CallToolParams{Name: name, Arguments: given}
		if progress {
			params.SetProgressToken("p")
		}
		r, err := session.CallTool(ctx, params)
		if err != nil {
			return "", false, err
		}
		out = r.Content[0].(*mcp.TextContent).Text
		if structured {
			body, err := json.Marshal(r.StructuredContent)
			if err != nil {
				return "", false, err
			}
			out = string(body)
		}
		return strings.Join(append(notes, out), "\n"), r.IsError, nil
	}
}
