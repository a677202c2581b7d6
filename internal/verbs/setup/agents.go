package setup

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/credential"
	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

// DriverView is the state of one driver on this machine.
type DriverView struct {
	Name      string      `json:"name"`
	State     string      `json:"state"`             // ok, warn, bad: it cannot take a turn
	Path      string      `json:"path,omitempty"`    // of the program; empty: it is not installed, or there is none
	Version   string      `json:"version,omitempty"` // of the program
	Tried     string      `json:"tried,omitempty"`   // the version that pawl was tried with
	Login     probe.Login `json:"login"`
	LoginFrom string      `json:"login_from,omitempty"`
	Auth      loop.Auth   `json:"auth,omitempty"`    // what a run would use; empty: neither key nor login
	Account   string      `json:"account,omitempty"` // the same for every run with this key or login
	AuthFrom  string      `json:"auth_from,omitempty"`
	BaseURL   string      `json:"base_url,omitempty"`      // address of its model, if it is not the vendor's own
	BaseFrom  string      `json:"base_url_from,omitempty"` // the environment variable that sets it
	Promise   string      `json:"promise"`                 // what pawl can promise with Auth
	Metered   bool        `json:"metered"`                 // requests go through pawl, which counts every token
	Resume    bool        `json:"resume"`                  // it can continue a conversation
	Providers []string    `json:"providers,omitempty"`     // whose models it can reach with a key
	Install   string      `json:"install,omitempty"`
	Problem   string      `json:"problem,omitempty"`
	Fix       string      `json:"fix,omitempty"`

	Actions []loop.Command `json:"actions,omitempty"` // those of Fix, as data
}

// Drivers reports of every driver whether it can take a turn on this machine. It starts
// programs only to ask for their versions.
func (d Doctor) Drivers(ctx context.Context) []DriverView {
	found := d.Probe.FindAgents(ctx)
	views := []DriverView{}
	for _, p := range d.Profiles {
		views = append(views, d.viewDriver(p, found, loop.Agent{Driver: p.Name}))
	}
	return views
}

// viewDriver describes a driver as one entry of the roster uses it.
func (d Doctor) viewDriver(p agent.Profile, found []probe.Agent, who loop.Agent) DriverView {
	v := DriverView{
		Name: p.Name, State: readiness.StateOK, Providers: p.Providers, Resume: len(p.Sessions) > 0, Install: p.Install,
		Login: probe.LoginNo,
	}
	signIn := ""
	if i := slices.IndexFunc(found, func(a probe.Agent) bool { return a.Name == p.Name }); i >= 0 {
		v.Tried, v.Login, v.LoginFrom, signIn = found[i].Tried, found[i].Login, found[i].How, found[i].SignIn
		if who.Command == "" {
			v.setProgram(found[i])
		}
	}
	c, err := credential.Find(credential.Want{
		Profile: p, Provider: who.Provider, BaseURL: who.BaseURL, Auth: who.Auth,
		Environ: d.Probe.Environ, Home: d.Probe.Home, SignIn: signIn, Now: d.Probe.Now,
	})
	if err != nil {
		f := faultIn(err)
		v.Promise = "none: a run with it is refused"
		v.addNote(readiness.StateBad, f.Why, f.Fix, f.Actions...)
		return v
	}
	v.Auth, v.Account, v.AuthFrom = c.Auth, c.Account, c.From
	v.Promise, v.Metered = credential.DescribeAuth(c.Auth), c.Auth == loop.AuthInject
	if c.Base != nil && (c.BaseFrom != "" || who.BaseURL != "") {
		v.BaseURL, v.BaseFrom = c.Base.String(), c.BaseFrom
	}
	if v.LoginFrom == "" && c.From != "" {
		v.Login, v.LoginFrom = probe.LoginYes, c.From
	}
	return v
}

// setProgram sets what was found of the driver's own program.
func (v *DriverView) setProgram(a probe.Agent) {
	v.Path, v.Version = a.Path, a.Version
	state := readiness.StateWarn
	if a.Path == "" {
		state = readiness.StateBad
	}
	v.addNote(state, a.Problem, a.Fix)
}

// addNote adds a problem with its fix, unless problem is empty.
func (v *DriverView) addNote(state, problem, fix string, actions ...loop.Command) {
	if problem == "" {
		return
	}
	if v.State != readiness.StateBad {
		v.State = state
	}
	v.Problem = strings.TrimPrefix(v.Problem+"; "+problem, "; ")
	v.Fix = strings.TrimPrefix(v.Fix+"; "+loop.Advise(fix, actions...).String(), "; ")
	v.Actions = append(v.Actions, actions...)
}

