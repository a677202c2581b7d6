package loop

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestACommandIsWrittenForTheShell(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Command{
		"pawl ls":                                    PawlCommand("ls"),
		"pawl recover restore run_1 --branch b":      PawlCommand("recover restore", "run_1").WithFlag("branch", "b"),
		"pawl show deps#3":                           PawlCommand("show", "deps#3"),
		"pawl rm 'two words'":                        PawlCommand("rm", "two words"),
		`pawl rm 'it'\''s'`:                          PawlCommand("rm", "it's"),
		"pawl rm ''":                                 PawlCommand("rm", ""),
		"pawl rm '#3'":                               PawlCommand("rm", "#3"),
		"pawl rm '$HOME'":                            PawlCommand("rm", "$HOME"),
		"pawl rm --yes -- -v":                        PawlCommand("rm", "-v").WithFlag("yes"),
		"pawl run deps --request=-v":                 PawlCommand("run", "deps").WithFlag("request", "-v"),
		`pawl run deps --request "what you decided"`: PawlCommand("run", "deps").WithFlag("request", "what you decided").WithBlanks("what you decided"),
		"pawl prices update --file F":                PawlCommand("prices update").WithFlag("file", "F").WithBlanks("F"),
		"git checkout -b rescue refs/pawl/1":         HostCommand("git", "checkout", "-b", "rescue", "refs/pawl/1"),
		"git commit -m 'a b'":                        HostCommand("git", "commit", "-m", "a b"),
	} {
		if got := c.String(); got != want {
			t.Errorf("%#v is written %q, want %q", c, got, want)
		}
	}
}

func TestTheShellReadsEveryArgumentAsItIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aZ0 -'\"\\$`#~*?[]{}();&|<>!=%\n\té"))).Draw(t, "text")
		got, err := exec.Command("/bin/sh", "-c", HostCommand("printf", "%s.", "--", text).String()).Output()
		if err != nil || !strings.HasSuffix(string(got), text+".") {
			t.Fatalf("%s: %q, %v; want %q", HostCommand("printf", "%s.", "--", text), got, err, text)
		}
	})
}

func TestAnAdvicePutsItsCommandsIntoTheirPlaces(t *testing.T) {
	t.Parallel()
	show, rm := PawlCommand("show", "deps#3"), PawlCommand("rm", "deps")
	for want, a := range map[string]Advice{
		"":                       {},
		"find . -exec cat {1} +": Advise("find . -exec cat {1} +"), // No command: the text stays as it is.
		"pawl rm deps":           Advise("{1}", rm),
		"look: pawl show deps#3; or forget it: pawl rm deps": Advise("look: {1}; or forget it: {2}", show, rm),
		"`pawl show deps#3` says why":                        Advise("{1} says why", show),
		"`pawl rm deps`, or `pawl show deps#3`":              Advise("{2}, or {1}", show, rm),
		"{}, {3}, {0} and `pawl rm deps`":                    Advise("{}, {3}, {0} and {1}", rm),
		"one\npawl rm deps\nthree":                           Advise("one\n{1}\nthree", rm),
		"see `pawl show deps#3`; then: pawl rm deps":         Advise("see {1}", show).Then("; then: ", Advise("{1}", rm)),
	} {
		if got := a.String(); got != want {
			t.Errorf("%#v is %q, want %q", a, got, want)
		}
	}
}

func TestAdvicesFollowEachOther(t *testing.T) {
	t.Parallel()
	a, b := Advise("first {1}", PawlCommand("ls")), Advise("then {2} or {1}", PawlCommand("runs"), PawlCommand("show", "x"))
	got := a.Then("; ", b)
	want := Advice{"first {1}; then {3} or {2}", []Command{PawlCommand("ls"), PawlCommand("runs"), PawlCommand("show", "x")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Advice{a, a}, []Advice{a.Then("; ", Advice{}), Advice{}.Then("; ", a)}); diff != "" {
		t.Errorf("nothing was added (-want +got)\n%s", diff)
	}
}

func TestASurfaceShowsCommandsInItsOwnWay(t *testing.T) {
	t.Parallel()
	a := Advise("{1} says why; answer it: {2}", PawlCommand("why", "x"), PawlCommand("approve", "x"))
	var alone []bool
	got := a.Render(func(c Command, by bool) string {
		alone = append(alone, by)
		return "[" + c.Verb + "]"
	})
	if got != "[why] says why; answer it: [approve]" || !slices.Equal(alone, []bool{false, true}) {
		t.Errorf("%q, alone %v", got, alone)
	}
	body, err := json.Marshal(PawlCommand("prices update").WithFlag("file", "F").WithBlanks("F"))
	if want := `{"verb":"prices update","flags":[{"name":"file","value":"F"}],"blanks":["F"]}`; err != nil || string(body) != want {
		t.Errorf("%s, %v; want %s", body, err, want)
	}
}

func TestAShellReadsOneWord(t *testing.T) {
	for in, want := range map[string]string{"/tmp/x": "/tmp/x", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$HOME": "'$HOME'"} {
		if got := QuoteWord(in); got != want {
			t.Errorf("QuoteWord(%q) = %s, want %s", in, got, want)
		}
	}
}
