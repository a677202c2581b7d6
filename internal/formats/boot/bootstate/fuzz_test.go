package bootstate

import (
	"strings"
	"testing"
	"time"
)

func FuzzReadState(f *testing.F) {
	f.Add([]byte(goodState))
	f.Add([]byte(`{"version": "0.9.0", "phase": "x", "_comment": 1, "last_updated": "{{NOW}}", "metadata": 1, "sessionId": 2}`))
	f.Add([]byte(`{"errors": [{}, 1, {"timestamp": 2}], "currentPhase": "idle"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		x := FormatSchemas()
		s, wrong := x.ReadState(src)
		checkFindings(t, wrong)
		if len(wrong) == 0 {
			again, wrong := x.ReadState(s.Encode())
			if len(wrong) > 0 || string(again.Encode()) != string(s.Encode()) {
				t.Fatalf("%q is written as %s: %v", src, s.Encode(), wrong)
			}
			s.Plan()
		}
		migrated, notes, wrong := x.MigrateState(src, "shop", now)
		checkFindings(t, wrong)
		if again, more, left := x.MigrateState(migrated, "shop", now); len(wrong) == 0 && (string(again) != string(migrated) || len(more)+len(left) > 0) {
			t.Fatalf("%q: %q, and then %q", src, notes, more)
		}
		found := found()
		found.State.Content = src
		checkRecovered(t, found)
	})
}

func FuzzReadTodo(f *testing.F) {
	f.Add([]byte(goodTodo))
	f.Add([]byte(goodTodo[:len(goodTodo)-20]))
	f.Add([]byte(`{"todos": [{"id": "a", "name": "A", "state": "wip", "deps": ["a"]}, 1, {"id": "a", "title": "", "status": "complete"}], "metadata": []}`))
	f.Add([]byte(`{"tasks": [{"id": "a", "title": "{{", "status": "done"}, {"id": "a", "title": "x", "status": "done", "priority": "low"}]}`))
	f.Add([]byte(`{{{"id": "x", "title": "y", "status": "done", "priority": "low"}}{"a":{"a":{"a":{`))
	f.Fuzz(func(t *testing.T, src []byte) {
		x := FormatSchemas()
		todo, wrong := x.ReadTodo(src)
		checkFindings(t, wrong)
		if len(wrong) == 0 {
			again, wrong := x.ReadTodo(todo.Encode())
			if len(wrong) > 0 || string(again.Encode()) != string(todo.Encode()) {
				t.Fatalf("%q is written as %s: %v", src, todo.Encode(), wrong)
			}
			for _, request := range []string{"", "T-1", string(src[:min(len(src), 300)])} {
				d, planned := Plan(stateWith("go on"), todo, request, nil, now)
				if _, wrong := x.ReadTodo(planned.Encode()); len(wrong) > 0 && !strings.Contains(request, "\x00") && strings.ToValidUTF8(request, "") == request {
					t.Fatalf("%q: after the request %q the tasks are wrong: %v", src, request, wrong)
				}
				if d.Reason.Sentence() == "" || (d.Task == "") != (d.Question != nil) {
					t.Fatalf("decision %+v", d)
				}
			}
		}
		migrated, notes, wrong := x.MigrateTodo(src, now)
		checkFindings(t, wrong)
		if again, more, left := x.MigrateTodo(migrated, now); len(wrong) == 0 && (string(again) != string(migrated) || len(more)+len(left) > 0) {
			t.Fatalf("%q: %q, and then %q", src, notes, more)
		}
		found := found()
		found.Tasks.Content = src
		checkRecovered(t, found)
		found.TasksHistory = nil
		checkRecovered(t, found)
	})
}

func checkFindings(t *testing.T, findings []Finding) {
	t.Helper()
	for _, one := range findings {
		if one.Line < 1 || one.Column < 1 || one.Message == "" || one.Reason.Sentence() == "" || strings.ContainsAny(one.String(), "\n\x1b\t") {
			t.Fatalf("finding %+v", one)
		}
	}
}

// checkRecovered holds whatever a memory is recovered to against the rules of the format,
// and tries that nothing is left to repair.
func checkRecovered(t *testing.T, f Found) {
	t.Helper()
	x := FormatSchemas()
	m, repairs, stop := x.Recover(f)
	if stop != nil {
		checkFindings(t, stop.Findings)
		if stop.Reason.Sentence() == "" {
			t.Fatalf("stop %+v", stop)
		}
		return
	}
	if _, wrong := x.ReadState(m.State.Encode()); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if _, wrong := x.ReadTodo(m.Tasks.Encode()); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for _, r := range repairs {
		if strings.ContainsAny(r.Note, "\n\x1b") || !strings.Contains(m.Changelog, r.Note) {
			t.Fatalf("repair %+v", r)
		}
	}
	f.State.Content, f.Tasks.Content, f.Changelog.Content = m.State.Encode(), m.Tasks.Encode(), []byte(m.Changelog)
	if _, again, stop := x.Recover(f); len(again) > 0 || stop != nil {
		t.Fatalf("%v, and then %v %v", repairs, again, stop)
	}
}

func FuzzChangelog(f *testing.F) {
	f.Add("# Changelog\n\n## 2026-01-30\n\n- a\n", "## 2026-01-31\r\n- b\r\n", "c")
	f.Add("## 2026-01-31\n## 2026-01-31\n- a\n# x\n- b", "- x\n## 2026-01-31\n\n\n", "## 2026-01-31")
	f.Fuzz(func(t *testing.T, first, second, entry string) {
		added := AddToChangelog(first, now, []string{entry})
		if bareEntry(entry) == "" {
			return
		}
		_, entries := entriesOf(added)
		today := now.Format(time.DateOnly)
		_, before := entriesOf(first)
		if len(entries[today]) != len(before[today])+1 {
			t.Fatalf("%q with %q is %q", first, entry, added)
		}
		for l := range strings.SplitSeq(first, "\n") {
			if !strings.Contains(added, strings.TrimSpace(l)) {
				t.Fatalf("%q with %q has lost %q: %q", first, entry, l, added)
			}
		}
		merged := MergeChangelogs(first, second)
		_, all := entriesOf(merged)
		for _, side := range []string{first, second} {
			_, entries := entriesOf(side)
			for day, list := range entries {
				if len(all[day]) < len(list) {
					t.Fatalf("%q and %q are %q", first, second, merged)
				}
			}
		}
		if again := MergeChangelogs(merged, second); again != merged {
			t.Fatalf("%q and %q are %q and then %q", first, second, merged, again)
		}
	})
}

func FuzzReadMessage(f *testing.F) {
	f.Add(Session{"a", "b", "c", "d"}.Message(), "x")
	f.Add("agent: \n\n- Updated TODO: ", "- Updated STATE: y\x1b\u2028")
	f.Fuzz(func(t *testing.T, text, part string) {
		ReadMessage(text)
		s, ours := ReadMessage(Session{part, part, part, part}.Message())
		again, _ := ReadMessage(s.Message())
		if !ours || again != s {
			t.Fatalf("%q is read as %+v and then %+v", part, s, again)
		}
	})
}
