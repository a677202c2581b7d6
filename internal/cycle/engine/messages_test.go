package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAMessageOfARunReachesTheLoopThatItIsForOnceAndFiresItIfItIsUrgent(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, database(t))
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				return says(t, req, `{"outcome":"done","no_change":true}`)
			}
			def := loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"}
			message := &loop.Delivery{To: "far", Key: "k", Kind: "task", Priority: loop.Urgent, Text: "mend the build\nnow"}
			from := r.target("near", early{boardLike{nil, []string{"ask"}}, "Record", loop.Change{Kind: loop.ChangeDeliver, Delivery: message}}, def)
			taker := early{boardLike{nil, []string{"wait", "answer"}}, "Begin", loop.Change{Kind: loop.ChangeReceive, Delivery: &loop.Delivery{To: "far", Key: "k"}}}
			to := r.target("far", boardLike{nil, []string{"wait"}}, def)
			r.run(to, engine.Firing{}) // The loop has to be known.
			for range 2 {
				r.run(from, engine.Firing{})
			}
			waiting := func() (list []loop.Delivery) {
				r.view(func(rd *store.Reader) (err error) {
					list, err = rd.Undelivered(t.Context(), to.Loop.WorkspaceID, "far", 9)
					return err
				})
				return list
			}
			list := waiting()
			if len(list) != 1 || list[0].From != "near" || list[0].Text != message.Text {
				t.Fatalf("messages that wait: %+v", list)
			}
			r.view(func(rd *store.Reader) error {
				events, err := rd.WaitingOf(t.Context(), to.Loop.ID)
				if len(events) != 1 || events[0].Source != loop.OnMessage || events[0].Payload != "mend the build:" && events[0].Payload != "mend the build" {
					t.Errorf("events: %+v", events)
				}
				return err
			})
			r.run(r.target("far", taker, def), engine.Firing{})
			if list := waiting(); list != nil {
				t.Errorf("%+v waits after it was taken", list)
			}
		})
	}
}

func TestWhatAPersonIsToldBecomesANoticeOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, databases["sqlite"](t))
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		return says(t, req, `{"outcome":"done","no_change":true}`)
	}
	message := &loop.Delivery{To: "owner", Person: true, Key: "k", Kind: "escalation", Text: "all is blocked\nsince noon"}
	target := r.target("near", early{boardLike{nil, []string{"ask"}}, "Record", loop.Change{Kind: loop.ChangeDeliver, Delivery: message}},
		loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"})
	for range 2 {
		r.run(target, engine.Firing{})
	}
	r.view(func(rd *store.Reader) error {
		list, err := rd.Notices(t.Context(), 0, 9)
		if len(list) != 1 || list[0].Event != loop.NoticeEscalated || list[0].Kind != loop.NoticeNeedsYou || !strings.Contains(list[0].Title, "near#1 tells owner: all is blocked") || !strings.Contains(list[0].Body, "since noon") {
			t.Errorf("notices: %+v", list)
		}
		return err
	})
}
