package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

const (
	loginName = ".signed/login.json"
	loginForm = `{"accessToken":"tok-%s-access-0123456789","refreshToken":"tok-%s-refresh-0123456789","expiresAt":%d}`
)

func login(name string, ends time.Time) string {
	return fmt.Sprintf(loginForm, name, name, ends.UnixMilli())
}

// signed is a driver that signs in with a login of the user's.
type signed struct{ caller }

func (signed) Profile() agent.Profile {
	return agent.Profile{
		Name: "signed", Program: "sh", Home: true, Sessions: []string{".chats"}, Login: agent.Login{Files: []string{loginName}},
	}
}

// lender is a rig whose user has a login.
func lender(t *testing.T) (p *meteredRig, file string) {
	t.Helper()
	return lenderOn(t, databases["sqlite"](t))
}

func lenderOn(t *testing.T, database string) (p *meteredRig, file string) {
	t.Helper()
	p = newMeteredRig(t, database, says200(1, 1))
	file = p.signsIn()
	p.engine = engine.New(p.deps)
	return p, file
}

// signsIn gives the user a login, which is in the file, and a driver that signs in with it.
func (p *meteredRig) signsIn() (file string) {
	p.t.Helper()
	user := p.t.TempDir()
	file = filepath.Join(user, loginName)
	gittest.WriteFile(p.t, file, login("first", time.Now().Add(time.Hour)))
	p.deps.Environ = append([]string{"HOME=" + user}, p.deps.Environ...)
	p.deps.Drivers["signed"] = signed{caller{p}}
	return file
}

func (p *meteredRig) signs(name string, resume bool) engine.Target {
	return p.calls(name, func(d *loop.Definition) {
		d.Agent, d.BaseURL, d.Model, d.Auth, d.Resume = "signed", "", "", loop.AuthLend, resume
	})
}

func TestWhatIsInALentLoginIsWrittenNowhereAlsoWhenItIsRenewed(t *testing.T) {
	p, file := lender(t)
	second := login("second", time.Now().Add(2*time.Hour))
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		had, err := r.Home.Read(loginName)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(r.Output, "I am %s\n", had)
		r.OnEvent(agent.Event{Kind: agent.EventText, Text: "still " + string(had)})
		gittest.WriteFile(t, filepath.Join(r.Home.Path(), loginName), second)
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
		return agent.Result{
			Ended: proc.Exited, Claims: true, Took: time.Millisecond, Usage: loop.Usage{Input: 5, Source: loop.UsageReported},
			Message: "```json\n" + `{"outcome":"done","summary":"used tok-second-access-0123456789 and tok-first-refresh-0123456789"}` + "\n```",
		}, nil
	}
	run := p.run(p.signs("a", false), engine.Firing{})
	if run.Outcome != loop.OutcomeProposed || run.Auth != loop.AuthLend {
		t.Fatalf("run = %s %s %q, auth %q", run.Outcome, run.Reason, run.Detail, run.Auth)
	}
	if got := read(t, file); strings.Contains(got, "second") {
		t.Errorf("the user's login = %s, and nobody saw that it was renewed", got)
	}
	its := p.iterations(run.ID)
	everything := p.told(run.ID) + run.Summary + its[0].Report + its[0].Acted + gittest.Run(t, p.root, "log", "--all", "--format=%B")
	if strings.Contains(everything, "tok-") || !strings.Contains(everything, "[redacted:") {
		t.Errorf("a token is written: %s", everything)
	}
}

func TestATokenOfALentLoginInAFileIsRefused(t *testing.T) {
	p, _ := lender(t)
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "tok-first-access-0123456789\n")
		return says(t, r, `{"outcome":"done"}`)
	}
	run := p.run(p.signs("a", false), engine.Firing{})
	if run.Outcome != loop.OutcomeRefused || run.Reason != loop.ReasonSecret {
		t.Errorf("run = %s %s %q, want refused", run.Outcome, run.Reason, run.Detail)
	}
}

func TestALoginThatAnotherRunHasBlocksTheRunAndCountsAsNoFailure(t *testing.T) {
	p, _ := lender(t)
	var second loop.Run
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		if second.ID == "" {
			second = p.run(apart(p.signs("b", false)), engine.Firing{})
		}
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
		return says(t, r, `{"outcome":"done"}`)
	}
	if run := p.run(apart(p.signs("a", false)), engine.Firing{}); run.Outcome != loop.OutcomeProposed {
		t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	p.wantHeldBack(second, loop.FailureHeld, "is held by process")
	if its := p.iterations(second.ID); len(its) != 0 {
		t.Errorf("iterations = %+v, want none", its)
	}
}

func TestALoginThatIsNotUsedIsShownToTheUser(t *testing.T) {
	p, file := lender(t)
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, file, login("users", time.Now().Add(3*time.Hour)))
		gittest.WriteFile(t, filepath.Join(r.Home.Path(), loginName), login("programs", time.Now().Add(2*time.Hour)))
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
		return says(t, r, `{"outcome":"done"}`)
	}
	run := p.run(p.signs("a", false), engine.Firing{})
	told := p.told(run.ID)
	if got := p.keptLogin(told); !strings.Contains(got, "tok-programs-access") {
		t.Errorf("nobody is told how to get at the other login: %q, %s", got, told)
	}
}

