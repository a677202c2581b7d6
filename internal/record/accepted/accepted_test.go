package accepted_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func mustHave(t *testing.T, f *accepted.Folder, i accepted.Item, want bool) {
	t.Helper()
	if got, err := f.Has(i); err != nil || got != want {
		t.Errorf("Has(%s) = %v, %v, want %v", i.What(), got, err, want)
	}
}

func TestWhatIsAcceptedIsAFileOfTheHomeThatAPersonCanReadAndRemove(t *testing.T) {
	home := t.TempDir()
	line, _ := accepted.Channel(loop.Channel{Name: "c", Kind: loop.ChannelCommand, Target: "touch x"})
	if err := accepted.In(home).Accept(line, line); err != nil {
		t.Fatal(err)
	}
	mustHave(t, accepted.In(home), line, true)
	if err := accepted.In(home).Check(line); err != nil {
		t.Error(err)
	}
	all, err := filepath.Glob(filepath.Join(home, "accepted", "*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("files %v, %v, want one", all, err)
	}
	if text, err := os.ReadFile(all[0]); err != nil || !strings.Contains(string(text), "touch x") {
		t.Errorf("the file says %s, %v", text, err)
	}
	if info, err := os.Stat(all[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if err := os.Remove(all[0]); err != nil {
		t.Fatal(err)
	}
	err = accepted.In(home).Check(line)
	f, ok := errors.AsType[*loop.Fault](err)
	if !errors.Is(err, loop.ErrNotAcceptedHere) || !ok || !strings.Contains(f.Why, "touch x") || !strings.Contains(f.Advice().String(), "pawl nodes accept "+line.ID()) {
		t.Errorf("Check = %v, want what it is about, and the fix", err)
	}
}

func TestAStoreThatNoOtherMachineSharesAsksNobody(t *testing.T) {
	var alone *accepted.Folder
	line, asks := accepted.Channel(loop.Channel{Name: "c", Kind: loop.ChannelCommand, Target: "touch x"})
	if !asks {
		t.Error("a command asks for nothing")
	}
	mustHave(t, alone, line, true)
	if err := errors.Join(alone.Check(line), alone.Accept(line)); err != nil {
		t.Error(err)
	}
}

// A folder that cannot be read accepts nothing.
func TestWhatCannotBeReadIsNotAccepted(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := os.WriteFile(home, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	line, _ := accepted.Channel(loop.Channel{Name: "c", Kind: loop.ChannelCommand, Target: "touch x"})
	if got, err := accepted.In(home).Has(line); got || err == nil {
		t.Errorf("Has = %v, %v, want an error", got, err)
	}
	if err := accepted.In(home).Accept(line); err == nil {
		t.Error("it was accepted")
	}
}

// Nothing but exactly what was accepted counts: another line, secret, program, address or key
// is another thing.
func TestAnythingElseThanWhatWasAcceptedIsNot(t *testing.T) {
	home := t.TempDir()
	word := rapid.SampledFrom([]string{"", "a", "b", "a b", "a,b"})
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string { return word.Draw(t, label) }
		channel := func(n string) loop.Channel {
			return loop.Channel{Name: "c", Kind: loop.ChannelNtfy, Target: draw("target" + n), SecretEnv: draw("env" + n), SecretFile: draw("file" + n)}
		}
		agent := func(n string) loop.Agent {
			return loop.Agent{Handle: "a", Driver: "api", Command: draw("command" + n), Provider: draw("provider" + n), BaseURL: draw("url" + n), Auth: loop.Auth(rapid.SampledFrom([]string{"", "lend"}).Draw(t, "auth"+n))}
		}
		definition := func(n string) loop.Definition {
			return loop.Definition{Name: "l", Goal: draw("goal" + n), Sandbox: draw("sandbox" + n), Setup: draw("setup" + n), Sense: draw("sense" + n)}
		}
		one, other := channel("1"), channel("2")
		first, _ := accepted.Channel(one)
		second, _ := accepted.Channel(other)
		if (first.ID() == second.ID()) != (one == other) {
			t.Errorf("%+v and %+v have the ids %s and %s", one, other, first.ID(), second.ID())
		}
		a, b := agent("1"), agent("2")
		first, _ = accepted.Agent(a)
		second, _ = accepted.Agent(b)
		if (first.ID() == second.ID()) != reflect.DeepEqual(a, b) {
			t.Errorf("%+v and %+v have the ids %s and %s", a, b, first.ID(), second.ID())
		}
		d, e := definition("1"), definition("2")
		first, asks := accepted.Definition(d)
		second, _ = accepted.Definition(e)
		if (first.ID() == second.ID()) != reflect.DeepEqual(d, e) {
			t.Errorf("%+v and %+v have the ids %s and %s", d, e, first.ID(), second.ID())
		}
		if want := d.Sandbox != "" || d.Setup != ""; asks != want {
			t.Errorf("%+v asks: %v, want %v", d, asks, want)
		}
		if err := accepted.In(home).Accept(first); err != nil {
			t.Error(err)
		}
		if known, err := accepted.In(home).Has(first); !known || err != nil {
			t.Errorf("%s: %v, %v", first.ID(), known, err)
		}
	})
}

// Every field that a row may have was decided about: either it has to be accepted, or it
// says why a row may have it.
func TestEveryFieldOfARowIsAskedForOrConfined(t *testing.T) {
	const (
		words    = "words that an agent reads in its sandbox"
		within   = "it chooses what happens inside of the sandbox"
		narrower = "it only takes away"
		money    = "budgets of people hold it"
		timing   = "it says when"
	)
	for name, c := range map[string]struct {
		of       any
		asks     []string
		confined map[string]string
		ask      func(value reflect.Value) bool
	}{
		"definition": {
			of:   loop.Definition{},
			asks: []string{"Sandbox", "Env", "Setup", "Network", "MCP", "AgentCommand", "BaseURL", "ModelTools"},
			confined: map[string]string{
				"Name": words, "Pattern": words, "Goal": words, "GoalBy": words, "Spec": words, "Rubric": words, "Claims": words, "Escalation": words, "Instructions": words, "PermissionMode": within, "Effort": within,
				"Protocol": "boot is asked for, as it pushes; any other keeps a memory", "Tier": "with autoland it is asked for; else a person lands", "Autoland": "with tier L3 it is asked for",
				"Scope": within, "Protect": narrower, "AllowExec": within, "AnyNames": within, "Verify": within, "Guard": within, "Flaky": within, "Gates": within, "Canary": within, "LoopType": within, "Denies": narrower,
				"HumanGate": "a person answers", "LandVia": "a person answers", "Sense": within, "KillSwitch": narrower, "Base": "a branch of the clone, which is read",
				"Agent": "a driver, or an entry of the roster, which is asked for", "Model": money, "PawlTools": "what its tools may is decided by the verbs", "Provider": "its key goes to its own address", "Auth": "lend is asked for", "Resume": within,
				"BudgetUSDDay": money, "BudgetTokensDay": money, "BudgetTokens": money, "MaxIterations": money, "MaxItems": money, "MaxStepTimeout": money, "MaxWallClock": money, "MaxDisk": money, "Life": money,
				"GiveUpAfter": timing, "GiveUp": timing, "OnBlocked": timing, "OnFailure": timing, "Asks": "a person answers", "RetryBlockedAfter": timing, "ErrorPolicy": timing, "StopLines": narrower,
				"CommitState": "only files of the memory are committed", "Cadence": timing, "Timezone": timing, "CatchUp": timing, "StartDeadline": timing, "Jitter": timing, "On": "commands run in the sandbox", "Priority": timing, "DeferBound": timing,
				"NodeLabels": "it chooses among the nodes with the workspace", "Group": timing, "History": narrower, "Capabilities": within, "Tasks": words,
			},
			ask: func(v reflect.Value) bool {
				_, asks := accepted.Definition(v.Interface().(loop.Definition))
				return asks
			},
		},
		"agent": {
			of:   loop.Agent{},
			asks: []string{"Command", "BaseURL"},
			confined: map[string]string{
				"ID": words, "Handle": words, "Role": words, "Board": words, "Skills": words, "Driver": "each driver is an agent by itself", "Model": money, "Provider": "its key goes to its own address", "Auth": "lend is asked for",
				"MaxRuns": narrower, "AccountMaxRuns": narrower, "Created": words, "Updated": words,
			},
			ask: func(v reflect.Value) bool { _, asks := accepted.Agent(v.Interface().(loop.Agent)); return asks },
		},
		"channel": {
			of:   loop.Channel{},
			asks: []string{"SecretEnv", "SecretFile"},
			confined: map[string]string{
				"Name": words, "Kind": "command is asked for with its line", "Target": "a command's is asked for; else an address that gets the notice", "Only": narrower, "Click": "a link in a notice", "Node": "it chooses a node", "By": words, "Created": words,
			},
			ask: func(v reflect.Value) bool { _, asks := accepted.Channel(v.Interface().(loop.Channel)); return asks },
		},
	} {
		of := reflect.TypeOf(c.of)
		for i := range of.NumField() {
			field := of.Field(i).Name
			value := reflect.New(of).Elem()
			fill(value.Field(i))
			want := slices.Contains(c.asks, field)
			switch {
			case !want && c.confined[field] == "":
				t.Errorf("%s: nobody has decided whether a row may have %s: ask for it in item.go, or say here why not", name, field)
			case c.ask(value) != want:
				t.Errorf("%s with %s asks: %v, want %v", name, field, !want, want)
			}
		}
	}
}

// fill gives a field a value that is not zero.
func fill(v reflect.Value) {
	switch kind := v.Kind(); {
	case kind == reflect.String:
		v.SetString("x")
	case kind == reflect.Bool:
		v.SetBool(true)
	case kind == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case v.CanInt():
		v.SetInt(1)
	}
}

func TestWhatOnlySomeValuesOfAFieldAskFor(t *testing.T) {
	for name, c := range map[string]struct {
		d    loop.Definition
		want bool
	}{
		"full":             {loop.Definition{Sandbox: "full"}, false},
		"none":             {loop.Definition{Sandbox: "none"}, true},
		"no set-up":        {loop.Definition{Setup: "none"}, false},
		"a login":          {loop.Definition{Auth: loop.AuthLend}, true},
		"a key":            {loop.Definition{Auth: loop.AuthInject}, false},
		"boot":             {loop.Definition{Protocol: loop.ProtocolBoot}, true},
		"L3":               {loop.Definition{Tier: loop.TierUnattended}, false},
		"L3 with autoland": {loop.Definition{Tier: loop.TierUnattended, Autoland: []string{"docs"}}, true},
		"L2 with autoland": {loop.Definition{Tier: loop.TierAssisted, Autoland: []string{"docs"}}, false},
	} {
		if _, asks := accepted.Definition(c.d); asks != c.want {
			t.Errorf("%s asks: %v, want %v", name, asks, c.want)
		}
	}
	if _, asks := accepted.Agent(loop.Agent{Driver: "claude", Auth: loop.AuthLend}); !asks {
		t.Error("an agent that lends a login asks for nothing")
	}
	if _, asks := accepted.Channel(loop.Channel{Kind: loop.ChannelCommand, Target: "x"}); !asks {
		t.Error("a command asks for nothing")
	}
}
