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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/credential"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter"
	"github.com/pawl-run/pawl/internal/meter/model"
	"github.com/pawl-run/pawl/internal/modelapi"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/redact"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/spend"
)

// placeholder stands in a sandbox where a program wants a key. It is none.
const placeholder = "pawl-injects-the-key"

// Need says what an environment is made for.
type Need struct {
	Actor    Actor
	With     credential.Credential
	Run      string // id
	Chain    string // the audit chain of its loop
	Tier     sandbox.Tier
	Port     int    // of the endpoint, in tiers with a network of their own
	Dir      string // folder of the host for the home
	Kept     bool   // Dir outlives the run, and holds conversations
	SeenHome string // where programs with a root of their own have their home
	UID, GID int    // who programs run as; -1: as pawl

	PawlHome string
	Holder   loop.Holder
	Reopen   func(run string) (agent.Home, error) // finds the home of a run that died
	Loan     *credential.Loan                     // a login that an earlier turn of the run renewed; nil: there is none
	Account  *spend.Account
	Tools    []loop.ModelTool                 // what the model's vendor may do by itself
	Upstream func(*url.URL) (*url.URL, error) // by which proxy this machine reaches an address; nil: by none
	Say      func(string)
	Denied   func(meter.Denial)
}

// Env is what surrounds an agent's program for one turn. Close it when the last
// of its processes is gone.
type Env struct {
	Endpoint agent.Endpoint //
	Home     *Home          // nil: it has none of its own
	HomeDir  string         // of the host
	Ports    []sandbox.Port // ways out for the box
	Binds    []sandbox.Bind // to be shown in the box
	Command  string         // what the actor's program is started by; empty: the driver knows
	Hosts    []string       // that it has to reach beside those of the definition

	need    Need
	models  *model.Endpoint
	loan    *credential.Loan
	pending *credential.Loan // loan, once the environment is closed and the program has renewed it
	renews  atomic.Bool      // a host that renews the login's tokens has answered
	serve   func()           // ends an endpoint that no box serves, once
	before  counted
}

// Credential finds what an actor identifies itself with. Environ is that of this
// process, home the user's. The error is a *loop.Fault with the fix.
func (a Actor) Credential(environ []string, home string, now time.Time) (credential.Credential, error) {
	return credential.Find(credential.Want{
		Profile: a.Profile, Provider: a.Provider, BaseURL: a.BaseURL, Auth: a.Auth, Environ: environ, Home: home, Now: now,
	})
}

// Open makes an environment. A *loop.HeldError says that another run has the login.
func Open(ctx context.Context, n Need) (*Env, error) {
	s := &Env{need: n}
	if err := s.open(ctx, n.With); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Env) open(ctx context.Context, cred credential.Credential) error {
	if err := s.show(); err != nil {
		return err
	}
	if err := s.openHome(); err != nil {
		return err
	}
	switch cred.Auth {
	case loop.AuthInject:
		return s.inject(ctx, cred)
	case loop.AuthLend:
		return s.lend(ctx, cred)
	}
	return nil
}

// ownSeen is where programs with a root of their own see pawl's own binary.
const ownSeen = "/run/pawl/bin/pawl"

// show makes pawl's own binary visible to a driver whose program it is.
func (s *Env) show() error {
	s.Command = s.need.Actor.Command
	if s.Command != "" || !s.need.Actor.Profile.Own {
		return nil
	}
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find pawl's own program: %w", err)
	}
	bind := sandbox.Bind{From: own, To: ownSeen}
	s.Binds, s.Command = []sandbox.Bind{bind}, "'"+strings.ReplaceAll(bind.At(s.need.Tier), "'", `'\''`)+"'"
	return nil
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
		return s.Home.Keep(s.need.Actor.Profile.Sessions)
	}
	return nil
}

// inject opens the endpoint that puts the key into requests.
func (s *Env) inject(ctx context.Context, cred credential.Credential) error {
	s.models = &model.Endpoint{
		Base: cred.Base, Provider: cred.Provider, Key: cred.Key(), Bearer: cred.Scheme == credential.Bearer, Upstream: s.need.Upstream, Account: s.need.Account, Denied: s.need.Denied,
		Tools: s.need.Tools,
	}
	s.before = count(s.need.Account)
	serve := func(ctx context.Context, l net.Listener) {
		if err := s.models.Serve(ctx, l); err != nil {
			s.need.Say("model: the endpoint ended: " + err.Error())
		}
	}
	addr := fmt.Sprintf("127.0.0.1:%d", s.need.Port)
	port := sandbox.Port{Number: s.need.Port, Serve: serve, Env: func(string) []string { return nil }}
	if s.need.Tier != sandbox.Full {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("open the endpoint of the model: %w", err)
		}
		addr, port.Listener = l.Addr().String(), l
		if s.need.Tier == sandbox.None || s.need.Tier == sandbox.External {
			s.serveHere(ctx, l, serve)
		}
	}
	if s.serve == nil {
		s.Ports = []sandbox.Port{port}
	}
	s.Endpoint = agent.Endpoint{URL: "http://" + addr, Key: placeholder, Provider: cred.Provider}
	return nil
}

