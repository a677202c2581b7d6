package store_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// tells gives a run a transcript of n events.
func tells(t *testing.T, s *store.Store, run loop.Run, n int) {
	t.Helper()
	var events []loop.Event
	for i := range n {
		kind := []string{"phase", "output", "note", "tool"}[i%4]
		events = append(events, loop.Event{
			RunID: run.ID, Seq: int64(i + 1), At: time.UnixMilli(int64(1000 + i)), Phase: loop.PhaseAct, Kind: kind, Text: fmt.Sprintf("event %d \x00 %s\n", i, strings.Repeat("words ", i%9)),
		})
	}
	if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.AppendEvents(t.Context(), events) }); err != nil {
		t.Fatal(err)
	}
}

// transcript reads the events of a run in pages, in every way in which it is read.
func transcript(t *testing.T, s *store.Store, run loop.Run, page int) (all []loop.Event, rest string) {
	t.Helper()
	err := s.View(t.Context(), func(r *store.Reader) error {
		all, rest = nil, ""
		for after := int64(0); ; {
			part, err := r.Events(t.Context(), run.ID, after, page)
			if err != nil {
				return err
			}
			if len(part) > page {
				t.Errorf("%d events, at most %d were asked for", len(part), page)
			}
			if len(part) == 0 {
				break
			}
			all, after = append(all, part...), part[len(part)-1].Seq
		}
		last, err := r.LastEvent(t.Context(), run.ID)
		if err != nil {
			return err
		}
		rest = fmt.Sprint(last)
		for _, kind := range []string{"note", "tool", "nothing"} {
			text, err := r.LastOf(t.Context(), run.ID, kind)
			rest += fmt.Sprintf(" %q %v", text, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, rest
}

func countEvents(t *testing.T, s *store.Store) (n int) {
	t.Helper()
	const query = `SELECT count(*) FROM events`
	row := func() error { return s.SQLiteWriter().QueryRowContext(t.Context(), query).Scan(&n) }
	if db := s.PostgresPool(); db != nil {
		row = func() error { return db.QueryRow(t.Context(), query).Scan(&n) }
	}
	if err := row(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestACompressedTranscriptIsReadAsBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		var runs []loop.Run
		for i, n := range []int{1207, 40, 500, 1, 0} {
			run := fire(t, s, l, fmt.Sprint("-", i), alice)
			tells(t, s, run, n)
			settle(t, s, run, loop.OutcomeDone)
			runs = append(runs, run)
		}
		live := fire(t, s, l, "-live", alice)
		tells(t, s, live, 60)
		runs = append(runs, live)
		type read struct {
			Events []loop.Event
			Rest   string
		}
		before := map[string]read{}
		for _, run := range runs {
			all, rest := transcript(t, s, run, 100000)
			before[run.ID] = read{all, rest}
		}
		p, last, err := s.PackTranscripts(t.Context(), 0, s.Now().Add(-time.Hour))
		if err != nil || p.Runs != 0 || last != 0 {
			t.Fatalf("of runs that ended within the hour: %+v, %d, %v", p, last, err)
		}
		later := s.Now().Add(time.Hour)
		var both sync.WaitGroup
		var packed [2]store.Packed
		for i := range packed {
			both.Go(func() {
				p, _, err := s.PackTranscripts(t.Context(), 0, later)
				if err != nil {
					t.Error(err)
				}
				packed[i] = p
			})
		}
		both.Wait()
		if n, events := packed[0].Runs+packed[1].Runs, packed[0].Events+packed[1].Events; n != 3 || events != 1747 {
			t.Errorf("%d runs with %d events were compressed by two at once: %+v", n, events, packed)
		}
		if after, before := packed[0].After+packed[1].After, packed[0].Before+packed[1].Before; after*3 > before {
			t.Errorf("%d bytes became %d", before, after)
		}
		if n := countEvents(t, s); n != 3+1+1+1+60 {
			t.Errorf("%d rows hold the events now", n)
		}
		for _, page := range []int{1, 7, 499, 500, 501, 100000} {
			if page == 1 && !sample.All() { // 1808 queries, on each database.
				continue
			}
			for _, run := range runs {
				all, rest := transcript(t, s, run, page)
				if diff := cmp.Diff(before[run.ID], read{all, rest}); diff != "" {
					t.Fatalf("in pages of %d, the transcript of %s (-before +after):\n%.2000s", page, run.ID, diff)
				}
			}
		}
		if p, _, err := s.PackTranscripts(t.Context(), 0, later); err != nil || p.Runs != 0 {
			t.Errorf("a second time: %+v, %v", p, err)
		}
	})
}

func TestASQLiteFileGetsSmallerWhenMuchOfItIsFree(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		big := strings.Repeat("x", 1<<20)
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			for i := range 20 {
				if err := rt.AppendEvents(t.Context(), []loop.Event{{RunID: run.ID, Seq: int64(i + 1), Kind: "output", Text: big}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if freed, err := s.Vacuum(t.Context(), true); err != nil || freed != 0 {
			t.Errorf("of a store without free pages: %d, %v", freed, err)
		}
		settle(t, s, run, loop.OutcomeDone)
		if _, _, err := s.PackTranscripts(t.Context(), 0, s.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		freed, err := s.Vacuum(t.Context(), false)
		if file := s.SQLiteWriter() != nil; err != nil || file != (freed > 16<<20) {
			t.Errorf("%d bytes were freed, %v", freed, err)
		}
		if events, _ := transcript(t, s, run, 3); len(events) != 20 || events[19].Text != big {
			t.Errorf("%d events are left", len(events))
		}
	})
}

// A backup may come from anybody, and its rows may be written by hand.
func TestAttack128ACompressedTranscriptThatGrowsWithoutEndIsRefused(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	l := seed(t, s, "ci")
	event := func(i int) string { return fmt.Sprintf(`{"run_id":"x","seq":%d}`, i) }
	for name, c := range map[string]struct {
		text io.Reader
		says string
	}{
		"endless white space":    {io.LimitReader(spaces{}, int64(sample.Size(65, 1000))<<20), "more than 67108864 bytes"},
		"ten thousand events":    {strings.NewReader("[" + event(1) + strings.Repeat(","+event(2), 9_999) + "]"), "10000 events"},
		"lists, 100,000 deep":    {strings.NewReader(strings.Repeat("[", 100_000)), "max depth"},
		"what is not compressed": {nil, "gzip"},
	} {
		run := fire(t, s, l, name, alice)
		packed := base64.StdEncoding.EncodeToString([]byte("no gzip, and long enough for a header"))
		if c.text != nil {
			var b bytes.Buffer
			zip := gzip.NewWriter(&b)
			if _, err := io.Copy(zip, c.text); err != nil {
				t.Fatal(err)
			}
			if err := zip.Close(); err != nil {
				t.Fatal(err)
			}
			packed = base64.StdEncoding.EncodeToString(b.Bytes())
		}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			return rt.AppendEvents(t.Context(), []loop.Event{{RunID: run.ID, Seq: 1, At: s.Now(), Phase: loop.PhaseAct, Kind: "packed", Text: packed}})
		}); err != nil {
			t.Fatal(err)
		}
		settle(t, s, run, loop.OutcomeDone)
		err := s.View(t.Context(), func(r *store.Reader) error {
			_, err := r.Events(t.Context(), run.ID, 0, 100)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), run.ID) || len(err.Error()) > 500 {
			t.Errorf("%s is read: %v", name, err)
		}
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
