package verb

import (
	"fmt"
	"reflect"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// RefusesAgents says why an agent may never ask for the verb, whatever it asks. Empty: it may.
func (i Info) RefusesAgents() string {
	if i.Writes && i.AgentRefusal == nil {
		return "only a person may " + i.Does
	}
	return i.Hidden
}

// RefusesViewers says why a viewer may not ask for the verb. Empty: it may.
func (i Info) RefusesViewers() string {
	if i.Writes {
		return "a viewer only reads"
	}
	return i.Hidden
}

// PersonsCommand is the command with which a person does what the verb does; the zero
// Command if no person has such a command.
func (i Info) PersonsCommand(in any) loop.Command {
	if i.Command == "" {
		return loop.Command{}
	}
	c := loop.PawlCommand(i.Command)
	if arg := firstText(reflect.ValueOf(in)); arg != "" {
		c.Args = []string{arg}
	}
	return c
}

// firstText is the first field of a request if it is a text.
func firstText(v reflect.Value) string {
	if v.Kind() == reflect.Struct && v.NumField() > 0 && v.Field(0).Kind() == reflect.String {
		return v.Field(0).String()
	}
	return ""
}

// checkRole refuses what the actor's role may not ask for.
func (i Info) checkRole(by loop.Actor, in any) error {
	why := ""
	if by.Role == loop.RoleViewer {
		why = i.RefusesViewers()
	}
	if by.Role == loop.RoleAgent {
		if why = i.RefusesAgents(); why == "" && i.Writes {
			why = i.AgentRefusal(in)
		}
	}
	if why == "" {
		return nil
	}
	return roleFault(i, by, why, in)
}

// roleFault refuses a verb to an agent or a viewer. The fix is the command with which a person
// does it.
func roleFault(i Info, by loop.Actor, why string, in any) error {
	f := &loop.Fault{Exit: loop.ExitRefused, What: fmt.Sprintf("%s may not %s", by.Who, i.Does), Why: why, Err: loop.ErrRole, Fix: "let a person do it, outside of a run"}
	if c := i.PersonsCommand(in); c.Verb != "" {
		return f.WithAdvice(loop.Advise("let a person do it, outside of a run: {1}", c))
	}
	return f
}
