// Package roster is who may act, and the logins that are kept for them.
//
// It needs no repository, and starts no program.
package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/credential"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Roster is who may act: the entries that people made, and one for each driver
// by itself. It belongs to no workspace.
type Roster struct {
	Store    *store.Store // nil if nothing has been stored yet
	Profiles []agent.Profile
	Now      func() time.Time
	NewID    func(prefix string) string
	Claim    store.Claim      // of the call that is carried out; zero: it has no key
	Accepted *accepted.Folder // what a person has accepted on this machine; nil: all
}

// Entry is one entry, schema pawl.agent/v1.
type Entry struct {
	Schema string `json:"schema"`
	loop.Agent

	Seats []loop.Seat `json:"seats,omitempty"` // of its live runs
}

func entryOf(a loop.Agent) Entry { return Entry{Schema: "pawl.agent/v1", Agent: a} }

// Change is what is set of an entry. A nil field is left as it is.
type Change struct {
	Driver         *string  `json:"driver,omitempty"`
	Command        *string  `json:"command,omitempty"`
	Model          *string  `json:"model,omitempty"`
	Provider       *string  `json:"provider,omitempty"`
	BaseURL        *string  `json:"base_url,omitempty"`
	Auth           *string  `json:"auth,omitempty"`
	Role           *string  `json:"role,omitempty"`
	Board          *string  `json:"board,omitempty"`
	MaxRuns        *int64   `json:"max_runs,omitempty"`         // 0: any number
	AccountMaxRuns *int64   `json:"account_max_runs,omitempty"` // 0: any number
	Skills         []string `json:"skills,omitzero"`            // nil: as they are; empty: none
}

// Create adds an entry and returns it with its id. A handle or a value that
// cannot be used is a *loop.Fault, and so is a handle that is taken.
func (r Roster) Create(ctx context.Context, handle string, c Change) (Entry, error) {
	handle, err := r.checkHandle(handle)
	if err != nil {
		return Entry{}, err
	}
	a := loop.Agent{ID: r.NewID("ag"), Handle: handle}
	c.apply(&a)
	if a.Driver == "" && a.Command != "" {
		a.Driver = "command"
	}
	if err := r.checkEntry(a); err != nil {
		return Entry{}, err
	}
	if item, asks := accepted.Agent(a); asks {
		if err := r.Accepted.Accept(item); err != nil {
			return Entry{}, err
		}
	}
	a.Created = r.Now().UTC()
	a.Updated = a.Created
	err = r.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.SaveAgent(ctx, a); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, r.Claim, entryOf(a))
	})
	return entryOf(a), err
}

// Set changes an entry. Loops see it with their next run. What a person sets is accepted on
// this machine, and what somebody else has written beside it is not.
func (r Roster) Set(ctx context.Context, handle string, c Change) (Entry, error) {
	name := strings.TrimPrefix(handle, "@")
	if r.isDriver(name) {
		return Entry{}, ownFault(name)
	}
	var a, before loop.Agent
	err := r.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.AgentToChange(ctx, name); err != nil {
			return err
		}
		before = a
		c.apply(&a)
		if err := r.checkEntry(a); err != nil {
			return err
		}
		a.Updated = r.Now().UTC()
		return tx.SaveAgent(ctx, a)
	})
	if lookup.Absent(err) {
		err = r.unknownFault(ctx, name)
	}
	if err == nil {
		err = r.acceptSet(before, a, c)
	}
	return entryOf(a), err
}

// acceptSet accepts an entry as a person has set it on this machine: what it was before had
// to be accepted here, unless all of it was said now.
func (r Roster) acceptSet(before, a loop.Agent, c Change) error {
	item, asks := accepted.Agent(a)
	if !asks {
		return nil
	}
	was, asked := accepted.Agent(before)
	known := !asked
	if asked {
		var err error
		if known, err = r.Accepted.Has(was); err != nil {
			return err
		}
	}
	said := (c.Command != nil || a.Command == "") && (c.BaseURL != nil || a.BaseURL == "") && (c.Auth != nil || a.Auth == "")
	if !known && !said {
		return nil // Whoever uses it is told.
	}
	return r.Accepted.Accept(item)
}

// Find returns an entry by its handle, with or without the @. One that is not
// there is a *loop.Fault.
func (r Roster) Find(ctx context.Context, handle string) (loop.Agent, error) {
	name := strings.TrimPrefix(handle, "@")
	if r.isDriver(name) {
		return loop.Agent{Handle: name, Driver: name}, nil
	}
	var a loop.Agent
	err := r.view(ctx, func(rd *store.Reader) (err error) {
		a, err = rd.Agent(ctx, name)
		return err
	})
	if lookup.Absent(err) {
		err = r.unknownFault(ctx, name)
	}
	return a, err
}

// Show is Find for surfaces, with the runs in which the agent acts now.
func (r Roster) Show(ctx context.Context, handle string) (Entry, error) {
	a, err := r.Find(ctx, handle)
	e := entryOf(a)
	if err != nil || r.Store == nil {
		return e, err
	}
	err = r.view(ctx, func(rd *store.Reader) error {
		seats, err := rd.Seats(ctx)
		e.Seats = slices.DeleteFunc(seats, func(s loop.Seat) bool { return s.Agent != a.Handle })
		return err
	})
	return e, err
}

// List returns the entries that people made by handle, and then those of the
// drivers.
func (r Roster) List(ctx context.Context) ([]loop.Agent, error) {
	all, err := r.listMade(ctx)
	for _, p := range r.Profiles {
		all = append(all, loop.Agent{Handle: p.Name, Driver: p.Name})
	}
	return all, err
}

