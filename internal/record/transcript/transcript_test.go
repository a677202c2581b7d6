package transcript_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/record/transcript"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var now = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

const (
	known = "correct-horse-battery-staple"
	lent  = "a-login-that-was-lent-0815"
)

func newTranscript(live func(loop.Event)) *transcript.Transcript {
	environ := []string{"API_TOKEN=" + known}
	return transcript.New(transcript.Options{
		Run: "run_1", Now: func() time.Time { return now }, Environ: environ, Live: live,
		Known: func() *redact.Redactor { return redact.New(redact.FromEnviron(environ)...) },
	})
}

// unsaved are the events that are not saved, which they are not by this.
func unsaved(t *transcript.Transcript) (events []loop.Event) {
	_ = t.Save(func(_ loop.Phase, all []loop.Event) error {
		events = all
		return errors.ErrUnsupported
	})
	return events
}

func TestEventsAreInOneOrderWithThePhaseThatTheyHappenIn(t *testing.T) {
	var live []loop.Event
	tr := newTranscript(func(e loop.Event) { live = append(live, e) })
	tr.Enter(loop.PhaseSense)
	tr.Note("%d of %s", 3, "them")
	tr.Enter(loop.PhaseAct)
	want := []loop.Event{
		{RunID: "run_1", Seq: 1, At: now, Phase: loop.PhaseSense, Kind: loop.EventPhase, Text: "sense"},
		{RunID: "run_1", Seq: 2, At: now, Phase: loop.PhaseSense, Kind: loop.EventNote, Text: "3 of them"},
		{RunID: "run_1", Seq: 3, At: now, Phase: loop.PhaseAct, Kind: loop.EventPhase, Text: "act"},
	}
	for name, got := range map[string][]loop.Event{"unsaved": unsaved(tr), "live": live} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if tr.Phase() != loop.PhaseAct {
		t.Errorf("phase = %s", tr.Phase())
	}
}

func TestATranscriptThatIsResumedGoesOnBehindItsLastEvent(t *testing.T) {
	tr := newTranscript(nil)
	tr.Resume(loop.PhaseVerify, 41)
	tr.Note("taken over")
	if got := unsaved(tr); len(got) != 1 || got[0].Seq != 42 || got[0].Phase != loop.PhaseVerify {
		t.Errorf("events = %+v, want number 42 in verify", got)
	}
}

func TestEventsStayUntilTheyAreSaved(t *testing.T) {
	tr := newTranscript(nil)
	tr.Enter(loop.PhaseGather)
	lost := errors.New("the store is gone")
	for _, want := range []struct {
		err    error
		events int
	}{{lost, 1}, {nil, 1}, {nil, 0}} {
		err := tr.Save(func(phase loop.Phase, events []loop.Event) error {
			if len(events) != want.events || phase != loop.PhaseGather {
				t.Errorf("%d events in %s, want %d", len(events), phase, want.events)
			}
			return want.err
		})
		if !errors.Is(err, want.err) {
			t.Errorf("Save = %v, want %v", err, want.err)
		}
	}
	tr.Note("for those who watch")
	tr.Forget()
	if got := unsaved(tr); got != nil {
		t.Errorf("events = %v, want none", got)
	}
}

func TestNoEventOfManyWhoTellThemIsLostOrStandsTwice(t *testing.T) {
	tr := newTranscript(nil)
	var all sync.WaitGroup
	seen := map[int64]bool{}
	save := func() {
		_ = tr.Save(func(_ loop.Phase, events []loop.Event) error {
			for _, e := range events {
				if seen[e.Seq] {
					t.Errorf("event %d was saved twice", e.Seq)
				}
				seen[e.Seq] = true
			}
			return nil
		})
	}
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				tr.Note("%d", i)
				save()
			}
		})
	}
	all.Wait()
	save()
	if len(seen) != 400 || !seen[1] || !seen[400] {
		t.Errorf("%d events were saved, want 400", len(seen))
	}
}

func TestSecretsAreHiddenFromWhenTheyAreKnown(t *testing.T) {
	tr := newTranscript(nil)
	if got := tr.HideAll([]string{"it is " + known, "and " + lent, ""}); strings.Contains(got[0], known) || got[1] != "and "+lent || got[2] != "" {
		t.Errorf("before: %q", got)
	}
	login := []redact.Secret{{Name: "login", Value: lent}}
	if !tr.Learn(login) || tr.Learn(login) || tr.Learn(nil) {
		t.Error("only what is new is new")
	}
	if got := tr.Hide(known + " " + lent); strings.Contains(got, known) || strings.Contains(got, lent) {
		t.Errorf("after: %q", got)
	}
}

func TestOutputBecomesEventsOfWholeLinesWithoutSecrets(t *testing.T) {
	tr := newTranscript(nil)
	out := tr.Output()
	for _, part := range []string{"one\ntwo\nthr", "ee\n" + known[:9], known[9:] + "\nthe end"} {
		if n, err := out.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	out.End()
	var text strings.Builder
	for _, e := range unsaved(tr) {
		if e.Kind != loop.EventOutput {
			t.Errorf("event = %+v", e)
		}
		text.WriteString(e.Text)
	}
	if got := text.String(); !strings.HasPrefix(got, "one\ntwo\nthree\n") || strings.Contains(got, known) || !strings.HasSuffix(got, "\nthe end") {
		t.Errorf("output = %q", got)
	}
	for _, e := range unsaved(tr)[:len(unsaved(tr))-1] {
		if !strings.HasSuffix(e.Text, "\n") {
			t.Errorf("%q ends within a line", e.Text)
		}
	}
}

func TestALongLineIsCutAndWhatIsBeyondTheCapIsCounted(t *testing.T) {
	tr := newTranscript(nil)
	out := tr.Output()
	const size = 1<<20 + 5000
	if n, err := fmt.Fprint(out, strings.Repeat("x", size)); n != size || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	out.End()
	kept, notes := 0, []string{}
	for _, e := range unsaved(tr) {
		if e.Kind == loop.EventNote {
			notes = append(notes, e.Text)
			continue
		}
		if len(e.Text) > 8<<10 {
			t.Errorf("an event has %d bytes", len(e.Text))
		}
		kept += len(e.Text)
	}
	want := []string{"output beyond 1048576 bytes is not kept", "5000 bytes of output were left out"}
	if diff := cmp.Diff(want, notes); diff != "" || kept != 1<<20 {
		t.Errorf("%d bytes are kept, notes (-want +got):\n%s", kept, diff)
	}
}
