package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/spec"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
)

func TestRecoverGoesOnPastALoopThatItCannotPutRight(t *testing.T) {
	r := verbtest.New(t)
	// What ended runs of two loops left unwritten: a file stands where a folder must be.
	for _, name := range []string{"bad-1", "bad-2"} {
		verbtest.Write(t, r.Root, ".loops/"+name, "no folder")
		run := r.InsertRun(name, r.Self)
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
	r.DefineLoop("lost", verbtest.FindsNone)
	lost := r.InsertRun("lost", r.DeadHolder())
	busy := r.InsertRun("zz-busy", loop.Holder{PID: 1, Start: 1, Host: "elsewhere"})
	found, err := r.Runs.Recover(t.Context())
	if len(found) != 1 || found[0].Loop != "lost" || found[0].Run.ID != lost.ID || found[0].Run.Outcome != loop.OutcomeInterrupted {
		t.Errorf("recovered = %+v", found)
	}
	verbtest.WantFault(t, err, loop.ExitError, "recover bad-1", ".loops/bad-1/run-log.md", "the work is kept")
	for _, name := range []string{"recover bad-1", "recover bad-2"} {
		if !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("error = %v, want %s in it", err, name)
		}
	}
	if v, err := r.Runs.Show(t.Context(), "lost"); err != nil || v.State != "ended" || v.Reason != loop.ReasonHolderDied {
		t.Errorf("lost = %s %s, %v", v.State, v.Reason, err)
	}
	if v, err := r.Runs.Show(t.Context(), busy.ID); err != nil || v.State != "running" {
		t.Errorf("a run that somebody holds = %s, %v", v.State, err)
	}
	found, err = r.Runs.Recover(t.Context())
	if len(found) != 0 || err == nil {
		t.Errorf("again = %+v, %v, want nothing and the same errors", found, err)
	}
}

func TestALoopOfAProtocolThatThisVersionLacksIsLeftAlone(t *testing.T) {
	r := verbtest.New(t)
	r.RecordMet("u")
	def := spec.Until("true", "u", nil)
	def.Protocol = loop.ProtocolBoard
	r.Workspace.Formats = nil
	if found, err := r.Runs.Recover(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("recover = %+v, %v", found, err)
	}
	verbtest.WantFault(t, r.Runs.Runnable(t.Context(), def), loop.ExitMissing, "u cannot run", `protocol "board"`, "protocol spine")
}
