package gate

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestALineIsReadAsATerminalWouldShowIt(t *testing.T) {
	for line, want := range map[string]string{
		"plain\n":                        "plain",
		"windows\r\n":                    "windows",
		"\x1b[31mred\x1b[0m":             "red",
		"\x1b[1;31mbold\x1b[m and plain": "bold and plain",
		"\x1b[@first\x1b[~last":          "firstlast",
		"a\x1b[2Kb":                      "ab",
		"\x1b]0;title\x07text":           "text",
		"\x1b]0;title\x1b\\text":         "text",
		"\x1b(Btext":                     "Btext",
		"\x1bctext":                      "text",
		"text\x1b":                       "text",
		"text\x1b[":                      "text",
		"text\x1b[31":                    "text",
		"text\x1b]0;title":               "text",
		"text\x1b]0;title\x1b":           "text",
		"10%\r50%\r100%":                 "100%",
		"10%\r100%\r\n":                  "100%",
		"":                               "",
	} {
		if got := visibleText([]byte(line)); got != want {
			t.Errorf("%q shows %q, want %q", line, got, want)
		}
	}
}

func TestALineIsHeldUpToItsBoundAndNotBeyond(t *testing.T) {
	for size, held := range map[int]bool{maxLine: true, maxLine + 1: false} {
		var l lines
		whole, rest := 0, 0
		line := append(bytes.Repeat([]byte("x"), size-1), '\n')
		for i := 0; i < len(line); i += 1000 {
			l.cutLines(line[i:min(i+1000, len(line))], func(b []byte) { whole += len(b) }, func(b []byte) { rest += len(b) })
		}
		l.endLine(func([]byte) { t.Errorf("of %d bytes with an end something is left", size) })
		if (whole == size) != held || whole+rest != size {
			t.Errorf("of a line of %d bytes %d were held and %d passed on", size, whole, rest)
		}
	}
}

// failing fails from its second write on.
type failing struct{ writes int }

var errFailing = errors.New("the trace is full")

func (f *failing) Write(p []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, errFailing
	}
	return len(p), nil
}

func TestOutputThatCannotBeShownIsAnError(t *testing.T) {
	for name, s := range map[string]script{"as it is": {}, "events": {golang: true}, "names": {pytest: true}, "both": {golang: true, pytest: true}} {
		out := newOutput(&failing{}, nil, s)
		if n, err := out.Write([]byte("a line\n")); n != 7 || err != nil {
			t.Errorf("%s: the first line: %d, %v", name, n, err)
		}
		if _, err := out.Write([]byte("another line\n")); !errors.Is(err, errFailing) {
			t.Errorf("%s: the second line: %v, want %v", name, err, errFailing)
		}
	}
}

func TestWhatWasHeldBackIsShownAtTheEnd(t *testing.T) {
	const held = `{"Action":"output","Package":"m","Test":"T","Output":"it hangs\n"}` + "\n"
	for name, c := range map[string]struct {
		s           script
		rest, shown string
	}{
		"as it is": {script{}, "a line without an end", "a line without an end"},
		"events":   {script{golang: true}, held, "it hangs\n"},
		"names":    {script{pytest: true}, "= short test summary info =\n", "= short test summary info =\n"},
		"both":     {script{golang: true, pytest: true}, held + "a line without an end", "a line without an endit hangs\n"},
	} {
		var tail strings.Builder
		out := newOutput(&tail, nil, c.s)
		if _, err := out.Write([]byte(c.rest)); err != nil {
			t.Errorf("%s: what is held back: %v", name, err)
		}
		if out.flush(); tail.String() != c.shown {
			t.Errorf("%s: at the end %q is shown, want %q", name, tail.String(), c.shown)
		}
	}
}

func TestOutputIsCountedAlthoughNobodySeesIt(t *testing.T) {
	var tail strings.Builder
	out := newOutput(&tail, &failing{writes: 1}, script{})
	if _, err := out.Write([]byte("1 passed in 0.1s\n")); err != nil {
		t.Fatal(err)
	}
	if n, ok := out.Counts(); !ok || n.Passed != 1 || tail.String() != "1 passed in 0.1s\n" {
		t.Errorf("counts %+v, %v, kept %q", n, ok, tail.String())
	}
}
