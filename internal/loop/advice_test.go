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
		"pawl ls":                                    Pawl("ls"),
		"pawl recover restore run_1 --branch b":      Pawl("recover restore", "run_1").With("branch", "b"),
		"pawl show deps#3":                           Pawl("show", "deps#3"),
		"pawl rm 'two words'":                        Pawl("rm", "two words"),
		`pawl rm 'it'\''s'`:                          Pawl("rm", "it's"),
		"pawl rm ''":                                 Pawl("rm", ""),
		"pawl rm '#3'":                               Pawl("rm", "#3"),
		"pawl rm '$HOME'":                            Pawl("rm", "$HOME"),
		"pawl rm --yes -- -v":                        Pawl("rm", "-v").With("yes"),
		"pawl run deps --request=-v":                 Pawl("run", "deps").With("request", "-v"),
		`pawl run deps --request "what you decided"`: Pawl("run", "deps").With("request", "what you decided").Blank("what you decided"),
		"pawl prices update --file F":                Pawl("prices update").With("file", "F").Blank("F"),
		"git checkout -b rescue refs/pawl/1":         Host("git", "checkout", "-b", "rescue", "refs/pawl/1"),
		"git commit -m 'a b'":                        Host("git", "commit", "-m", "a b"),
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
		got, err := exec.Command("/bin/sh", "-c", Host("printf", "%s.", "--", text).String()).Output()
		if err != nil || !strings.HasSuffix(string(got), text+".") {
			t.Fatalf("%s: %q, %v; want %q", Host("printf", "%s.", "--", text), got, err, text)
		}
	})
}

func TestAnAdvicePutsItsCommandsIntoTheirPlaces(t *testing.T) {
	t.Parallel()
	show, rm := Pawl("show", "deps#3"), Pawl("rm", "deps")
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
	a, b := Advise("first {1}", Pawl("ls")), Advise("then {2} or {1}", Pawl("runs"), Pawl("show", "x"))
	got := a.Then("; ", b)
	want := Advice{"first {1}; then {3} or {2}", []Command{Pawl("ls"), Pawl("runs"), Pawl("show", "x")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Advice{a, a}, []Advice{a.Then("; ", Advice{}), Advice{}.Then("; ", a)}); diff != "" {
		t.Errorf("nothing was added (-want +got)\n%s", diff)
	}
}

func TestASurfaceShowsCommandsInItsOwnWay(t *testing.T) {
	t.Parallel()
	a := Advise("{1} says why; answer it: {2}", Pawl("why", "x"), Pawl("approve", "x"))
	var alone []bool
	got := a.Render(func(c Command, by bool) string {
		alone = append(alone, by)
		return "[" + c.Verb + "]"
	})
	if got != "[why] says why; answer it: [approve]" || !slices.Equal(alone, []bool{false, true}) {
		t.Errorf("%q, alone %v", got, alone)
	}
	body, err := json.Marshal(Pawl("prices update").With("file", "F").Blank("F"))
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
