//go:build unix

package gate_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/gate"
)

// plain returns what people read of some events.
func plain(tb testing.TB, events string) string {
	tb.Helper()
	var out bytes.Buffer
	w := gate.Plain(&out)
	if _, err := io.WriteString(w, events); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func TestEventsReadLikeWhatGoTestPrints(t *testing.T) {
	got := plain(t, string(outputs(t)["go-json"]))
	want := `# example.test/m/broken [example.test/m/broken.test]
broken/x.go:2:13: cannot use "s" (untyped string constant) as int value in variable declaration
ok  	example.test/m/b	(cached)
FAIL	example.test/m/broken [build failed]
?   	example.test/m/none	[no test files]
--- FAIL: TestTable/two (0.00s)
    a_test.go:18: got two
--- FAIL: TestTable (0.00s)
--- FAIL: TestFails (0.00s)
printed by a failing test
    a_test.go:26: first
        second
FAIL
FAIL	example.test/m/a	0.003s
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestLinesThatAreNoEventsPassUnchanged(t *testing.T) {
	events := string(outputs(t)["go-json"])
	for name, output := range map[string]string{
		"of other programs":     "vet: x.go:1:1: bad\n\n  indented\r\n\x1b[31mred\x1b[0m\n",
		"of no text":            "a\xff\xfe\x00b\n",
		"without an end":        "a prompt> ",
		"JSON of others":        `{"Action":"deploy","Package":"x"}` + "\n" + `{"level":"info"}` + "\n",
		"half an event":         `{"Action":"output","Package":"m","Out`,
		"longer than any event": strings.Repeat("x", 1<<20) + "\nafter\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain(t, output); got != output {
				t.Errorf("output = %.80q, want it unchanged", got)
			}
			if got, want := plain(t, events+output), plain(t, events)+output; got != want {
				t.Errorf("behind events it is %.80q", got)
			}
		})
	}
}

func TestEventsReadTheSameInWhateverPiecesTheyCome(t *testing.T) {
	all := outputs(t)
	rapid.Check(t, func(rt *rapid.T) {
		events := string(all["go-json"]) + string(all[rapid.SampledFrom(sortedKeys(all)).Draw(rt, "output")])
		var out bytes.Buffer
		w := gate.Plain(&out)
		for rest := events; rest != ""; {
			n := min(len(rest), rapid.IntRange(1, 500).Draw(rt, "piece"))
			if k, err := io.WriteString(w, rest[:n]); k != n || err != nil {
				rt.Fatalf("Write = %d, %v", k, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			rt.Fatal(err)
		}
		if got, want := out.String(), plain(t, events); got != want {
			rt.Fatalf("in pieces %q, in one %q", got, want)
		}
	})
}

func TestATestThatNeverEndsShowsWhatItPrinted(t *testing.T) {
	const events = `{"Action":"output","Package":"m","Test":"TestFine","Output":"quiet\n"}
{"Action":"pass","Package":"m","Test":"TestFine"}
{"Action":"output","Package":"m","Test":"TestHangs","Output":"=== RUN   TestHangs\n"}
{"Action":"output","Package":"m","Test":"TestHangs","Output":"waiting for the network\n"}
`
	if got, want := plain(t, events), "waiting for the network\n"; got != want {
		t.Errorf("killed: %q, want %q", got, want)
	}
	const died = `{"Action":"output","Package":"m","Output":"exit status 2\n"}
{"Action":"fail","Package":"m"}
`
	if got, want := plain(t, events+died), "waiting for the network\nexit status 2\n"; got != want {
		t.Errorf("died: %q, want %q", got, want)
	}
}

func TestATestThatPrintsWithoutEndIsNotHeldBack(t *testing.T) {
	var out counter
	w := gate.Plain(&out)
	event := `{"Action":"output","Package":"m","Test":"TestLoud","Output":"` + strings.Repeat("x", 1000) + `\n"}` + "\n"
	const events = 100_000
	for range events {
		if _, err := io.WriteString(w, event); err != nil {
			t.Fatal(err)
		}
	}
	if held := events - out.lines; held > 1100 {
		t.Errorf("%d lines of 1 kB are held back", held)
	}
	if err := w.Close(); err != nil || out.lines != events {
		t.Errorf("%d of %d lines were shown, %v", out.lines, events, err)
	}
}

func TestPlainSaysThatItsWriterFailed(t *testing.T) {
	broken := errors.New("nobody reads")
	w := gate.Plain(writerFunc(func([]byte) (int, error) { return 0, broken }))
	if _, err := io.WriteString(w, "a line\n"); !errors.Is(err, broken) {
		t.Errorf("Write = %v, want %v", err, broken)
	}
	if err := w.Close(); !errors.Is(err, broken) {
		t.Errorf("Close = %v, want %v", err, broken)
	}
}

func TestTestsThatHaveEndedTakeNoRoom(t *testing.T) {
	var out counter
	w := gate.Plain(&out)
	print := func(test, text string) {
		t.Helper()
		if _, err := io.WriteString(w, `{"Action":"output","Package":"m","Test":"`+test+`","Output":"`+text+`\n"}`+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	print("TestHangs", "waiting")
	for range 3000 {
		print("TestFine", strings.Repeat("x", 1000))
		if _, err := io.WriteString(w, `{"Action":"pass","Package":"m","Test":"TestFine"}`+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if out.lines != 0 {
		t.Errorf("%d lines are shown of tests that passed, or that have not ended", out.lines)
	}
	for range 20_000 { // Many short lines of a test are no way around the bound.
		print("TestLoud", "")
	}
	if out.lines < 4000 {
		t.Errorf("of 20000 short lines %d are shown", out.lines)
	}
}

func TestEveryEventOfGoTestIsTakenOutOfTheOutput(t *testing.T) {
	for _, action := range []string{"start", "run", "pause", "cont", "pass", "bench", "fail", "skip", "attr", "artifacts"} {
		if got := plain(t, `{"Action":"`+action+`","Package":"m"}`+"\n"); got != "" {
			t.Errorf("%s is shown as %q", action, got)
		}
	}
	for events, want := range map[string]string{
		`{"Action":"build-output","ImportPath":"m","Output":"# m\n"}`:                                                                                                     "# m\n",
		`{"Action":"build-fail","ImportPath":"m"}`:                                                                                                                        "",
		`{"Action":"output","Package":"m","Test":"T","Output":"kept\n"}` + "\n" + `{"Action":"skip","Package":"m","Test":"T"}`:                                            "",
		`{"Action":"output","Package":"m","Output":"=== of the package\n"}` + "\n" + `{"Action":"fail","Package":"m"}`:                                                    "=== of the package\n",
		`{"Action":"output","Package":"m","Output":"more\n"}` + "\n" + `{"Action":"output","Package":"m","Output":"?\n"}` + "\n" + `{"Action":"skip","Package":"m"}`:      "?\n",
		`{"Action":"output","Package":"n","Test":"T","Output":"of n\n"}` + "\n" + `{"Action":"fail","Package":"m"}` + "\n" + `{"Action":"pass","Package":"n","Test":"T"}`: "",
		`{"Action":"output","Package":"m","Test":"T","Output":"log\n"}` + "\n" + `{"Action":"fail","Package":"m","Test":"T"}`:                                             "log\n",
	} {
		if got := plain(t, events+"\n"); got != want {
			t.Errorf("%s\nreads %q, want %q", events, got, want)
		}
	}
}
