package turn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/credential"
	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/meter/model"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/agents/toolsocket"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// placeholderKey is what a program in a sandbox gets in place of a key. It is not
// secret.
const placeholderKey = "pawl-injects-the-key"

// Need says what an environment is made for, and what it is made of.
type Need struct {
	Actor    Actor
	With     credential.Credential // what the actor identifies itself with
	Run      string                // ID
	Chain    string                // the audit chain of the run's loop
	Tier     sandbox.Tier
	Port     int    // of the endpoint, in tiers with a network of their own
	Dir      string // host directory for the home
	Kept     bool   // Dir outlives the run and holds conversations
	SeenHome string // the home's path for programs with their own root
	UID, GID int    // the user that programs run as; -1 means pawl's own user

	PawlHome string
	Holder   loop.Holder
	Reopen   func(run, chain string) (agent.Home, error) // finds the home of a run that died
	Loan     *credential.Loan                            // a login that an earlier turn of the run renewed; nil if none did
	Account  *spend.Account
	Tools    []loop.ModelTool                 // what the model's vendor may do by itself
	Upstream func(*url.URL) (*url.URL, error) // the proxy through which this machine reaches an address; nil means no proxy
	Say      func(string)                     // records a note for people
	Denied   func(meter.Denial)               // called for each call that is refused

	PawlTools ToolServer       // serves pawl's own tools to the program; nil: it has none
	ToolsPort int              // of PawlTools, in tiers with a network of their own
	Rejected  func(why string) // called for each connection to PawlTools that is closed without being served
}

// Env is the environment of an agent's program for one turn: its home, its
// credential and its way to the model. Close it when the last of its processes
// has ended.
type Env struct {
	Endpoint agent.Endpoint // where the program calls its model; the zero value if no key is injected
	Home     *Home          // nil if the program has no home of its own
	HomeDir  string         // on the host
	Ports    []sandbox.Port // that the sandbox forwards
	Binds    []sandbox.Bind // that the sandbox shows
	Command  string         // command line of the actor's program; empty means the driver's default
	Hosts    []string       // that the program must reach, in addition to the definition's
	Servers  []loop.Server  // MCP servers of pawl's own

	need    Need
	models  *model.Endpoint
	loan    *credential.Loan
	pending *credential.Loan   // the loan after Close, if the program has renewed the login
	renews  atomic.Bool        // a host that renews the login's tokens has answered
	unboxed []func()           // each stops a server outside of a sandbox, and may be called twice
	tools   *toolsocket.Socket // pawl's own tools; nil if the program has none
	before  totals             // what the account had counted when the turn began
}

// FindCredential finds what an actor identifies itself with. Environ is the
// environment of this process and home the user's home. The error is a
// *loop.Fault with the fix.
func (a Actor) FindCredential(environ []string, home string, now time.Time) (credential.Credential, error) {
	return credential.Find(credential.Want{
		Profile: a.Profile, Provider: a.Provider, BaseURL: a.BaseURL, Auth: a.Auth, Environ: environ, Home: home, Now: now,
	})
}

// OpenEnv makes an environment. A *loop.HeldError means that another run uses the
// login.
func OpenEnv(ctx context.Context, n Need) (*Env, error) {
	s := &Env{need: n}
	if err := s.openFor(ctx, n.With); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Env) openFor(ctx context.Context, cred credential.Credential) error {
	if err := s.addOwnProgram(); err != nil {
		return err
	}
	if err := s.openHome(); err != nil {
		return err
	}
	if err := s.openTools(ctx); err != nil {
		return err
	}
	switch cred.Auth {
	case loop.AuthInject:
		return s.injectKey(ctx, cred)
	case loop.AuthLend:
		return s.lendLogin(ctx, cred)
	}
	return nil
}

// seenOwnProgram is pawl's own binary as programs with their own root see it.
const seenOwnProgram = "/run/pawl/bin/pawl"

// addOwnProgram shows pawl's own binary to the sandbox if it is the driver's
// program.
func (s *Env) addOwnProgram() (err error) {
	s.Command = s.need.Actor.Command
	if s.Command != "" || !s.need.Actor.Profile.Own {
		return nil
	}
	s.Command, err = s.showOwnProgram()
	return err
}

