package output

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimesAreRelative(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 22, 14, 5, 0, 0, time.UTC)
	p := &Printer{Now: func() time.Time { return now }}
	for back, want := range map[time.Duration]string{
		0: "0s ago", 59 * time.Second: "59s ago", 3 * time.Minute: "3m ago", 5 * time.Hour: "5h ago", 72 * time.Hour: "3d ago",
	} {
		at := now.Add(-back)
		if got := p.Ago(&at); got != want {
			t.Errorf("%s before: %q, want %q", back, got, want)
		}
	}
	if got := p.Ago(nil); got != "–" {
		t.Errorf("never: %q", got)
	}
}

// tableAt returns a table on a terminal of so many columns.
func tableAt(t *testing.T, columns int, rows [][]string) string {
	t.Helper()
	var out bytes.Buffer
	p := &Printer{Out: &out, Terminal: true, Width: func() int { return columns }}
	if err := p.Table(rows); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWideCellsAreWrappedUnderTheirHeading(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"RUN", "RESULT", "WHEN"}, {"x#1", "the gate failed in the same way", "5h ago"}, {"x#2", "good", "1h ago"}}
	want := "RUN  RESULT           WHEN\nx#1  the gate failed  5h ago\n     in the same way\nx#2  good             1h ago\n"
	if got := tableAt(t, 28, rows); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	want = "RUN     x#1\nRESULT  the\n        gate\n        failed\n        in the\n        same\n        way\nWHEN    5h ago\n\nRUN     x#2\nRESULT  good\nWHEN    1h ago\n"
	if got := tableAt(t, 15, rows); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

func TestATableOfOneWordOrNoRowsIsPrinted(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", 200)
	for _, columns := range []int{1, 20, 80} {
		if got := tableAt(t, columns, [][]string{{"NAME"}, {word}}); strings.Count(got, word) != 1 {
			t.Errorf("%d columns: printed\n%s", columns, got)
		}
		if got := tableAt(t, columns, [][]string{{"NAME", "STATE"}}); got != "NAME  STATE\n" {
			t.Errorf("%d columns: printed %q", columns, got)
		}
	}
}

func TestAListHasOneFormForPeopleAndOneForPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows []string
		json bool
		jq   string
		want string
	}{
		"a table, and what is below it":  {[]string{"a", "b"}, false, "", "NAME\na\nb\nbelow\n"},
		"a sentence for no rows":         {nil, false, "", "nothing yet\n"},
		"JSON with its schema and count": {[]string{"a\u202e"}, true, "", `{"data":["a\u202e"],"meta":{"schema":"pawl.test/v1","count":1}}` + "\n"},
		"no rows are not null":           {nil, true, "", `{"data":[],"meta":{"schema":"pawl.test/v1","count":0}}` + "\n"},
		"filtered":                       {[]string{"a", "b"}, true, ".data[], .meta.count", "a\nb\n2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			p := &Printer{Out: &out, JSON: c.json, JQ: c.jq}
			err := List[string]{
				Schema: "pawl.test/v1", Heading: []string{"NAME"}, Cells: func(row string) []string { return []string{row} },
				Empty: "nothing yet", Below: func() { p.Line("below") },
			}.Print(p, c.rows)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPrinterStopsAtItsFirstError(t *testing.T) {
	t.Parallel()
	w := &closingWriter{}
	p := &Printer{Out: w}
	p.Line("one")
	p.Line("two")
	p.Text("three")
	if p.Err() == nil || w.writes != 1 {
		t.Errorf("error %v after %d writes, want one after 1", p.Err(), w.writes)
	}
}

type closingWriter struct{ writes int }

func (w *closingWriter) Write([]byte) (int, error) {
	w.writes++
	return 0, errors.New("closed")
}
