package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/protocol/spec"
	"github.com/pawl-run/pawl/internal/store"
)

func TestTheAuditChainHoldsAfterEveryVerb(t *testing.T) {
	r := newRig(t)
	r.define("tidy", writesTwo)
	check := func(after string) {
		t.Helper()
		if err := r.VerifyAudit(t.Context(), "tidy"); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	check("nothing")
	r.run(RunRequest{Loop: "tidy"})
	check("run")
	pause(t, r.Service, "tidy")
	check("pause")
	pause(t, r.Service, All)
	check("pause of all")
	resume(t, r.Service, All)
	check("resume")
	r.run(RunRequest{Loop: "tidy"})
	check("another run")
	err := r.Store.View(t.Context(), func(rd *store.Reader) error {
		links, err := rd.Chain(t.Context(), catalog.LoopID(r.ws.ID, loop.ProtocolSpine, "tidy"))
		kinds := map[string]int{}
		for _, l := range links {
			kinds[l.Kind]++
		}
		if kinds["run"] < 2 || kinds["definition"] != 1 || kinds["kill"] != 3 || kinds["effect"] == 0 {
			t.Errorf("links = %v", kinds)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	wantFault(t, r.VerifyAudit(t.Context(), "nobody"), loop.ExitNotFound, "nobody", "", "it has: tidy")
}

func TestRecoverGoesOnPastALoopThatItCannotPutRight(t *testing.T) {
	r := newRig(t)
	// What ended runs of two loops left unwritten: a file stands where a folder must be.
	for _, name := range []string{"bad-1", "bad-2"} {
		write(t, r.Root(), ".loops/"+name, "no folder")
		run := r.fire(name, r.self)
		run.Outcome = loop.OutcomeReported
		err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
			rt, err := tx.Settle(t.Context(), run, loop.PhaseConclude, false)
			if err != nil {
				return err
			}
			_, err = rt.RecordChanges(t.Context(), []loop.Change{{Kind: loop.ChangeAppend, Path: ".loops/" + name + "/run-log.md", Content: "x"}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.define("lost", findsNone)
	lost := r.fire("lost", r.dead())
	busy := r.fire("zz-busy", loop.Holder{PID: 1, Start: 1, Node: "elsewhere"})
	found, err := r.Recover(t.Context())
	if len(found) != 1 || found[0].Loop != "lost" || found[0].Run.ID != lost.ID || found[0].Run.Outcome != loop.OutcomeInterrupted {
		t.Errorf("recovered = %+v", found)
	}
	wantFault(t, err, loop.ExitError, "recover bad-1", ".loops/bad-1/run-log.md", "the work is kept")
	for _, name := range []string{"recover bad-1", "recover bad-2"} {
		if !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("error = %v, want %s in it", err, name)
		}
	}
	if v, err := r.Run(t.Context(), "lost"); err != nil || v.State != "ended" || v.Reason != loop.ReasonHolderDied {
		t.Errorf("lost = %s %s, %v", v.State, v.Reason, err)
	}
	if v, err := r.Run(t.Context(), busy.ID); err != nil || v.State != "running" {
		t.Errorf("a run that somebody holds = %s, %v", v.State, err)
	}
	found, err = r.Recover(t.Context())
	if len(found) != 0 || err == nil {
		t.Errorf("again = %+v, %v, want nothing and the same errors", found, err)
	}
}

func TestALoopOfAProtocolThatThisVersionLacksIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.met("u")
	def := spec.Until("true", "u", nil)
	def.Protocol = loop.ProtocolBoard
	delete(r.Protocols, loop.ProtocolSpec)
	if found, err := r.Recover(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("recover = %+v, %v", found, err)
	}
	wantFault(t, r.runnable(t.Context(), def), loop.ExitMissing, "run u", `protocol "board"`, "protocol spine")
}
