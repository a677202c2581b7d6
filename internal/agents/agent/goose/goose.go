// Package goose drives the goose CLI: one `goose run` for each turn, with
// settings that are only pawl's.
//
// It never asks a person and gives the agent the editor and the shell, and
// nothing that reaches a network. It reads no hints and loads no extensions,
// recipes or skills, neither the tree's nor the host user's. The program always
// loads plugins in .agents/plugins of the tree: its profile masks them, and where
// masks do not work, their hooks may do what the agent may. The program has no
// sign for a refusal or a cut answer, so that the driver cannot tell them from a
// good one.
package goose

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Name is the driver's entry in the roster.
const Name = "goose"

// providers are the APIs, each with the program's name for it and the variables
// for its address and its key.
var providers = map[string]struct{ name, host, key string }{
	"anthropic": {"anthropic", "ANTHROPIC_HOST", "ANTHROPIC_API_KEY"},
	"openai":    {"openai", "OPENAI_HOST", "OPENAI_API_KEY"},
}

// homeSettings is the settings file, for what no variable sets.
const homeSettings = "GOOSE_MODE: auto\nGOOSE_TELEMETRY_ENABLED: false\nextensions: {}\n"

// Driver runs goose. The zero value is ready to use.
type Driver struct{}

// Profile says what the driver needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Program: "goose", Home: true, Providers: []string{"anthropic", "openai"},
		Login: agent.Login{
			Files: []string{".config/goose/secrets.yaml"},
			Hosts: []string{"api.anthropic.com", "api.openai.com"},
		},
		Sessions: []string{".local/share/goose/sessions"}, Install: "npm install -g @aaif/goose", Masks: []string{".agents/plugins"},
	}
}

// Turn runs the program once and blocks until it and everything that it started
// have ended. The error is nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	variables, err := runEnvironment(r)
	if err != nil {
		return agent.Result{}, err
	}
	if err := r.Home.Write(".config/goose/config.yaml", []byte(homeSettings)); err != nil {
		return agent.Result{}, fmt.Errorf("write the settings of goose: %w", err)
	}
	// No event of the program names the conversation, so pawl chooses the name.
	session := loop.Session{ID: "pawl-" + strings.ToLower(rand.Text())}
	if r.Session != nil {
		session = *r.Session
	}
	p := agent.Program{
		Argv: agent.CommandLine(r, "goose", runArguments(r, session.ID)...), Env: variables, Stdin: strings.NewReader(r.Prompt),
	}
	return agent.RunStream(ctx, r, p, &decoder{request: r, session: session})
}

func runArguments(r agent.Request, session string) []string {
	args := []string{
		"run", "--instructions", "-", "--output-format", "stream-json", "--quiet", "--no-profile", "--with-builtin", "developer",
	}
	for _, s := range r.Servers {
		if s.URL != "" {
			args = append(args, "--with-streamable-http-extension", s.URL)
		} else {
			args = append(args, "--with-extension", s.Command)
		}
	}
	switch {
	case r.Session != nil:
		return append(args, "--name", session, "--resume")
	case r.Keep:
		return append(args, "--name", session)
	}
	return append(args, "--no-session")
}

func runEnvironment(r agent.Request) ([]string, error) {
	p, ok := providers[cmp.Or(r.Models.Provider, "openai")]
	if !ok {
		return nil, fmt.Errorf("configure goose: provider %q is neither anthropic nor openai", r.Models.Provider)
	}
	home := strings.TrimSuffix(r.Home.Path(), "/")
	all := []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home + "/.local/share",
		"XDG_CACHE_HOME=" + home + "/.cache", "XDG_STATE_HOME=" + home + "/.local/state",
		"GOOSE_PROVIDER=" + p.name, "GOOSE_MODE=auto", "GOOSE_DISABLE_KEYRING=1",
		"GOOSE_TELEMETRY_ENABLED=false", "GOOSE_TELEMETRY_OFF=1",
		"GOOSE_DISABLE_SESSION_NAMING=true", // It takes a call that no event reports.
		"CONTEXT_FILE_NAMES=[]",             // The tree is not trusted: read no hints from its files.
	}
	if r.Model != "" {
		all = append(all, "GOOSE_MODEL="+r.Model)
	}
	if r.Models.URL != "" {
		all = append(all, p.host+"="+r.Models.URL, p.key+"="+r.Models.Key)
	}
	return all, nil
}