// Summary returns the view as one line.
func (v DriverView) Summary() string {
	parts := []string{strings.TrimSpace(v.Version + atPath(v.Path))}
	if v.Login != probe.LoginNo {
		parts = append(parts, "login: "+string(v.Login)+" ("+v.LoginFrom+")")
	}
	from := ""
	if v.AuthFrom != "" && v.AuthFrom != v.LoginFrom {
		from = " from " + v.AuthFrom
	}
	switch {
	case v.Auth == loop.AuthInject:
		parts = append(parts, "auth: inject"+from, v.modelAddress(), "metered")
	case v.Auth == loop.AuthLend:
		parts = append(parts, "auth: lend"+from, "usage as reported", "model_tools not enforced")
	case v.State == readiness.StateOK:
		parts = append(parts, "runs agent_command")
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// modelAddress says where the model is, if that is not the vendor's own address.
func (v DriverView) modelAddress() string {
	switch {
	case v.BaseURL == "":
		return ""
	case v.BaseFrom == "":
		return "model at " + v.BaseURL
	}
	return "model at " + v.BaseURL + " (" + v.BaseFrom + ")"
}

func atPath(path string) string {
	if path == "" {
		return ""
	}
	return " at " + path
}

// checkActor adds the rows of the agent of a loop, named by its driver.
func (d Doctor) checkActor(ctx context.Context, def loop.Definition, add adder) {
	who, err := d.loopActor(ctx, def)
	if err != nil {
		f := faultIn(err)
		add(readiness.StateBad, def.Agent, f.Why, f.Fix, f.Actions...)
		return
	}
	if who.Command != "" {
		if word, skip := readiness.GateProgram(who.Command); !skip && word != "" {
			d.checkProgram(ctx, "command", "agent_command", word, add)
		}
	}
	switch {
	case who.Driver != "command" || who.Command != "" && who.Provider != "":
		v := d.viewDriver(d.driverProfile(who.Driver), d.Probe.FindAgents(ctx, who.Driver), who)
		add(v.State, v.Name, strings.Trim(v.Summary()+"; "+v.Problem, "; "), v.Fix)
	case who.Command == "":
		state := readiness.StateWarn // Without a repository nothing runs anyway.
		if d.Service != nil {
			state = readiness.StateBad
		}
		add(state, "agent", "the definition names no program that acts", `write agent: NAME ({1} lists them), or agent_command: "PROGRAM …"; or run it with --agent or --agent-command`, loop.PawlCommand("agent drivers"))
	}
}

// loopActor returns the agent of a loop: the entry of the roster with the keys of the
// definition in place of its own. If there is no such entry, the error is a
// *loop.Fault.
func (d Doctor) loopActor(ctx context.Context, def loop.Definition) (loop.Agent, error) {
	who := loop.Agent{Driver: cmp.Or(def.Agent, "command")}
	if d.driverProfile(who.Driver).Name == "" {
		var err error
		if who, err = d.rosterEntry(ctx, def.Agent); err != nil {
			return who, err
		}
	}
	who.Command, who.Model = cmp.Or(def.AgentCommand, who.Command), cmp.Or(def.Model, who.Model)
	who.Provider, who.BaseURL, who.Auth = cmp.Or(def.Provider, who.Provider), cmp.Or(def.BaseURL, who.BaseURL), cmp.Or(def.Auth, who.Auth)
	return who, nil
}

// driverProfile returns the profile of a driver; zero if there is no such driver.
func (d Doctor) driverProfile(name string) agent.Profile {
	if i := slices.IndexFunc(d.Profiles, func(p agent.Profile) bool { return p.Name == name }); i >= 0 {
		return d.Profiles[i]
	}
	return agent.Profile{}
}

// rosterEntry finds an entry of the roster.
func (d Doctor) rosterEntry(ctx context.Context, name string) (loop.Agent, error) {
	r := roster.Roster{Profiles: d.Profiles}
	if d.Service != nil {
		r.Store = d.Service.ws.Store
	}
	return r.Find(ctx, name)
}

// agentRow describes an agent that is installed.
func agentRow(a probe.Agent) (state, check, detail, fix string) {
	detail = strings.TrimSpace(a.Version + atPath(a.Path) + ", login: " + string(a.Login))
	if a.How != "" {
		detail += " (" + a.How + ")"
	}
	if problem, fix := a.Advice(); problem != "" {
		return readiness.StateWarn, a.Name, detail + "; " + problem, fix
	}
	return readiness.StateOK, a.Name, detail, ""
}
