package guard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

func TestARunIsDueBeforeItsLeaseEndsAndOnlyOnce(t *testing.T) {
	const killAt, until = 900, 1000
	root := Root{ID: stage.ID{PID: 7, Start: 1}, Kind: stage.KindCell}
	extended := Message{Event: Extended, Tag: "a", KillAt: killAt, Until: until}
	started := Message{Event: Started, Tag: "a", Root: root}
	late := Message{Event: Extended, Tag: "a", KillAt: killAt + wakeGrace, Until: until + wakeGrace}
	type look struct {
		Now, Next int64
		Due       bool
	}
	cases := map[string]struct {
		said  []Message
		looks []look
		then  []Message // between the last two looks
	}{
		"nothing is said":               {looks: []look{{Now: until}}},
		"a run without programs":        {said: []Message{extended}, looks: []look{{Now: until + 1}}},
		"programs whose time is unsaid": {said: []Message{started}, looks: []look{{Now: until}}},
		"in time": {said: []Message{started, extended}, looks: []look{
			{Now: 1, Next: killAt}, {Now: killAt - 1, Next: killAt}, {Now: killAt, Due: true}, {Now: until + wakeGrace},
		}},
		"extended": {said: []Message{extended, started}, then: []Message{late}, looks: []look{
			{Now: killAt - 1, Next: killAt}, {Now: killAt, Next: killAt + wakeGrace},
		}},
		"the last program has ended": {said: []Message{extended, started}, then: []Message{{Event: Ended, Tag: "a", Root: root}}, looks: []look{
			{Now: 1, Next: killAt}, {Now: killAt},
		}},
		"another program has ended": {
			said: []Message{extended, started}, then: []Message{{Event: Ended, Tag: "a", Root: Root{ID: stage.ID{PID: 7, Start: 2}, Kind: root.Kind}}},
			looks: []look{{Now: 1, Next: killAt}, {Now: killAt, Due: true}},
		},
		"released": {said: []Message{extended, started}, then: []Message{{Event: Released, Tag: "a"}}, looks: []look{
			{Now: 1, Next: killAt}, {Now: killAt},
		}},
		"woken after the end, and pawl is silent": {said: []Message{extended, started}, looks: []look{
			{Now: until, Next: until + wakeGrace}, {Now: until + wakeGrace, Due: true},
		}},
		"woken after the end, and pawl still has the run": {said: []Message{extended, started}, then: []Message{late}, looks: []look{
			{Now: until, Next: until + wakeGrace}, {Now: until + 1, Next: killAt + wakeGrace},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var w watch
			for _, m := range c.said {
				w.apply(m, noFD)
			}
			var got []look
			for i, l := range c.looks {
				if i == len(c.looks)-1 {
					for _, m := range c.then {
						w.apply(m, noFD)
					}
				}
				over, next := w.due(l.Now)
				got = append(got, look{Now: l.Now, Next: next, Due: len(over) == 1})
			}
			if diff := cmp.Diff(c.looks, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOneRunIsDueAndTheNextOneIsWaitedFor(t *testing.T) {
	var w watch
	for tag, at := range map[string]int64{"a": 10, "b": 30, "c": 20} {
		w.apply(Message{Event: Started, Tag: tag, Root: Root{ID: stage.ID{PID: int(at)}}}, noFD)
		w.apply(Message{Event: Extended, Tag: tag, KillAt: at, Until: at + 5}, noFD)
	}
	over, next := w.due(12)
	if len(over) != 1 || over[0].tag != "a" || next != 20 {
		t.Errorf("due: %d, next at %d", len(over), next)
	}
	w.apply(Message{Event: Released, Tag: "c"}, noFD)
	if _, next := w.due(13); next != 30 {
		t.Errorf("without c: next at %d", next)
	}
}

// Each pidfd is kept exactly while its root is known.
func TestPidfdsAreClosedOnce(t *testing.T) {
	root := func(pid int) Root { return Root{ID: stage.ID{PID: pid}} }
	var w watch
	steps := []struct {
		m      Message
		fd     int
		closed []int
	}{
		{Message{Event: Started, Tag: "a", Root: root(1)}, 11, nil},
		{Message{Event: Started, Tag: "a", Root: root(1)}, 12, []int{12}}, // said again
		{Message{Event: Started, Tag: "a", Root: root(2)}, 13, nil},
		{Message{Event: Started, Tag: "a", Root: root(3)}, noFD, nil},
		{Message{Event: Ended, Tag: "a", Root: root(1)}, noFD, []int{11}},
		{Message{Event: Ended, Tag: "b", Root: root(2)}, 14, []int{14}}, // of nobody
		{Message{Event: Released, Tag: "a"}, noFD, []int{13}},
		{Message{Event: Released, Tag: "a"}, noFD, nil},
	}
	for i, s := range steps {
		if diff := cmp.Diff(s.closed, w.apply(s.m, s.fd)); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
	if len(w.runs) != 0 {
		t.Errorf("%d runs are left", len(w.runs))
	}
}

func TestMessagesSurviveTheLink(t *testing.T) {
	want := Message{Event: Started, Tag: "PAWL_RUN=run_1", Root: Root{ID: stage.ID{PID: 3, Start: 1 << 40}, Kind: stage.KindSubreaper}, KillAt: 1 << 60, Until: 1<<60 + 1}
	b := want.Encode()
	got, ok := ParseMessage(b)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(ok, diff)
	}
	if _, ok := ParseMessage(b[:len(b)-1]); ok {
		t.Error("half a message is read")
	}
}
