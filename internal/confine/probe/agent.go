package probe

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Agent is one of the command-line agents that pawl drives, whether it is
// installed or not.
type Agent struct {
	Name    string // claude codex gemini opencode qwen goose
	Path    string // empty: it is not installed
	Version string
	Tried   string // the version that pawl was tried with
	Login   Login
	How     string // the variable or file of the login, or why Login is not LoginYes
	SignIn  string // what a person does to log in
	Problem string // what a person should know about the program, separated by semicolons
	Fix     string // for each part of Problem

	withKey string
}

// Advice returns Problem and Fix, with a missing login added if the program is
// installed.
func (a Agent) Advice() (problem, fix string) {
	if a.Login == LoginNo && a.Path != "" {
		a.addProblem("no login: "+a.How, a.SignIn+", or set "+a.withKey)
	}
	return a.Problem, a.Fix
}

// Login says whether an agent has credentials. Whether its vendor would accept them
// is not known without a network.
type Login string

// The values of Login.
const (
	LoginYes     Login = "yes"
	LoginNo      Login = "no"
	LoginUnknown Login = "unknown"
)

// agentKind is what pawl knows about one agent.
type agentKind struct {
	name    string
	module  string // at npm
	tried   string // the version that pawl was tried with
	keys    []string
	files   []credential
	traces  []string // files that exist once it was set up, perhaps with a keychain
	darwin  bool     // it uses a keychain on macOS only
	signIn  string
	withKey string // the variable to name in advice
}

// kinds, in the order in which agents are offered.
var agentKinds = []agentKind{
	{
		name: "claude", module: "@anthropic-ai/claude-code", tried: "2.1.329",
		keys:   []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"},
		files:  []credential{{env: "CLAUDE_CONFIG_DIR", home: ".claude", name: ".credentials.json", judge: claudeLogin}},
		traces: []string{".claude.json"}, darwin: true, signIn: "run claude and type /login", withKey: "ANTHROPIC_API_KEY",
	},
	{
		name: "codex", module: "@openai/codex", tried: "0.169.0",
		keys:   []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		files:  []credential{{env: "CODEX_HOME", home: ".codex", name: "auth.json", judge: codexLogin}},
		traces: []string{".codex/config.toml"}, signIn: "codex login", withKey: "OPENAI_API_KEY",
	},
	{
		name: "gemini", module: "@google/gemini-cli", tried: "0.61.0",
		keys:   []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"},
		files:  []credential{{home: ".gemini", name: "oauth_creds.json", judge: googleLogin}, {home: ".gemini", name: ".env", judge: keyFile}},
		traces: []string{".gemini/google_accounts.json", ".gemini/settings.json"}, signIn: "run gemini and choose a login", withKey: "GEMINI_API_KEY",
	},
	{
		name: "opencode", module: "opencode-ai", tried: "1.18.33",
		keys:   []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
		files:  []credential{{env: "XDG_DATA_HOME", home: ".local/share", name: "opencode/auth.json", judge: anyProvider}},
		traces: []string{".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"}, signIn: "opencode auth login", withKey: "ANTHROPIC_API_KEY",
	},
	{
		name: "qwen", module: "@qwen-code/qwen-code", tried: "0.24.4",
		keys:   []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"},
		files:  []credential{{home: ".qwen", name: "oauth_creds.json", judge: googleLogin}, {home: ".qwen", name: ".env", judge: keyFile}},
		traces: []string{".qwen/settings.json"}, signIn: "run qwen and type /auth", withKey: "OPENAI_API_KEY",
	},
	{
		name: "goose", module: "@aaif/goose", tried: "1.34.0",
		keys:   []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"},
		files:  []credential{{env: "XDG_CONFIG_HOME", home: ".config", name: "goose/secrets.yaml", judge: notEmpty}},
		traces: []string{".config/goose/config.yaml"}, signIn: "goose configure", withKey: "OPENAI_API_KEY",
	},
}

// FindAgents looks for the agents with these names, or for all agents if names is
// empty, at the same time. It returns one entry for each in a fixed order, and
// ignores unknown names. It blocks for at most half a minute.
func (p Prober) FindAgents(ctx context.Context, names ...string) []Agent {
	wanted := slices.DeleteFunc(slices.Clone(agentKinds), func(k agentKind) bool { return len(names) > 0 && !slices.Contains(names, k.name) })
	all := make([]Agent, len(wanted))
	var wait sync.WaitGroup
	for i, k := range wanted {
		wait.Go(func() { all[i] = p.lookAtAgent(ctx, k) })
	}
	wait.Wait()
	return all
}

func (p Prober) lookAtAgent(ctx context.Context, k agentKind) Agent {
	a := Agent{Name: k.name, Path: p.FindInPath(k.name), Tried: k.tried, SignIn: k.signIn, withKey: k.withKey}
	a.Login, a.How = p.findLogin(k)
	if a.Path == "" {
		a.addProblem(k.name+" is not in PATH", k.installCommand())
		return a
	}
	prog := Program{Word: k.name, Path: a.Path}
	p.fillVersion(ctx, &prog, question{
		dir: p.neutralDir(), argv: []string{a.Path, "--version"}, limit: askAgents, shim: p.shimOf(a.Path),
	})
	a.Version = prog.Version
	if prog.Problem != "" {
		a.addProblem(prog.Problem, prog.Fix)
	}
	if isOlder(a.Version, k.tried) {
		a.addProblem("version "+a.Version+" is older than "+k.tried+", with which pawl was tried; npm under Node 20 installs an old one without a word",
			k.installCommand()+" under Node 24")
	}
	return a
}

func (k agentKind) installCommand() string { return "npm install -g " + k.module + "@latest" }

// addProblem adds one thing that a person should know.
func (a *Agent) addProblem(problem, fix string) {
	a.Problem = strings.TrimPrefix(a.Problem+"; "+problem, "; ")
	a.Fix = strings.TrimPrefix(a.Fix+"; "+fix, "; ")
}

// pathBelow joins name to the directory in the variable env, or to the directory
// home below the user's. It returns an empty string if the user has no home.
func (p Prober) pathBelow(env, home, name string) string {
	if env != "" {
		if dir := proc.LookupVariable(p.Environ, env); filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(name))
		}
	}
	if p.Home == "" {
		return ""
	}
	return filepath.Join(p.Home, filepath.FromSlash(cmp.Or(home, ".")), filepath.FromSlash(name))
}