// serveHere serves the endpoint where no box does.
func (s *Env) serveHere(ctx context.Context, l net.Listener, serve func(context.Context, net.Listener)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	serving.Go(func() { serve(ctx, l) })
	s.serve = sync.OnceFunc(func() {
		cancel()
		_ = l.Close() // It may be closed already.
		serving.Wait()
	})
}

// lend puts the program's own login into its home.
func (s *Env) lend(ctx context.Context, cred credential.Credential) (err error) {
	s.Hosts = s.need.Actor.Profile.Login.Hosts
	if cred.File == "" {
		return nil // A token, which goes into the environment.
	}
	if s.loan = s.need.Loan; s.loan != nil {
		return s.loan.Again(ctx, s.Home)
	}
	lender := Lender(s.need.PawlHome)
	lender.Holder, lender.Run, lender.Chain, lender.Reopen = s.need.Holder, s.need.Run, s.need.Chain, s.need.Reopen
	if s.loan, err = lender.Lend(ctx, cred, s.Home); err != nil {
		return err
	}
	s.tell(s.loan.Before)
	return nil
}

// Answered takes note of a host that has answered the agent's program.
func (s *Env) Answered(host string) {
	if slices.Contains(s.need.Actor.Profile.Login.Renews, host) {
		s.renews.Store(true)
	}
}

// Loan is the login of an environment that was closed, if its program renewed it: the
// next turn of the run goes on with it, and the end of the run settles it.
func (s *Env) Loan() *credential.Loan { return s.pending }

// Secrets are what must not be written anywhere: a key, or what is in a login and
// in what its program made of that by now. Ask again when the program has run.
func (s *Env) Secrets() []redact.Secret {
	if s.loan == nil {
		return s.need.With.Secrets()
	}
	return s.loan.Secrets()
}

// tell says what became of a login that a program had.
func (s *Env) tell(r credential.Returned) {
	if text := LoginText(r); text != "" {
		s.need.Say(text)
	}
}

// Lender is who lends the logins of this machine. Its Dir alone is set.
func Lender(pawlHome string) credential.Lender {
	return credential.Lender{Dir: filepath.Join(pawlHome, "logins")}
}

// LoginText says what became of a login, and is empty where nobody has to know.
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

// AgentHome is the home as drivers know it.
func (s *Env) AgentHome() agent.Home {
	if s.Home == nil {
		return nil
	}
	return s.Home
}

// Environ adds to an environment what leads a program to its home and its model.
// A program that no driver speaks for finds the model in the usual variables.
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
	return proc.WithVariables(env, usual(s.Endpoint)...)
}

// usual are the variables by which libraries of a provider find it.
func usual(e agent.Endpoint) []string {
	switch e.Provider {
	case modelapi.Anthropic:
		return []string{"ANTHROPIC_BASE_URL=" + e.URL, "ANTHROPIC_API_KEY=" + e.Key}
	case modelapi.Gemini:
		return []string{"GOOGLE_GEMINI_BASE_URL=" + e.URL, "GEMINI_API_KEY=" + e.Key}
	}
	return []string{"OPENAI_BASE_URL=" + e.URL + "/v1", "OPENAI_API_BASE=" + e.URL + "/v1", "OPENAI_API_KEY=" + e.Key}
}

// Close ends what was opened for the turn, and takes a login out of it. The home
// stays, for whoever removes its folder.
func (s *Env) Close() error {
	if s.serve != nil {
		s.serve()
	}
	var err error
	if s.loan != nil {
		var back credential.Returned
		back, err = s.loan.EndTurn(s.renews.Load())
		s.tell(back)
		if s.loan.Renewed() {
			s.pending = s.loan
		}
		if err == nil && s.need.Kept {
			err = s.Home.Remove(s.need.With.Name) // Conversations stay, and nothing else.
		}
	}
	if s.Home != nil {
		err = errors.Join(err, s.Home.Close())
	}
	return err
}