// showOwnProgram shows pawl's own binary to the sandbox, and returns its path as a word for
// the shell.
func (s *Env) showOwnProgram() (word string, err error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find pawl's own program: %w", err)
	}
	bind := sandbox.Bind{From: own, To: seenOwnProgram}
	if !slices.Contains(s.Binds, bind) {
		s.Binds = append(s.Binds, bind)
	}
	return shellWord(bind.At(s.need.Tier)), nil
}

func (s *Env) openHome() (err error) {
	if !s.need.Actor.Profile.Home {
		return nil
	}
	s.HomeDir = filepath.Join(s.need.Dir, "home")
	seen := s.HomeDir
	if s.need.Tier.HasOwnRoot() {
		seen = s.need.SeenHome
	}
	if s.Home, err = OpenHome(s.HomeDir, seen, s.need.UID, s.need.GID); err != nil {
		return fmt.Errorf("make the agent's home: %w", err)
	}
	if s.need.Kept {
		return s.Home.KeepFolders(s.need.Actor.Profile.Sessions)
	}
	return nil
}

// injectKey opens the endpoint that adds the key to requests.
func (s *Env) injectKey(ctx context.Context, cred credential.Credential) error {
	s.models = &model.Endpoint{
		Base: cred.Base, Provider: cred.Provider, Key: cred.Key(), Bearer: cred.Scheme == credential.Bearer, Upstream: s.need.Upstream, Account: s.need.Account, Denied: s.need.Denied,
		Tools: s.need.Tools,
	}
	s.before = accountTotals(s.need.Account)
	serve := func(ctx context.Context, l net.Listener) {
		if err := s.models.Serve(ctx, l); err != nil {
			s.need.Say("model: the endpoint ended: " + err.Error())
		}
	}
	addr, err := s.openPort(ctx, s.need.Port, serve)
	if err != nil {
		return fmt.Errorf("open the endpoint of the model: %w", err)
	}
	s.Endpoint = agent.Endpoint{URL: "http://" + addr, Key: placeholderKey, Provider: cred.Provider}
	return nil
}

// openPort serves the program at a port of its loopback, which has the number in tiers
// with a network of their own, and returns its address.
func (s *Env) openPort(ctx context.Context, number int, serve func(context.Context, net.Listener)) (addr string, err error) {
	port := sandbox.Port{Number: number, Serve: serve, Env: func(string) []string { return nil }}
	if s.need.Tier == sandbox.Full {
		s.Ports = append(s.Ports, port)
		return fmt.Sprintf("127.0.0.1:%d", number), nil
	}
	if port.Listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0"); err != nil {
		return "", err
	}
	if s.need.Tier == sandbox.None || s.need.Tier == sandbox.External {
		s.serveWithoutBox(ctx, port.Listener, serve)
	} else {
		s.Ports = append(s.Ports, port)
	}
	return port.Listener.Addr().String(), nil
}

// serveWithoutBox serves a port in tiers where no sandbox does.
func (s *Env) serveWithoutBox(ctx context.Context, l net.Listener, serve func(context.Context, net.Listener)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	serving.Go(func() { serve(ctx, l) })
	s.unboxed = append(s.unboxed, func() {
		cancel()
		_ = l.Close() // It may be closed already.
		serving.Wait()
	})
}

// stopUnboxed ends what is served outside of a sandbox. It may be called twice.
func (s *Env) stopUnboxed() {
	for _, stop := range s.unboxed {
		stop()
	}
}

// lendLogin puts the program's own login into its home.
func (s *Env) lendLogin(ctx context.Context, cred credential.Credential) (err error) {
	s.Hosts = s.need.Actor.Profile.Login.Hosts
	if cred.File == "" {
		return nil // A token is passed in the environment.
	}
	if s.loan = s.need.Loan; s.loan != nil {
		return s.loan.LendAgain(ctx, s.Home)
	}
	lender := Lender(s.need.PawlHome)
	lender.Holder, lender.Run, lender.Chain, lender.Reopen = s.need.Holder, s.need.Run, s.need.Chain, s.need.Reopen
	if s.loan, err = lender.Lend(ctx, cred, s.Home); err != nil {
		return err
	}
	s.reportLogin(s.loan.Before)
	return nil
}

