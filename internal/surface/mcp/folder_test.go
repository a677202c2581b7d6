package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// opened notes in which folders verbs are asked for.
type opened struct{ folders []string }

// Call answers nothing.
func (*opened) Call(context.Context, verb.Info, any, any) error { return loop.ErrNotFound }

// withoutFolder is a server whose clients have no folder that anybody knows.
func withoutFolder(t *testing.T) (*Server, *opened) {
	t.Helper()
	in := &opened{}
	s := New(Options{
		Version: "1", Group: verb.ToolsAll, By: loop.Actor{Who: "agent", Role: loop.RoleAgent, From: "mcp"}, Log: slog.New(slog.DiscardHandler),
		Open: func(r Request) verb.Caller {
			in.folders = append(in.folders, r.Dir)
			return in
		},
	})
	t.Cleanup(s.Close)
	return s, in
}

// TestOverHTTPHereIsNowhere asks for everything without a workspace, and with one that only
// the daemon could complete.
func TestOverHTTPHereIsNowhere(t *testing.T) {
	t.Parallel()
	s, in := withoutFolder(t)
	for _, tool := range s.tools {
		if !tool.Verbs[0].InWorkspace {
			continue
		}
		for _, workspace := range []string{"", ".", "r"} {
			given := map[string]any{argWorkspace: workspace}
			for _, a := range argumentsOf(tool) {
				if a.required {
					given[a.name] = "x"
				}
			}
			raw, err := json.Marshal(given)
			if err != nil {
				t.Fatal(err)
			}
			if c, err := s.parse(tool, raw); err == nil {
				t.Errorf("%s in %q is about %q", tool.Name, workspace, c.dir)
			}
		}
	}
	for _, uri := range []string{
		inbox, scheme + "run/r1/trace", scheme + "approval/a1", scheme + "ws/here/loop/ci/state", scheme + "ws/here/inbox", scheme + "ws/r/inbox", scheme + "ws/..%2Fr/run/r1/diff",
	} {
		if _, err := s.find(t.Context(), uri); err == nil || s.explain(err).Argument != argWorkspace {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, ref := range []string{scheme + "run/{id}/{part}", inWorkspace + "loop/{name}/{part}"} {
		if values := s.offer(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{URI: ref}, Argument: sdk.CompleteParamsArgument{Name: "id"}}); values != nil {
			t.Errorf("%s is completed with %v", ref, values)
		}
	}
	if len(in.folders) > 0 {
		t.Errorf("folders were opened: %q", in.folders)
	}
	for uri, want := range map[string]string{scheme + "ws/%2Fr/inbox": "/r", scheme + "ws/%2Fr/run/r1/trace": "/r", scheme + "ws/%2Fr/approval/a1": "/r", scheme + "ws/%2Fr/loop/ci/state": "/r"} {
		if r, err := s.locate(uri); err != nil || r.dir != want {
			t.Errorf("%s is in %q, %v", uri, r.dir, err)
		}
	}
}

// TestAPromptSaysOverHTTPWhichFolderItMeans asks as a client does.
func TestAPromptSaysOverHTTPWhichFolderItMeans(t *testing.T) {
	t.Parallel()
	s, in := withoutFolder(t)
	here, there := sdk.NewInMemoryTransports()
	if _, err := s.server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	ask := func(given map[string]string) string {
		_, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "explain_run", Arguments: given})
		if err == nil {
			t.Fatalf("%v is answered", given)
		}
		return err.Error()
	}
	if said := ask(map[string]string{"run": "ci#1"}); !strings.Contains(said, "workspace") || len(in.folders) > 0 {
		t.Errorf("without a workspace: %s, opened %q", said, in.folders)
	}
	if ask(map[string]string{"run": "ci#1", argWorkspace: "/r"}); len(in.folders) != 1 || in.folders[0] != "/r" {
		t.Errorf("opened %q, want /r", in.folders)
	}
}
