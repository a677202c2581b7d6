package api

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// errOpened ends a verb once its workspace was opened.
var errOpened = errors.New("it was opened")

// unregistered opens a workspace that nobody has registered, and notes whether it was told to
// register it. A person gets no further.
func unregistered(by loop.Actor, registers *[]bool) verb.Call {
	return verb.Call{By: by, Say: func(verb.Progress) {}, Store: &Store{}, Open: func(_ context.Context, register bool) (verb.Workspace, error) {
		*registers = append(*registers, register)
		if by.IsPerson() {
			return nil, errOpened
		}
		return &Workspace{Place: verb.Place{Root: "/theirs", Lookup: &lookup.Workspace{Workspace: loop.Workspace{ID: "ws_theirs"}}}}, nil
	}}
}

// TestWhoIsNoPersonReachesRegisteredWorkspacesOnly asks for each verb of a workspace that
// nobody has registered.
func TestWhoIsNoPersonReachesRegisteredWorkspacesOnly(t *testing.T) {
	t.Parallel()
	for _, v := range Verbs() {
		if !v.InWorkspace {
			continue
		}
		for _, role := range []loop.Role{loop.RoleAgent, loop.RoleViewer, loop.RoleTrigger, "", loop.RoleHuman} {
			var registers []bool
			_, err := v.Do(t.Context(), unregistered(loop.Actor{Who: "x", Role: role}, &registers), v.Request())
			if role == loop.RoleHuman {
				if !errors.Is(err, errOpened) || len(registers) != 1 || registers[0] != v.Writes {
					t.Errorf("a person asks for %s: %v, registers %v, want %t", v.Name, err, registers, v.Writes)
				}
				continue
			}
			for _, register := range registers {
				if register {
					t.Errorf("%q registers a workspace with %s", role, v.Name)
				}
			}
			f := verb.Explain(err)
			refused := errors.Is(err, loop.ErrRole) || errors.Is(err, loop.ErrUnregistered) && len(f.Actions) == 1
			if !refused || f.Exit != loop.ExitRefused || f.Why == "" || f.Fix == "" {
				t.Errorf("%q asks for %s: %+v", role, v.Name, f)
			}
		}
	}
}

// TestAGrantIsOfOneWorkspace asks for the loop with the name of a granted one, of another
// workspace, which is registered.
func TestAGrantIsOfOneWorkspace(t *testing.T) {
	t.Parallel()
	by := loop.Actor{Who: "x", Role: loop.RoleAgent, Grant: &loop.Grant{Loops: []loop.GrantedLoop{{Workspace: "ws_own", Loop: "la"}}}}
	opened := func(context.Context, bool) (verb.Workspace, error) {
		return &Workspace{Place: verb.Place{Root: "/theirs", Lookup: &lookup.Workspace{Workspace: loop.Workspace{ID: "ws_theirs"}, Placed: true}}}, nil
	}
	for _, v := range Verbs() {
		if !v.InWorkspace {
			continue
		}
		_, err := v.Do(t.Context(), verb.Call{By: by, Say: func(verb.Progress) {}, Store: &Store{}, Open: opened}, v.Request())
		if !errors.Is(err, loop.ErrGrant) && !errors.Is(err, loop.ErrRole) {
			t.Errorf("%s of another workspace: %v", v.Name, err)
		}
	}
}

// TestARequestOverHTTPSaysWhichFolderItMeans: the folder in which the daemon was started is nobody's.
func TestARequestOverHTTPSaysWhichFolderItMeans(t *testing.T) {
	t.Parallel()
	s := &Server{
		Store: &Store{}, Carried: func(verb.Info) {}, Do: func(ctx context.Context, _ bool, work func(context.Context) error) error { return work(ctx) },
		Open: func(context.Context, string, bool) (*Workspace, error) { return nil, errOpened },
	}
	for dir, opens := range map[string]bool{"": false, ".": false, "r": false, "../r": false, "/r": true} {
		for _, role := range []loop.Role{loop.RoleHuman, loop.RoleAgent} {
			_, err := ListLoops.Call(t.Context(), s.Local(dir, loop.Actor{Who: "x", Role: role}, "", func(verb.Progress) {}), LoopQuery{})
			if errors.Is(err, errOpened) != opens || !opens && verb.Explain(err).Exit != loop.ExitUsage {
				t.Errorf("%s in %q: %v", role, dir, err)
			}
		}
	}
}