// NoteAnswer notes that a host has answered the agent's program.
func (s *Env) NoteAnswer(host string) {
	if slices.Contains(s.need.Actor.Profile.Login.Renews, host) {
		s.renews.Store(true)
	}
}

// Loan returns the login of a closed environment if its program renewed it; else
// nil. The run's next turn uses it, and the end of the run settles it.
func (s *Env) Loan() *credential.Loan { return s.pending }

// Secrets returns what must not be written anywhere: the key, or what the login
// contains and what the program has made of it so far. Call it again after the
// program has run.
func (s *Env) Secrets() []redact.Secret {
	secrets := s.need.With.Secrets()
	if s.loan != nil {
		secrets = s.loan.Secrets()
	}
	return append(secrets[:len(secrets):len(secrets)], s.toolSecrets()...)
}

// reportLogin says what happened to a login that a program had.
func (s *Env) reportLogin(r credential.Returned) {
	if text := LoginText(r); text != "" {
		s.need.Say(text)
	}
}

// Lender returns the lender of this machine's logins. Only its Dir is set.
func Lender(pawlHome string) credential.Lender {
	return credential.Lender{Dir: filepath.Join(pawlHome, "logins")}
}

// LoginText says what happened to a login. It is empty if nobody needs to know.
func LoginText(r credential.Returned) string {
	if r.Why == "" {
		return ""
	}
	text := "login: " + r.From
	switch r.Back {
	case credential.Renewed:
		text += " holds the login that " + r.Agent + " renewed: " + r.Why
	case credential.Kept, credential.Refused, credential.Unchanged, credential.Pending:
		text += " stays as it was: " + r.Why
	}
	switch {
	case r.Aside == "":
	case r.Back == credential.Renewed:
		text += "; the one before is kept as " + r.Aside + " and can be swapped back"
	default:
		text += "; the other login is kept as " + r.Aside + " (swap it in if the vendor no longer takes the old one)"
	}
	return text
}

// AgentHome returns the home as drivers use it; nil if missing.
func (s *Env) AgentHome() agent.Home {
	if s.Home == nil {
		return nil
	}
	return s.Home
}

// Environ adds to an environment the variables that lead a program to its home
// and its model. A program without a driver of its own gets the usual variables
// of its provider.
func (s *Env) Environ(env []string) []string {
	if s.Home != nil {
		env = proc.WithVariables(env, "HOME="+s.Home.Path())
	}
	if with := s.need.With; with.Auth == loop.AuthLend && with.Key() != "" {
		env = proc.WithVariables(env, with.From+"="+with.Key())
	}
	if s.Endpoint.URL == "" || len(s.need.Actor.Profile.Providers) > 0 {
		return env
	}
	return proc.WithVariables(env, providerVariables(s.Endpoint)...)
}

// providerVariables returns the variables in which a provider's libraries look
// for its address and key.
func providerVariables(e agent.Endpoint) []string {
	switch e.Provider {
	case modelapi.Anthropic:
		return []string{"ANTHROPIC_BASE_URL=" + e.URL, "ANTHROPIC_API_KEY=" + e.Key}
	case modelapi.Gemini:
		return []string{"GOOGLE_GEMINI_BASE_URL=" + e.URL, "GEMINI_API_KEY=" + e.Key}
	}
	return []string{"OPENAI_BASE_URL=" + e.URL + "/v1", "OPENAI_API_BASE=" + e.URL + "/v1", "OPENAI_API_KEY=" + e.Key}
}

// Close ends what was opened for the turn, and takes the login out of the home.
// The home itself stays until its owner removes the directory.
func (s *Env) Close() error {
	s.stopUnboxed()
	err := s.closeTools()
	if s.loan != nil {
		back, endErr := s.loan.EndTurn(s.renews.Load())
		err = errors.Join(err, endErr)
		s.reportLogin(back)
		if s.loan.HasRenewed() {
			s.pending = s.loan
		}
		if endErr == nil && s.need.Kept {
			err = s.Home.Remove(s.need.With.Name) // Only conversations stay.
		}
	}
	if s.Home != nil {
		err = errors.Join(err, s.Home.Close())
	}
	return err
}