func TestAHomeThatIsKeptHoldsConversationsAndNoLogin(t *testing.T) {
	p, _ := lender(t)
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(r.Home.Path(), ".chats/one"), "what was said")
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
		return says(t, r, `{"outcome":"done"}`)
	}
	if run := p.run(p.signs("a", true), engine.Firing{}); run.Outcome != loop.OutcomeProposed {
		t.Fatalf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	home := filepath.Join(p.home, "sessions/lp_a/signed/home")
	if got := read(t, filepath.Join(home, ".chats/one")); got != "what was said" {
		t.Errorf("the conversation = %q", got)
	}
	if got := read(t, filepath.Join(home, loginName)); got != "" {
		t.Errorf("a login lies in a home that nobody uses: %s", got)
	}
}

// keptLogin is the login that an account of a run says is kept; empty: none.
func (p *meteredRig) keptLogin(told string) string {
	p.t.Helper()
	_, after, found := strings.Cut(told, "is kept as ")
	id, _, _ := strings.Cut(after, " ")
	if !found {
		return ""
	}
	var kept struct {
		Login []byte `json:"login"`
	}
	if err := json.Unmarshal([]byte(read(p.t, filepath.Join(p.home, "logins", id+".kept"))), &kept); err != nil {
		p.t.Fatal(err)
	}
	return string(kept.Login)
}

func TestALimitThatIsSaidInWordsHoldsTheAccountUntilItsReset(t *testing.T) {
	p, _ := lender(t)
	p.agent = func(context.Context, agent.Request) (agent.Result, error) {
		return ended(&loop.Failure{Class: loop.FailureRateLimit, Text: "You've hit your session limit · resets in 2 hours"})
	}
	before := p.now()
	run := p.run(p.signs("a", false), engine.Firing{})
	holds := p.holds()
	if run.Outcome != loop.OutcomeBlocked || len(holds) != 1 {
		t.Fatalf("run = %s %s %q, holds %+v", run.Outcome, run.Reason, run.Detail, holds)
	}
	for _, h := range holds {
		if wait := h.Until.Sub(before); wait < 2*time.Hour || wait > 3*time.Hour {
			t.Errorf("the account rests for %s, want 2 hours and a little", wait)
		}
	}
}

func TestATokenOfTheEnvironmentIsInsideAndHiddenInEveryAccount(t *testing.T) {
	p, _ := lender(t)
	const token = "tok-of-the-environment-0123456789"
	p.deps.Environ = append(p.deps.Environ, "SIGNED_TOKEN="+token)
	p.deps.Drivers["signed"] = tokened{signed{caller{p}}}
	p.engine = engine.New(p.deps)
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		if !slices.Contains(r.Env, "SIGNED_TOKEN="+token) {
			t.Error("the program does not have it")
		}
		_, _ = fmt.Fprintf(r.Output, "I am %s\n", token)
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
		return says(t, r, `{"outcome":"done"}`)
	}
	run := p.run(p.signs("a", false), engine.Firing{})
	if told := p.told(run.ID); run.Auth != loop.AuthLend || run.Outcome != loop.OutcomeProposed || strings.Contains(told, token) || !strings.Contains(told, "[redacted:") {
		t.Errorf("run = %s %s %q, %s\n%s", run.Outcome, run.Reason, run.Detail, run.Auth, told)
	}
}

// tokened also takes a token of the environment.
type tokened struct{ signed }

func (d tokened) Profile() agent.Profile {
	p := d.signed.Profile()
	p.Login.Variables = []string{"SIGNED_TOKEN"}
	return p
}

// What a turn made of its login is not lost with a disk that fails: its note stays for
// the next run.
func TestALoginThatCannotBeGivenBackIsSaidAndSettledByTheNextRun(t *testing.T) {
	p, _ := lender(t)
	second := login("second", time.Now().Add(2*time.Hour))
	renews := true
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		if renews {
			gittest.WriteFile(t, filepath.Join(r.Home.Path(), loginName), second)
			if err := os.Rename(filepath.Join(p.home, "logins"), filepath.Join(p.home, "away")); err != nil {
				t.Error(err)
			}
			gittest.WriteFile(t, filepath.Join(p.home, "logins"), "")
		}
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
		return says(t, r, `{"outcome":"done"}`)
	}
	run := p.run(p.signs("a", false), engine.Firing{})
	if told := p.told(run.ID); !strings.Contains(told, "login: ") || strings.Contains(told, "tok-") {
		t.Errorf("it says %s", told)
	}
	if err := errors.Join(os.Remove(filepath.Join(p.home, "logins")), os.Rename(filepath.Join(p.home, "away"), filepath.Join(p.home, "logins"))); err != nil {
		t.Fatal(err)
	}
	renews = false
	if next := p.run(p.signs("b", false), engine.Firing{}); next.Outcome != loop.OutcomeProposed {
		t.Errorf("the next run = %s %s %q", next.Outcome, next.Reason, next.Detail)
	}
}

// Nobody else can give it back: no other process finds the run.
func TestALoginOfARunWhoseStoreIsGoneIsKept(t *testing.T) {
	place := storetest.SQLite(t)
	p, file := lenderOn(t, place)
	p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, file, login("users", time.Now().Add(3*time.Hour)))
		gittest.WriteFile(t, filepath.Join(r.Home.Path(), loginName), login("programs", time.Now().Add(2*time.Hour)))
		gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
		return says(t, r, `{"outcome":"done"}`)
	}
	goes := new(fault.Plan).Do("engine.gather.before", 1, func(context.Context) error { return os.Remove(place) })
	if _, err := p.engine.Run(fault.With(t.Context(), goes), p.signs("a", false), engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrStoreGone) {
		t.Fatalf("Run = %v, want that the store is gone", err)
	}
	kept, err := filepath.Glob(filepath.Join(p.home, "logins", "*.kept"))
	if err != nil || len(kept) != 1 {
		t.Errorf("logins that are kept: %q, %v, want that of the program", kept, err)
	}
}
