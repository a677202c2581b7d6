package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A method that swallows the error of one of its statements would let a
// transaction be committed of which a part is missing, or an answer be believed
// that nobody gave.
func TestNoMethodForgetsTheErrorOfAnyOfItsStatements(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, Options{Database: filepath.Join(t.TempDir(), "p.db"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	have := filled(t, s)
	run, ended := have.run, have.run
	ended.State = loop.RunEnded
	second := loop.Run{ID: "second", LoopID: "lp", N: 2, Key: "ci-2", Trigger: "manual"}
	seat := loop.SeatWish{Agent: "ada", Account: "claude:login", AgentRuns: 1, AccountRuns: 1}
	delivery := loop.NoticeDelivery{NoticeID: "nt", Channel: "ch", Tries: 1}
	landing := func(call func(*RunTx) error) func(*RunTx) error { // What is done to an approval to which somebody said yes.
		return func(rt *RunTx) error {
			if _, err := rt.exec(ctx, `UPDATE approvals SET state = 'landing' WHERE id = 'ap'`); err != nil {
				return err
			}
			return call(rt)
		}
	}
	methods := map[string]func(rt *RunTx) error{
		"AddLoop": func(rt *RunTx) error {
			return rt.AddLoop(ctx, loop.Workspace{ID: "w2", Root: "/r2"}, loop.Loop{ID: "l2", WorkspaceID: "w2", Name: "x", Protocol: "p"})
		},
		"Accept": func(rt *RunTx) error {
			return rt.Accept(ctx, loop.Acceptance{LoopID: "lp", Digest: "d", How: loop.AcceptedRun})
		},
		"IsAccepted":    func(rt *RunTx) error { _, err := rt.IsAccepted(ctx, "lp", "d"); return err },
		"AddDefinition": func(rt *RunTx) error { return rt.AddDefinition(ctx, "lp", loop.Definition{Name: "other"}) },
		"AmendEffect": func(rt *RunTx) error {
			if _, err := rt.exec(ctx, `UPDATE effects SET state = 'done'`); err != nil {
				return err
			}
			return rt.AmendEffect(ctx, loop.Effect{RunID: "run", Seq: 1, Result: map[string]string{"state": "MERGED"}})
		},
		"AddChannel": func(rt *RunTx) error {
			_, err := rt.AddChannel(ctx, loop.Channel{Name: "c2", Kind: loop.ChannelNtfy})
			return err
		},
		"AddNotice":       func(rt *RunTx) error { _, err := rt.AddNotice(ctx, loop.Notice{ID: "n2", Key: "k2"}); return err },
		"ChannelHealth":   func(rt *RunTx) error { _, err := rt.ChannelHealth(ctx, "ch"); return err },
		"Channels":        func(rt *RunTx) error { _, err := rt.Channels(ctx); return err },
		"ClaimDeliveries": func(rt *RunTx) error { _, err := rt.ClaimDeliveries(ctx, "node_run", 9, time.Minute); return err },
		"Delivered":       func(rt *RunTx) error { _, err := rt.Delivered(ctx, delivery); return err },
		"Deliveries":      func(rt *RunTx) error { _, err := rt.Deliveries(ctx, []loop.Notice{{ID: "nt"}}); return err },
		"DueDeliveries":   func(rt *RunTx) error { _, err := rt.DueDeliveries(ctx, "node_run"); return err },
		"EndNotice":       func(rt *RunTx) error { _, err := rt.EndNotice(ctx, loop.Notice{ID: "n2", Key: "late"}); return err },
		"LastingKeys":     func(rt *RunTx) error { _, err := rt.LastingKeys(ctx, []string{"late"}); return err },
		"ChangeMemories": func(rt *RunTx) error {
			return errors.Join(learn(ctx, rt.Tx, "", "use tabs"), learn(ctx, rt.Tx, "", "new"))
		},
		"ApprovalsOfSteps": func(rt *RunTx) error { _, err := rt.ApprovalsOfSteps(ctx, "lp", "st"); return err },
		"NoCyclesBetween":  func(rt *RunTx) error { _, err := rt.NoCyclesBetween(ctx, "lp", 0, 9); return err },
		"Deliver": func(rt *RunTx) error {
			_, err := rt.Deliver(ctx, loop.Delivery{To: "ci", Key: "new", From: "ci"})
			return err
		},
		"Messages": func(rt *RunTx) error { _, err := rt.Messages(ctx, "ws", MessageQuery{Recipient: "ci"}); return err },
		"Send": func(rt *RunTx) error {
			_, err := rt.Send(ctx, "ws", loop.Delivery{To: "ci", Key: "new", From: "human"}, true)
			return err
		},
		"MessagesOnTopics": func(rt *RunTx) error { _, err := rt.MessagesOnTopics(ctx, "ws", "ci", 9); return err },
		"MessagesTold":     func(rt *RunTx) error { _, err := rt.MessagesTold(ctx, "ws", 9); return err },
		"ChangeRow": func(rt *RunTx) error {
			return rt.ChangeRow(ctx, "ws", loop.Row{Set: "tasks", Key: "t1", Holds: true, Body: json.RawMessage(`{"a": 1}`)})
		},
		"MessagesAbout": func(rt *RunTx) error { _, err := rt.MessagesAbout(ctx, "ws", []string{"t"}); return err },
		"CountRows":     func(rt *RunTx) error { _, err := rt.CountRows(ctx, "ws", "tasks"); return err },
		"Row":           func(rt *RunTx) error { _, err := rt.Row(ctx, "ws", "tasks", "t1"); return err },
		"Rows":          func(rt *RunTx) error { _, err := rt.Rows(ctx, "ws", loop.RowQuery{Set: "tasks"}); return err },
		"WriteRow": func(rt *RunTx) error {
			return rt.WriteRow(ctx, "ws", loop.Row{Set: "tasks", Key: "new", Body: json.RawMessage(`{}`)})
		},
		"Receive":          func(rt *RunTx) error { return rt.Receive(ctx, loop.Delivery{To: "ci", Key: "k", Response: "yes"}) },
		"Undelivered":      func(rt *RunTx) error { _, err := rt.Undelivered(ctx, "ws", "ci", 9); return err },
		"LockMemory":       func(rt *RunTx) error { _, err := rt.LockMemory(ctx, "ws", 1); return err },
		"Memories":         func(rt *RunTx) error { _, err := rt.Memories(ctx, MemoryQuery{Workspace: "ws", Limit: 9}); return err },
		"Memory":           func(rt *RunTx) error { _, err := rt.Memory(ctx, "ws", 1); return err },
		"ProposedMemories": func(rt *RunTx) error { _, err := rt.ProposedMemories(ctx, "ws", "lp"); return err },
		"SaveMemory":       func(rt *RunTx) error { rt.SaveMemory("ws", loop.Memory{N: 1, State: loop.MemoryActive}); return nil },
		"LastingNotice":    func(rt *RunTx) error { _, err := rt.LastingNotice(ctx, "late"); return err },
		"LastingNotices":   func(rt *RunTx) error { _, err := rt.LastingNotices(ctx); return err },
		"MoveNoticeCursor": func(rt *RunTx) error {
			_, err := rt.MoveNoticeCursor(ctx, loop.Cursor{Seq: 1}, loop.Cursor{Seq: 2})
			return err
		},
		"NotDelivered": func(rt *RunTx) error {
			state, err := rt.NotDelivered(ctx, delivery, "no route", time.Hour, time.Minute)
			if err == nil && state != loop.DeliveryGaveUp {
				err = fmt.Errorf("the delivery is %s", state)
			}
			return err
		},
		"NoticeCursor":      func(rt *RunTx) error { _, err := rt.NoticeCursor(ctx); return err },
		"Notices":           func(rt *RunTx) error { _, err := rt.Notices(ctx, 0, 9); return err },
		"PruneNotices":      func(rt *RunTx) error { _, err := rt.PruneNotices(ctx, time.Now()); return err },
		"RemoveChannel":     func(rt *RunTx) error { _, err := rt.RemoveChannel(ctx, "ch"); return err },
		"StartNoticeCursor": func(rt *RunTx) error { _, err := rt.StartNoticeCursor(ctx, loop.Cursor{Seq: 2}); return err },
		"AddWorkspace":      func(rt *RunTx) error { return rt.AddWorkspace(ctx, loop.Workspace{ID: "w2", Root: "/r2"}) },
		"Agent":             func(rt *RunTx) error { _, err := rt.Agent(ctx, "ada"); return err },
		"AgentToChange":     func(rt *RunTx) error { _, err := rt.AgentToChange(ctx, "ada"); return err },
		"Agents":            func(rt *RunTx) error { _, err := rt.Agents(ctx); return err },
		"AnswerApproval":    func(rt *RunTx) error { return rt.AnswerApproval(ctx, "late", loop.Answer{Yes: true, By: "ann"}) },
		"AppendEvents":      func(rt *RunTx) error { return rt.AppendEvents(ctx, []loop.Event{{Seq: 2, Kind: "output"}}) },
		"Applied":           func(rt *RunTx) error { return rt.Applied(ctx, []loop.PendingChange{{RunID: "run", Seq: 1}}) },
		"Approval":          func(rt *RunTx) error { _, err := rt.Approval(ctx, "ap"); return err },
		"Approvals":         func(rt *RunTx) error { _, err := rt.Approvals(ctx, "lp"); return err },
		"AskApproval":       func(rt *RunTx) error { a := have.approval; a.ID = "new"; return rt.AskApproval(ctx, a) },
		"Asked":             func(rt *RunTx) error { _, err := rt.Asked(ctx, "run"); return err },
		"Budgets":           func(rt *RunTx) error { _, err := rt.Budgets(ctx); return err },
		"Cancel":            func(rt *RunTx) error { _, err := rt.Cancel(ctx, "run", "stop"); return err },
		"Chain":             func(rt *RunTx) error { _, err := rt.Chain(ctx, "lp"); return err },
		"ChainHead":         func(rt *RunTx) error { _, err := rt.ChainHead(ctx, "lp"); return err },
		"Claim": func(rt *RunTx) error {
			_, _, err := rt.Claim(ctx, "run", run.Fence, loop.Holder{PID: 2}, run.Holder)
			return err
		},
		"ClearDeferrals": func(rt *RunTx) error { return rt.ClearDeferrals(ctx, "lp") },
		"Contend":        func(rt *RunTx) error { return rt.Contend(ctx, "run") },
		"Contenders":     func(rt *RunTx) error { _, err := rt.Contenders(ctx, "ws"); return err },
		"DeferTo":        func(rt *RunTx) error { return rt.DeferTo(ctx, loop.Deferral{Loop: "other"}) },
		"LockContenders": func(rt *RunTx) error { _, err := rt.LockContenders(ctx, "ws", loop.Ahead{}); return err },
		"Asking":         func(rt *RunTx) error { _, err := rt.Asking(ctx, "run"); return err },
		"LockLoopOf":     func(rt *RunTx) error { _, err := rt.LockLoopOf(ctx, "run"); return err },
		"TakeLock": func(rt *RunTx) error {
			if _, err := rt.exec(ctx, `UPDATE runs SET lock_body = '{}'`); err != nil {
				return err
			}
			_, err := rt.TakeLock(ctx, run, run.Holder)
			return err
		},
		"ClearHold":       func(rt *RunTx) error { _, err := rt.ClearHold(ctx, "claude"); return err },
		"Definition":      func(rt *RunTx) error { _, err := rt.Definition(ctx, have.d.Digest()); return err },
		"Definitions":     func(rt *RunTx) error { _, err := rt.Definitions(ctx, have.d.Digest()); return err },
		"DropSession":     func(rt *RunTx) error { return rt.DropSession(ctx, "claude") },
		"Effects":         func(rt *RunTx) error { _, err := rt.Effects(ctx, "run"); return err },
		"End":             func(rt *RunTx) error { _, err := rt.End(ctx, run, loop.PhaseSleep); return err },
		"Ended":           func(rt *RunTx) error { _, err := rt.Ended(ctx, "lp", 9); return err },
		"Enter":           func(rt *RunTx) error { _, err := rt.Enter(ctx, run, loop.PhaseAct); return err },
		"Events":          func(rt *RunTx) error { _, err := rt.Events(ctx, "run", 0, 9); return err },
		"ExpireApprovals": func(rt *RunTx) error { _, err := rt.ExpireApprovals(ctx); return err },
		"Extend":          func(rt *RunTx) error { _, err := rt.Extend(ctx, "run", run.Fence); return err },
		"Feed":            func(rt *RunTx) error { _, err := rt.Feed(ctx, loop.Cursor{}, 9); return err },
		"FeedHead":        func(rt *RunTx) error { _, err := rt.FeedHead(ctx); return err },
		"Fire":            func(rt *RunTx) error { _, err := rt.Fire(ctx, second); return err },
		"FireClaimed":     func(rt *RunTx) error { _, err := rt.FireClaimed(ctx, second, loop.Holder{PID: 2}); return err },
		"Forget":          func(rt *RunTx) error { return rt.Forget(ctx, loop.Actor{Who: "ann"}, "lp") },
		"ForgetNode":      func(rt *RunTx) error { return rt.ForgetNode(ctx, "node_run") },
		"GitFingerprint":  func(rt *RunTx) error { _, _, err := rt.GitFingerprint(ctx, "ws", ""); return err },
		"History":         func(rt *RunTx) error { _, err := rt.History(ctx, "lp", 9); return err },
		"HasSeat":         func(rt *RunTx) error { _, err := rt.HasSeat(ctx, run); return err },
		"Holds":           func(rt *RunTx) error { _, err := rt.Holds(ctx); return err },
		"Iterations":      func(rt *RunTx) error { _, err := rt.Iterations(ctx, "run"); return err },
		"LastEvent":       func(rt *RunTx) error { _, err := rt.LastEvent(ctx, "run"); return err },
		"LastOf":          func(rt *RunTx) error { _, err := rt.LastOf(ctx, "run", "output"); return err },
		"Link":            func(rt *RunTx) error { return rt.Link(ctx, "lp", loop.LinkRun, "run", map[string]int{"n": 1}) },
		"LinkBy": func(rt *RunTx) error {
			return rt.LinkBy(ctx, loop.Actor{Who: "ann"}, "lp", loop.LinkRun, "run", map[string]any{"n": 1})
		},
		"TryLanding":  landing(func(rt *RunTx) error { return rt.TryLanding(ctx, loop.Approval{ID: "ap", Tries: 1, Tried: noon}) }),
		"FailLanding": landing(func(rt *RunTx) error { return rt.FailLanding(ctx, "ap", "no remote") }),
		"Landed":      landing(func(rt *RunTx) error { return rt.Landed(ctx, "ap") }),
		"Live":        func(rt *RunTx) error { _, err := rt.Live(ctx, "lp"); return err },
		"LockLoop":    func(rt *RunTx) error { _, err := rt.LockLoop(ctx, "lp"); return err },
		"LockLoops":   func(rt *RunTx) error { _, err := rt.LockLoops(ctx, "lp"); return err },
		"RegisterLoops": func(rt *RunTx) error {
			return rt.RegisterLoops(ctx, []loop.Loop{{ID: "l3", WorkspaceID: "ws", Name: "y", Protocol: loop.ProtocolSpine}})
		},
		"SaveRegistration": func(rt *RunTx) error { return rt.SaveRegistration(ctx, "lp", loop.Registration{Source: "s"}) },
		"OtherSeats":       func(rt *RunTx) error { _, err := rt.OtherSeats(ctx, "lp", seat); return err },
		"Loop":             func(rt *RunTx) error { _, err := rt.Loop(ctx, "lp"); return err },
		"LoopNamed":        func(rt *RunTx) error { _, err := rt.LoopNamed(ctx, "ws", loop.ProtocolSpine, "ci"); return err },
		"LoopState":        func(rt *RunTx) error { _, err := rt.LoopState(ctx, "lp", "node_run", 9, "claude"); return err },
		"Loops":            func(rt *RunTx) error { _, err := rt.Loops(ctx, "ws"); return err },
		"LoopsAfter":       func(rt *RunTx) error { _, err := rt.LoopsAfter(ctx, "ws", "", "", 9); return err },
		"LoopsNamed":       func(rt *RunTx) error { _, err := rt.LoopsNamed(ctx, "ws", "ci"); return err },
		"NewestRuns":       func(rt *RunTx) error { _, err := rt.NewestRuns(ctx, "lp"); return err },
		"Number":           func(rt *RunTx) error { _, err := rt.Number(ctx, "ws", loop.ProtocolSpine, "ci"); return err },
		"Node":             func(rt *RunTx) error { _, err := rt.Node(ctx, "node_run"); return err },
		"Nodes":            func(rt *RunTx) error { _, err := rt.Nodes(ctx); return err },
		"OverdueApprovals": func(rt *RunTx) error { _, err := rt.OverdueApprovals(ctx, noon); return err },
		"Pause":            func(rt *RunTx) error { return rt.Pause(ctx, "lp", true) },
		"Pending":          func(rt *RunTx) error { _, err := rt.Pending(ctx, "lp", ""); return err },
		"Place": func(rt *RunTx) error {
			return rt.Place(ctx, loop.Placement{WorkspaceID: "ws", NodeID: "node_run", Path: "/moved"})
		},
		"AllPlacements": func(rt *RunTx) error { _, err := rt.AllPlacements(ctx); return err },
		"EnterOwed": func(rt *RunTx) error {
			if _, err := rt.exec(ctx, `UPDATE runs SET state = 'ended', outcome = 'quiet', holder = '', owed = 1`); err != nil {
				return err
			}
			_, err := rt.EnterOwed(ctx, run, true)
			return err
		},
		"GiveUpOwed": func(rt *RunTx) error { return rt.GiveUpOwed(ctx, "node_run") },
		"OpenRuns":   func(rt *RunTx) error { _, err := rt.OpenRuns(ctx, "node_run"); return err },
		"OweFiles":   func(rt *RunTx) error { return rt.OweFiles(ctx) },
		"OwedRuns":   func(rt *RunTx) error { _, err := rt.OwedRuns(ctx, "node_run", "ws"); return err },
		"TakeLost": func(rt *RunTx) error {
			_, err := rt.TakeLost(ctx, "run", run.Fence, loop.Holder{PID: 2}, run.Holder)
			return err
		},
		"Unplace":        func(rt *RunTx) error { return rt.Unplace(ctx, "ws", "node_run") },
		"PlacementAt":    func(rt *RunTx) error { _, err := rt.PlacementAt(ctx, "node_run", "/repo"); return err },
		"Placements":     func(rt *RunTx) error { _, err := rt.Placements(ctx, "ws"); return err },
		"LoopsMoved":     func(rt *RunTx) error { _, err := rt.LoopsMoved(ctx, loop.Cursor{}); return err },
		"PruneFeed":      func(rt *RunTx) error { _, err := rt.PruneFeed(ctx, time.Now(), 9); return err },
		"RecordChanges":  func(rt *RunTx) error { _, err := rt.RecordChanges(ctx, []loop.Change{have.change}); return err },
		"Repository":     func(rt *RunTx) error { _, err := rt.Repository(ctx, "ws"); return err },
		"RequestEffect":  func(rt *RunTx) error { return rt.RequestEffect(ctx, loop.EffectRequest{Kind: "push", Key: "push/1"}) },
		"Reserve":        func(rt *RunTx) error { _, err := rt.Reserve(ctx, have.scopes, nil, loop.Amount{Tokens: 2}); return err },
		"Reserved":       func(rt *RunTx) error { _, _, _, err := rt.Reserved(ctx); return err },
		"Run":            func(rt *RunTx) error { _, err := rt.Run(ctx, "run"); return err },
		"RunEnds":        func(rt *RunTx) error { _, err := rt.RunEnds(ctx, "lp"); return err },
		"RunNumber":      func(rt *RunTx) error { _, err := rt.RunNumber(ctx, "lp", 1); return err },
		"Runs":           func(rt *RunTx) error { _, err := rt.Runs(ctx, "lp", 9); return err },
		"Save":           func(rt *RunTx) error { _, err := rt.Save(ctx, run, loop.PhaseAct); return err },
		"SaveAgent":      func(rt *RunTx) error { return rt.SaveAgent(ctx, loop.Agent{ID: "ag", Handle: "ada", Model: "m"}) },
		"SaveDefinition": func(rt *RunTx) error { return rt.SaveDefinition(ctx, "lp", have.d) },
		"AddTicks": func(rt *RunTx) error {
			return rt.AddTicks(ctx, []loop.Tick{{LoopID: "lp", First: time.UnixMilli(5), Last: time.UnixMilli(5), N: 1, Verdict: loop.TickRan}})
		},
		"DueLoops": func(rt *RunTx) error { _, err := rt.DueLoops(ctx, "node_run", time.Now(), 9); return err },
		"AddEvent": func(rt *RunTx) error {
			_, err := rt.AddEvent(ctx, loop.FiringEvent{LoopID: "lp", ID: "ev2", Source: "file:*"}, func(before, now string) string { return before + now })
			return err
		},
		"CountWaiting": func(rt *RunTx) error { _, err := rt.CountWaiting(ctx, "lp", "file:*"); return err },
		"DecideEvents": func(rt *RunTx) error {
			return rt.DecideEvents(ctx, []loop.FiringEvent{{LoopID: "lp", ID: "ev", Verdict: loop.FiringRan, RunID: "run"}})
		},
		"NewestIterations": func(rt *RunTx) error { _, err := rt.NewestIterations(ctx, "lp", 9); return err },
		"CloseQuestion":    func(rt *RunTx) error { return rt.CloseQuestion(ctx, "ap_1") },
		"WaitInstead":      func(rt *RunTx) error { return rt.WaitInstead(ctx, have.step.ID, "ap") },
		"ReopenRejected":   func(rt *RunTx) error { return rt.ReopenRejected(ctx, "ap_1", "", "no") },
		"ReopenStep":       func(rt *RunTx) error { _, err := rt.ReopenStep(ctx, have.step); return err },
		"AddSpec": func(rt *RunTx) error {
			_, err := rt.AddSpec(ctx, Spec{ID: "lp_1234567", WorkspaceID: "ws", LoopID: "lp"}, "ann")
			return err
		},
		"HasSpec":      func(rt *RunTx) error { _, err := rt.HasSpec(ctx, "lp_1234567"); return err },
		"SpecsOfLoops": func(rt *RunTx) error { _, err := rt.SpecsOfLoops(ctx, []string{"lp"}); return err },
		"SpecsOfEntry": func(rt *RunTx) error { _, err := rt.SpecsOfEntry(ctx, "ws", "b"); return err },
		"DeleteSpec":   func(rt *RunTx) error { return rt.DeleteSpec(ctx, "lp_1234567") },
		"ReviseSpec":   func(rt *RunTx) error { return rt.ReviseSpec(ctx, Spec{ID: "lp_1234567", Revision: 1}, "ann") },
		"SaveRubric":   func(rt *RunTx) error { return rt.SaveRubric(ctx, "lp_1234567", "{}") },
		"Spec":         func(rt *RunTx) error { _, err := rt.Spec(ctx, "lp_1234567"); return err },
		"BeginCall": func(rt *RunTx) error {
			_, err := rt.BeginCall(ctx, KeyedCall{Key: "k", Verb: "v", Request: "r"}, loop.Holder{})
			return err
		},
		"AdoptLoop": func(rt *RunTx) error {
			return rt.AdoptLoop(ctx, loop.Loop{ID: "lp", Parent: "above", Depth: 1, MadeBy: "run", Lent: loop.Amount{Tokens: 1}})
		},
		"SetLent":        func(rt *RunTx) error { return rt.SetLent(ctx, "lp", loop.Amount{Tokens: 1}) },
		"ChildrenToday":  func(rt *RunTx) error { _, err := rt.ChildrenToday(ctx, "lp"); return err },
		"Children":       func(rt *RunTx) error { _, err := rt.Children(ctx, "lp"); return err },
		"LentToChildren": func(rt *RunTx) error { _, err := rt.LentToChildren(ctx, "lp"); return err },
		"Descendants":    func(rt *RunTx) error { _, err := rt.Descendants(ctx, "lp"); return err },
		"Ancestors":      func(rt *RunTx) error { _, err := rt.Ancestors(ctx, "lp"); return err },
		"CheckInside": func(rt *RunTx) error {
			return rt.CheckInside(ctx, loop.Inside{RunID: run.ID, Fence: run.Fence, LoopID: "lp"})
		},
		"Call":              func(rt *RunTx) error { _, err := rt.Call(ctx, "k"); return err },
		"ExtendCall":        func(rt *RunTx) error { return rt.ExtendCall(ctx, Claim{"k", 1}) },
		"FreeCall":          func(rt *RunTx) error { return rt.FreeCall(ctx, Claim{"k", 1}) },
		"DropCall":          func(rt *RunTx) error { return rt.DropCall(ctx, Claim{"k", 1}) },
		"AnswerCall":        func(rt *RunTx) error { return rt.AnswerCall(ctx, Claim{"k", 1}, "a") },
		"RunOfRepository":   func(rt *RunTx) error { _, err := rt.RunOfRepository(ctx, "ws", run.ID); return err },
		"RunByKey":          func(rt *RunTx) error { _, err := rt.RunByKey(ctx, run.Key); return err },
		"Specs":             func(rt *RunTx) error { _, err := rt.Specs(ctx, "ws", time.Time{}, "", 9); return err },
		"EndRest":           func(rt *RunTx) error { return rt.EndRest(ctx, "lp") },
		"EventCursor":       func(rt *RunTx) error { _, _, err := rt.EventCursor(ctx, "node_run"); return err },
		"ForgetEvents":      func(rt *RunTx) error { return rt.ForgetEvents(ctx, "lp", time.Now()) },
		"ListeningLoops":    func(rt *RunTx) error { _, err := rt.ListeningLoops(ctx, "node_run"); return err },
		"LoopEvents":        func(rt *RunTx) error { _, err := rt.LoopEvents(ctx, "lp", 9); return err },
		"LoopsWithEvents":   func(rt *RunTx) error { _, err := rt.LoopsWithEvents(ctx, "node_run", time.Now(), "", 9); return err },
		"MoveSource":        func(rt *RunTx) error { _, err := rt.MoveSource(ctx, "lp", "node_run", "file:*", "a", "b"); return err },
		"NextEvent":         func(rt *RunTx) error { _, err := rt.NextEvent(ctx, "node_run", time.Now()); return err },
		"QueuedByEvent":     func(rt *RunTx) error { _, err := rt.QueuedByEvent(ctx, "lp"); return err },
		"ReturnEvents":      func(rt *RunTx) error { return rt.ReturnEvents(ctx, time.Time{}, "paused") },
		"ReturnUntilAnswer": func(rt *RunTx) error { return rt.ReturnUntilAnswer(ctx) },
		"RunEvents":         func(rt *RunTx) error { _, err := rt.RunEvents(ctx, "run"); return err },
		"SaveEventCursor":   func(rt *RunTx) error { return rt.SaveEventCursor(ctx, "node_run", loop.Cursor{Seq: 3}) },
		"SourceState":       func(rt *RunTx) error { _, _, err := rt.SourceState(ctx, "lp", "node_run", "file:*"); return err },
		"StartSource":       func(rt *RunTx) error { return rt.StartSource(ctx, "lp", "node_run", "ref:*", "a") },
		"UnheardAnswers":    func(rt *RunTx) error { _, err := rt.UnheardAnswers(ctx, "node_run", time.Now(), 9); return err },
		"WaitingOf":         func(rt *RunTx) error { _, err := rt.WaitingOf(ctx, "lp"); return err },
		"WaitingEvents":     func(rt *RunTx) error { _, err := rt.WaitingEvents(ctx, "lp", time.Now()); return err },
		"ForgottenRuns":     func(rt *RunTx) error { _, err := rt.ForgottenRuns(ctx, time.Now(), 9); return err },
		"LapsedWorkspaces":  func(rt *RunTx) error { _, err := rt.LapsedWorkspaces(ctx, "node_run"); return err },
		"NextDue":           func(rt *RunTx) error { _, err := rt.NextDue(ctx, "node_run", time.Now()); return err },
		"OverdueLoops":      func(rt *RunTx) error { _, err := rt.OverdueLoops(ctx, time.Now(), 9); return err },
		"LoopsSetBack":      func(rt *RunTx) error { _, err := rt.LoopsSetBack(ctx, time.Now(), 9); return err },
		"PlanNext":          func(rt *RunTx) error { return rt.PlanNext(ctx, "lp", time.Now(), time.Now(), time.Now()) },
		"PlannedRuns":       func(rt *RunTx) error { _, err := rt.PlannedRuns(ctx, "lp"); return err },
		"QueuedRun":         func(rt *RunTx) error { _, err := rt.QueuedRun(ctx, "node_run", "run"); return err },
		"NodesFor":          func(rt *RunTx) error { _, err := rt.NodesFor(ctx, time.Minute, "run"); return err },
		"Backlog":           func(rt *RunTx) error { _, err := rt.Backlog(ctx, "node_run"); return err },
		"QueuedRuns":        func(rt *RunTx) error { _, err := rt.QueuedRuns(ctx, "node_run", 9); return err },
		"Ticks":             func(rt *RunTx) error { _, err := rt.Ticks(ctx, "lp", time.Time{}, 9); return err },
		"UnfinishedLoops":   func(rt *RunTx) error { _, err := rt.UnfinishedLoops(ctx, "ws", ""); return err },
		"WorkspaceRuns":     func(rt *RunTx) error { _, err := rt.WorkspaceRuns(ctx, "ws", 0, 9); return err },
		"SaveEffect": func(rt *RunTx) error {
			return rt.SaveEffect(ctx, loop.EffectRequested, loop.Effect{RunID: "run", Seq: 1, State: loop.EffectApplying})
		},
		"SaveGitFingerprint": func(rt *RunTx) error { return rt.SaveGitFingerprint(ctx, "ws", "", "f", "[]") },
		"SaveIteration": func(rt *RunTx) error {
			return rt.SaveIteration(ctx, loop.Iteration{N: 2, Verdict: loop.VerdictIntended})
		},
		"SaveNode":       func(rt *RunTx) error { return rt.SaveNode(ctx, loop.Node{ID: "node_run", Name: "renamed"}) },
		"SaveRepository": func(rt *RunTx) error { return rt.SaveRepository(ctx, "ws", "ws_main") },
		"SaveSession":    func(rt *RunTx) error { return rt.SaveSession(ctx, "claude", loop.Session{ID: "t"}) },
		"ReleaseStep":    func(rt *RunTx) error { st := have.step; st.State = loop.StepOpen; return rt.ReleaseStep(ctx, st) },
		"SaveStep":       func(rt *RunTx) error { st := have.step; st.State = loop.StepDone; return rt.SaveStep(ctx, st) },
		"SaveTestRecord": func(rt *RunTx) error { return rt.SaveTestRecord(ctx, "tree", "gate", loop.TestRecord{}) },
		"SaveTurn":       func(rt *RunTx) error { return rt.SaveTurn(ctx, loop.Turn{N: 2}) },
		"Session":        func(rt *RunTx) error { _, err := rt.Session(ctx, "lp", "claude"); return err },
		"Seats":          func(rt *RunTx) error { _, err := rt.Seats(ctx); return err },
		"SeeNode":        func(rt *RunTx) error { return rt.SeeNode(ctx, "node_run", time.Second) },
		"SetBudget":      func(rt *RunTx) error { return rt.SetBudget(ctx, have.budget) },
		"ChangeBudget": func(rt *RunTx) error {
			_, _, err := rt.ChangeBudget(ctx, have.budget, func(loop.Amount) loop.Amount { return loop.Amount{} })
			return err
		},
		"SetHold": func(rt *RunTx) error { return rt.SetHold(ctx, loop.Hold{Subject: "codex", Reason: "limited"}) },
		"Settle":  func(rt *RunTx) error { _, err := rt.Settle(ctx, run, loop.PhaseConclude, true); return err },
		"SettleBudget": func(rt *RunTx) error {
			return rt.SettleBudget(ctx, have.scopes, func(_, _ loop.Amount, _ bool) loop.Amount { return loop.Amount{Tokens: 2} })
		},
		"Settled":      func(rt *RunTx) error { _, _, err := rt.Settled(ctx, ended); return err },
		"SnapshotRun":  func(rt *RunTx) error { _, err := rt.SnapshotRun(ctx, "ws", "ref", true); return err },
		"Standings":    func(rt *RunTx) error { _, err := rt.Standings(ctx, have.scopes, nil, time.Now()); return err },
		"SetSwitch":    func(rt *RunTx) error { _, err := rt.SetSwitch(ctx, loop.Actor{Who: "ann"}, "ws", "deploy"); return err },
		"ClearSwitch":  func(rt *RunTx) error { _, err := rt.ClearSwitch(ctx, "ws"); return err },
		"Switches":     func(rt *RunTx) error { _, err := rt.Switches(ctx, "ws"); return err },
		"WorkspaceIDs": func(rt *RunTx) error { _, err := rt.WorkspaceIDs(ctx); return err },
		"Steps":        func(rt *RunTx) error { _, err := rt.Steps(ctx, "lp"); return err },
		"TakeSeat":     func(rt *RunTx) error { return rt.TakeSeat(ctx, seat) },
		"TestRecord":   func(rt *RunTx) error { _, err := rt.TestRecord(ctx, "tree", "gate"); return err },
		"StepsOfTask":  func(rt *RunTx) error { _, err := rt.StepsOfTask(ctx, "ws", "t1"); return err },
		"StepTurns":    func(rt *RunTx) error { _, err := rt.StepTurns(ctx, "loop", "step"); return err },
		"Turns":        func(rt *RunTx) error { _, err := rt.Turns(ctx, "run"); return err },
		"Use":          func(rt *RunTx) error { return rt.Use(ctx, loop.Amount{Tokens: 1}) },
		"Undecided":    func(rt *RunTx) error { _, _, err := rt.Undecided(ctx, "lp", "land"); return err },
		"VoidApproval": func(rt *RunTx) error { _, err := rt.VoidApproval(ctx, "ap", "old"); return err },
		"VoidProposals": func(rt *RunTx) error {
			_, err := rt.VoidProposals(ctx, "lp", []string{"st"}, "", "old")
			return err
		},
		"Waiting":     func(rt *RunTx) error { _, err := rt.Waiting(ctx, "ws", true); return err },
		"WorkspaceAt": func(rt *RunTx) error { _, err := rt.WorkspaceAt(ctx, "bare_run"); return err },
		"Workspaces":  func(rt *RunTx) error { _, err := rt.Workspaces(ctx, "n"); return err },
	}
	for method := range reflect.TypeFor[*RunTx]().Methods() {
		if method.Type.NumIn() > 1 && methods[method.Name] == nil {
			t.Errorf("%s is not tried here", method.Name)
		}
	}
	undone := errors.New("undone")
	for name, call := range methods {
		announces(t, s, run, name, call)
		asked := false
		for _, nulls := range []bool{false, true} {
			for n, struck := 1, true; struck; n++ {
				err := s.Update(ctx, func(tx *Tx) error {
					rt, err := tx.Enter(ctx, run, loop.PhaseAct)
					if err != nil {
						return err
					}
					rt.appended = []line{{"run-log.md", "line"}}
					f := &failing{querier: tx.q, in: n, nulls: nulls}
					tx.q = f
					if err = call(rt); err == nil {
						err = rt.flush(ctx) // What it left to the end.
					}
					if struck = f.struck; struck && (err == nil || !nulls && !errors.Is(err, context.Canceled)) {
						t.Errorf("%s = %v though its statement %d failed (no answer: %v)", name, err, n, !nulls)
					}
					asked = asked || struck
					return undone
				})
				if !errors.Is(err, undone) {
					t.Fatal(err)
				}
			}
		}
		if !asked {
			t.Errorf("%s asks the database nothing", name)
		}
	}
}

// A holder that does not know what its transaction leaves in the row cannot find
// out later whether it was committed.
func TestATransactionWhoseCommitCouldNotBeLookedUpIsNotCommitted(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, Options{Database: filepath.Join(t.TempDir(), "p.db"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	run := filled(t, s).run
	err = s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.Enter(ctx, run, loop.PhaseAct); err != nil {
			return err
		}
		c := commit{run: run}
		if err := c.recordLease(ctx, tx); err != nil || !c.known || c.lease == 0 {
			t.Errorf("note = %v of %+v", err, c)
		}
		again := commit{run: run, before: c.lease}
		if err := again.recordLease(ctx, tx); err != nil || again.lease != c.lease+1 {
			t.Errorf("a second transaction in the same millisecond leaves %d: %v, want another than %d", again.lease, err, c.lease)
		}
		fresh := *tx
		fresh.extended = false
		other := commit{run: run}
		if err := other.recordLease(ctx, &fresh); err != nil || other.known {
			t.Errorf("what leaves the lease alone = %+v, %v", other, err)
		}
		for name, do := range map[string]func(tx *Tx, c *commit) error{
			"note":            func(tx *Tx, c *commit) error { return c.recordLease(ctx, tx) },
			"wasMade":         func(tx *Tx, c *commit) error { c.unknown = true; _, err := c.wasCommitted(ctx, tx); return err },
			"a first wasMade": func(tx *Tx, c *commit) error { c.before = 0; _, err := c.wasCommitted(ctx, tx); return err },
		} {
			for n, struck := 1, true; struck; n++ {
				f := &failing{querier: tx.q, in: n}
				broken := *tx
				broken.q = f
				c := commit{run: run, before: again.lease, known: true}
				if err := do(&broken, &c); f.struck && (!errors.Is(err, context.Canceled) || name == "note" && c.known) {
					t.Errorf("%s = %v of %+v though its statement %d failed", name, err, c, n)
				}
				struck = f.struck
			}
		}
		lost := commit{run: run, unknown: true}
		lost.run.Fence++
		if made, err := lost.wasCommitted(ctx, tx); made || !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("after another took the run: %v, %v, want ErrLeaseLost", made, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestARowThatIsNotUnderstoodIsAnErrorAndNeverAnEmptyOne(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, Options{Database: filepath.Join(t.TempDir(), "p.db"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	have := filled(t, s)
	undone := errors.New("undone")
	for column, read := range map[string]func(*RunTx) error{
		"approvals.body":      func(rt *RunTx) error { _, err := rt.Approval(ctx, "ap"); return err },
		"budgets.body":        func(rt *RunTx) error { _, err := rt.Budgets(ctx); return err },
		"definitions.body":    func(rt *RunTx) error { _, err := rt.Definition(ctx, have.d.Digest()); return err },
		"runs.overrides":      func(rt *RunTx) error { _, err := rt.Run(ctx, "run"); return err },
		"runs.usage":          func(rt *RunTx) error { _, err := rt.Run(ctx, "run"); return err },
		"runs.cost":           func(rt *RunTx) error { _, err := rt.Run(ctx, "run"); return err },
		"runs.holder":         func(rt *RunTx) error { _, err := rt.Run(ctx, "run"); return err },
		"iterations.body":     func(rt *RunTx) error { _, err := rt.Iterations(ctx, "run"); return err },
		"turns.body":          func(rt *RunTx) error { _, err := rt.Turns(ctx, "run"); return err },
		"changes.body":        func(rt *RunTx) error { _, err := rt.Pending(ctx, "lp", ""); return err },
		"effects.args":        func(rt *RunTx) error { _, err := rt.Effects(ctx, "run"); return err },
		"effects.result":      func(rt *RunTx) error { _, err := rt.Effects(ctx, "run"); return err },
		"agents.body":         func(rt *RunTx) error { _, err := rt.Agent(ctx, "ada"); return err },
		"sessions.body":       func(rt *RunTx) error { _, err := rt.Session(ctx, "lp", "claude"); return err },
		"test_counts.body":    func(rt *RunTx) error { _, err := rt.TestRecord(ctx, "tree", "gate"); return err },
		"messages.body":       func(rt *RunTx) error { _, err := rt.Undelivered(ctx, "ws", "ci", 9); return err },
		"protocol_rows.body":  func(rt *RunTx) error { _, err := rt.Row(ctx, "ws", "tasks", "t1"); return err },
		"memories.body":       func(rt *RunTx) error { _, err := rt.Memory(ctx, "ws", 1); return err },
		"reservations.amount": func(rt *RunTx) error { _, _, _, err := rt.Reserved(ctx); return err },
		"reservations.used":   func(rt *RunTx) error { _, _, _, err := rt.Reserved(ctx); return err },
		"reservations.scopes": func(rt *RunTx) error { _, _, _, err := rt.Reserved(ctx); return err },
	} {
		err := s.Update(ctx, func(tx *Tx) error {
			rt, err := tx.Enter(ctx, have.run, loop.PhaseAct)
			if err == nil {
				err = read(rt)
			}
			if err != nil {
				return err
			}
			table, name, _ := strings.Cut(column, ".")
			if _, err := tx.exec(ctx, "UPDATE "+table+" SET "+name+" = $1", "{"); err != nil {
				return err
			}
			if err := read(rt); err == nil || !strings.Contains(err.Error(), "decode ") || strings.Contains(err.Error(), "decode :") || strings.Contains(err.Error(), "%!") {
				t.Errorf("%s: half a text was read with %v, want an error that says of what", column, err)
			}
			return undone
		})
		if !errors.Is(err, undone) {
			t.Fatalf("%s: %v", column, err)
		}
	}
}
