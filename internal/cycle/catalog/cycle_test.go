package catalog_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// registered returns what the rows say of the loops, by name.
func (r *rig) registered() map[string]loop.Registration {
	r.t.Helper()
	all := map[string]loop.Registration{}
	err := r.store.View(r.t.Context(), func(rd *store.Reader) error {
		list, err := rd.Loops(context.Background(), r.ws.ID)
		for _, l := range list {
			all[l.Name] = l.Registered
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

func TestLoopsThatFireEachOtherInACycleAreRefusedWithTheirNames(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return tx.AddWorkspace(t.Context(), r.ws) }); err != nil {
			t.Fatal(err)
		}
		r.defines("a", `on: ["loop:c=landed"]`)
		r.defines("b", `on: ["file:src/**", "loop:a=proposed"]`)
		r.defines("c", `on: ["loop:b=quiet", "loop:gone=failed"]`)
		r.defines("d", `on: ["loop:a=failed"]`)
		r.defines("e", "on:\n  - \"ref:refs/heads/main\"\n  - \"cmd:true\"")
		sync := func() catalog.Synced {
			t.Helper()
			s, err := r.Sync(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := sync(); s.Loops != 5 || s.Broken != 3 {
			t.Errorf("synced %+v", s)
		}
		for name, want := range map[string]string{"a": "a → b → c → a", "b": "b → c → a → b", "c": "c → a → b → c", "d": "", "e": ""} {
			broken := r.registered()[name].Broken
			e, err := r.Lookup(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" && (broken != "" || e.Problem != nil) || want != "" && (!strings.HasSuffix(broken, want) || !strings.Contains(e.Problem.Error(), want)) {
				t.Errorf("%s is broken by %q, %v, want %q", name, broken, e.Problem, want)
			}
			if f, ok := errors.AsType[*loop.Fault](e.Problem); want != "" && (!ok || f.Exit != loop.ExitNotReady || f.Fix == "") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if got := r.registered()["e"].Listens; got != "ref:refs/heads/main\ncmd:true" {
			t.Errorf("e listens to %q", got)
		}
		if s := sync(); s.Changed != 0 {
			t.Errorf("without a change it wrote %d rows", s.Changed)
		}
		r.defines("b", `on: ["file:src/**"]`) // Breaks the cycle for all of them.
		if s := sync(); s.Broken != 0 || s.Changed != 3 {
			t.Errorf("mended: %+v", s)
		}
		for name, reg := range r.registered() {
			if reg.Broken != "" || reg.Good == "" {
				t.Errorf("%s is still broken: %+v", name, reg)
			}
		}
		r.defines("b", `on: ["loop:d=failed"]`)
		r.defines("a", `on: ["loop:b=interrupted"]`)
		if s := sync(); s.Broken != 3 { // a, b and d, whose file has not changed.
			t.Errorf("a new cycle: %+v, %+v", s, r.registered())
		}
	})
}
