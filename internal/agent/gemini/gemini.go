// Package gemini drives Gemini CLI, without a person at its keyboard and with
// its events as lines of JSON. The prompt goes in on standard input.
//
// The program asks nothing while it works: it may read, edit and run commands,
// and whatever else it has is denied by a policy that is written into its home.
// What it may reach is for the sandbox to enforce, what it changed for the
// change list to show. Settings, hooks, agents, skills, memory files and
// variables that lie in the tree are not loaded, because the tree counts as
// untrusted; by itself it refuses to edit build files such as Makefile.
//
// It prints its usage only at the end, so that of a turn that was cut short is an
// estimate.
package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/agent"
)

// Name is the driver's entry in the roster.
const Name = "gemini"

// project is what the program calls the tree, wherever it lies: conversations
// are kept by project, and by itself it would not find them in another folder.
const project = "pawl"

// Driver runs Gemini CLI. The zero value is ready.
type Driver struct{}

// Profile says what the program needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Program: "gemini", Runtime: []string{"node"}, Home: true, Providers: []string{"gemini"},
		Asks: map[string]string{"gemini": "gemini-3.1-pro-preview"},
		Login: agent.Login{
			Files:  []string{".gemini/oauth_creds.json"},
			Hosts:  []string{"cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "www.googleapis.com"},
			Renews: []string{"oauth2.googleapis.com"},
		},
		Sessions: []string{".gemini/tmp/" + project + "/chats"},
		Install:  "npm install -g @google/gemini-cli",
	}
}

// Turn runs the program once. It blocks until the program and everything that
// it started are gone. The error is nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	if err := furnish(r); err != nil {
		return agent.Result{}, err
	}
	r.OnEvent = inOrder(r.OnEvent)
	beside := &words{to: r.Output, on: r.OnEvent}
	r.Output = beside
	return agent.RunStream(ctx, r, agent.Program{
		Argv: agent.CommandLine(r, "gemini", arguments(r)...), Env: environment(r), Stdin: strings.NewReader(agent.EscapeAt(r.Prompt)),
	}, &decoder{beside: beside, keep: r.Keep, turns: turnsBefore(r)})
}

// inOrder lets both of the program's outputs tell events, one at a time, until
// the turn is over.
func inOrder(on func(agent.Event)) func(agent.Event) {
	var mu sync.Mutex
	over := false
	return func(e agent.Event) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		over = e.Kind == agent.EventEnd
		on(e)
	}
}

// furnish writes what the program reads in its home.
func furnish(r agent.Request) error {
	text, err := settings(r)
	if err != nil {
		return fmt.Errorf("write the settings of gemini: %w", err)
	}
	known, err := json.Marshal(object{"projects": object{r.Dir: project}})
	if err != nil {
		return fmt.Errorf("write the projects of gemini: %w", err)
	}
	for _, f := range []struct {
		name string
		text []byte
	}{
		{".gemini/settings.json", text},
		{".gemini/policies/pawl.toml", []byte(rulesOf(r))},
		{".gemini/projects.json", known},
		{".gemini/tmp/" + project + "/.project_root", []byte(r.Dir)},
		{".gemini/history/" + project + "/.project_root", []byte(r.Dir)},
	} {
		if err := r.Home.Write(f.name, f.text); err != nil {
			return fmt.Errorf("write %s into the home of gemini: %w", f.name, err)
		}
	}
	return nil
}

func arguments(r agent.Request) []string {
	args := []string{"--output-format", "stream-json"}
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.Session != nil {
		args = append(args, "--resume", r.Session.ID)
	}
	return args
}

func environment(r agent.Request) []string {
	env := []string{
		"HOME=" + r.Home.Path(),
		"GEMINI_CLI_HOME=" + r.Home.Path(),
		"GEMINI_CLI_TRUST_WORKSPACE=false",
		"GEMINI_CLI_NO_RELAUNCH=true", // One process: the second would get no signal, and only take time to start.
		"GEMINI_SANDBOX=false",
		"NO_BROWSER=true",
		"NO_COLOR=1",
	}
	if r.Models.URL != "" {
		env = append(env, "GOOGLE_GEMINI_BASE_URL="+r.Models.URL, "GEMINI_API_KEY="+r.Models.Key)
	}
	return env
}

func turnsBefore(r agent.Request) int {
	if r.Session == nil {
		return 0
	}
	return r.Session.Turns
}