func (r Roster) listMade(ctx context.Context) (all []loop.Agent, err error) {
	err = r.view(ctx, func(rd *store.Reader) (err error) {
		all, err = rd.Agents(ctx)
		return err
	})
	if lookup.Absent(err) {
		err = nil
	}
	return all, err
}

func (r Roster) view(ctx context.Context, fn func(*store.Reader) error) error {
	if r.Store == nil {
		return loop.ErrNotFound
	}
	return r.Store.View(ctx, fn)
}

func (c Change) apply(a *loop.Agent) {
	for _, f := range []struct {
		from *string
		into *string
	}{
		{c.Driver, &a.Driver},
		{c.Command, &a.Command},
		{c.Model, &a.Model},
		{c.Provider, &a.Provider},
		{c.BaseURL, &a.BaseURL},
		{c.Role, &a.Role},
		{c.Board, &a.Board},
	} {
		if f.from != nil {
			*f.into = strings.TrimSpace(*f.from)
		}
	}
	if c.Auth != nil {
		a.Auth = loop.Auth(strings.TrimSpace(*c.Auth))
	}
	if c.MaxRuns != nil {
		a.MaxRuns = *c.MaxRuns
	}
	if c.AccountMaxRuns != nil {
		a.AccountMaxRuns = *c.AccountMaxRuns
	}
	if c.Skills != nil {
		a.Skills = slices.Compact(slices.Sorted(slices.Values(c.Skills)))
	}
}

// handleForm is short enough for a table and safe in a branch, a file and a URL.
var handleForm = lazyregexp.New(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

const longestHandle = 32

// checkHandle judges a new handle.
func (r Roster) checkHandle(text string) (string, error) {
	name := strings.TrimPrefix(text, "@")
	what := fmt.Sprintf("agent %q", text)
	switch {
	case !handleForm.MatchString(name) || len(name) > longestHandle:
		return "", &loop.Fault{
			Exit: loop.ExitUsage, What: what,
			Why: fmt.Sprintf("a handle is @ and a name of a to z, 0 to 9 and single dashes, beginning with a letter, of at most %d characters", longestHandle),
			Fix: "write one like @frontend-dev",
		}
	case r.isDriver(name):
		return "", ownFault(name)
	}
	return name, nil
}

func ownFault(name string) error {
	return &loop.Fault{
		Exit: loop.ExitUsage, What: "agent @" + name, Why: "a driver has this name, and is an agent by itself",
		Fix: "choose another handle: {1}", Actions: []loop.Command{loop.PawlCommand("agent create", "@my-"+name).WithFlag("driver", name)},
	}
}

// checkEntry judges what an entry says.
func (r Roster) checkEntry(a loop.Agent) error {
	fault := func(why, fix string) error {
		return &loop.Fault{Exit: loop.ExitUsage, What: "agent @" + a.Handle, Why: why, Fix: fix}
	}
	i := slices.IndexFunc(r.Profiles, func(p agent.Profile) bool { return p.Name == a.Driver })
	switch {
	case a.Driver == "":
		return fault("it has no driver", "write --driver with one of "+r.driverNames()+", or --agent-command with a program")
	case i < 0:
		return fault(fmt.Sprintf("there is no driver %q", a.Driver), "write one of "+r.driverNames())
	case a.Command == "" && (a.Driver == "command" || a.Driver == "acp"):
		return fault("the driver "+a.Driver+" has no program of its own", "write --agent-command with the command line that starts it")
	}
	for _, f := range []struct {
		name string
		most int64
	}{{"max-runs", a.MaxRuns}, {"account-max-runs", a.AccountMaxRuns}} {
		if f.most < 0 {
			return fault(fmt.Sprintf("its %s is %d", f.name, f.most), "write how many runs may act at once, or 0 for any number")
		}
	}
	for _, f := range []struct{ name, text string }{
		{"model", a.Model}, {"provider", a.Provider}, {"role", a.Role}, {"board", a.Board}, {"agent-command", a.Command}, {"skill", strings.Join(a.Skills, ",")},
	} {
		if strings.ContainsAny(f.text, "\x00\r\n") {
			return fault("its "+f.name+" has several lines", "write it in one line")
		}
	}
	if err := credential.CheckPossible(r.Profiles[i], a.Provider, a.BaseURL, a.Auth); err != nil {
		f, ok := errors.AsType[*loop.Fault](err)
		if !ok {
			f = &loop.Fault{What: err.Error()}
		}
		why := strings.TrimPrefix(f.What, "there is no credential for ")
		if f.Why != "" {
			why += ": " + f.Why
		}
		return fault(why, f.Fix)
	}
	return nil
}

func (r Roster) isDriver(name string) bool {
	return slices.ContainsFunc(r.Profiles, func(p agent.Profile) bool { return p.Name == name })
}

func (r Roster) driverNames() string {
	var names []string
	for _, p := range r.Profiles {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// unknownFault says who there is.
func (r Roster) unknownFault(ctx context.Context, name string) error {
	all, err := r.List(ctx)
	if err != nil {
		return err
	}
	var handles []string
	for _, a := range all {
		handles = append(handles, a.Handle)
	}
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "agent @" + name, Why: "neither the roster nor a driver has this name",
		Fix: "write one of " + strings.Join(handles, ", ") + ", or make it: {1}", Err: loop.ErrNotFound,
		Actions: []loop.Command{loop.PawlCommand("agent create", "@"+cmp.Or(name, "NAME")).WithFlag("driver", "D").WithBlanks("@NAME", "D")},
	}
}
