// Package gemini drives Gemini CLI without a person at its keyboard, with its
// events as lines of JSON. It gets the prompt on standard input.
//
// The program asks nothing while it works: it may read, edit and run commands,
// and a policy file in its home denies everything else. The sandbox limits what
// it can reach, and the change list shows what it changed. Settings, hooks,
// agents, skills, memory files and variables in the tree are not loaded, because
// the tree is untrusted; the program itself refuses to edit build files such as
// Makefile.
//
// It prints its usage only at the end, so that the usage of a turn that was cut
// is an estimate.
package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/agents/agent"
)

// Name is the driver's entry in the roster.
const Name = "gemini"

// projectName is the program's name for the tree, whatever its path: the program
// keeps conversations by project and would not find them after the tree has
// moved.
const projectName = "pawl"

// Driver runs Gemini CLI. The zero value is ready to use.
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
		Sessions: []string{".gemini/tmp/" + projectName + "/chats"},
		Install:  "npm install -g @google/gemini-cli",
	}
}

// Turn runs the program once. It blocks until the program and everything that it
// started have ended. The error is nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	if err := writeSettings(r); err != nil {
		return agent.Result{}, err
	}
	d := &decoder{keep: r.Keep}
	if r.Session != nil {
		d.turns = r.Session.Turns
	}
	r.OnEvent = serializeEvents(r.OnEvent)
	d.stderr = &stderrReader{to: r.Output, on: r.OnEvent}
	r.Output = d.stderr
	return agent.RunStream(ctx, r, agent.Program{
		Argv: agent.CommandLine(r, "gemini", runArguments(r)...), Env: runEnvironment(r), Stdin: strings.NewReader(agent.EscapeAt(r.Prompt)),
	}, d)
}

// serializeEvents lets both of the program's outputs report events, one at a
// time, until the turn is over.
func serializeEvents(on func(agent.Event)) func(agent.Event) {
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

// writeSettings writes the files that the program reads in its home.
func writeSettings(r agent.Request) error {
	text, err := settingsJSON(r)
	if err != nil {
		return fmt.Errorf("write the settings of gemini: %w", err)
	}
	known, err := json.Marshal(object{"projects": object{r.Dir: projectName}})
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
		{".gemini/tmp/" + projectName + "/.project_root", []byte(r.Dir)},
		{".gemini/history/" + projectName + "/.project_root", []byte(r.Dir)},
	} {
		if err := r.Home.Write(f.name, f.text); err != nil {
			return fmt.Errorf("write %s into the home of gemini: %w", f.name, err)
		}
	}
	return nil
}

func runArguments(r agent.Request) []string {
	args := []string{"--output-format", "stream-json"}
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.Session != nil {
		args = append(args, "--resume", r.Session.ID)
	}
	return args
}

func runEnvironment(r agent.Request) []string {
	env := []string{
		"HOME=" + r.Home.Path(),
		"GEMINI_CLI_HOME=" + r.Home.Path(),
		"GEMINI_CLI_TRUST_WORKSPACE=false",
		"GEMINI_CLI_NO_RELAUNCH=true", // A second process would get no signals and delay the start.
		"GEMINI_SANDBOX=false",
		"NO_BROWSER=true",
		"NO_COLOR=1",
	}
	if r.Models.URL != "" {
		env = append(env, "GOOGLE_GEMINI_BASE_URL="+r.Models.URL, "GEMINI_API_KEY="+r.Models.Key)
	}
	return env
}
