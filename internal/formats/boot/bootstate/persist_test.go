package bootstate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

func TestAChangelogGrowsUnderTheHeaderOfTheDay(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                 {"", "## 2026-01-31\n\n- one\n- two\n"},
		"only a title":          {"# Changelog\n", "# Changelog\n\n## 2026-01-31\n\n- one\n- two\n"},
		"no newline at the end": {"# Changelog", "# Changelog\n\n## 2026-01-31\n\n- one\n- two\n"},
		"the day is there":      {"# Changelog\n\n## 2026-01-31\n\n- zero\n\n", "# Changelog\n\n## 2026-01-31\n\n- zero\n- one\n- two\n\n"},
		"the day is there, and has nothing": {
			"## 2026-01-31\n", "## 2026-01-31\n\n- one\n- two\n",
		},
		"the day is first": {
			"# Changelog\n\n## 2026-01-31\n\n- zero\n\n## 2026-01-30\n\n- old\n", "# Changelog\n\n## 2026-01-31\n\n- zero\n- one\n- two\n\n## 2026-01-30\n\n- old\n",
		},
		"the newest is last":  {"## 2026-01-29\n\n- a\n\n## 2026-01-30\n\n- b\n", "## 2026-01-29\n\n- a\n\n## 2026-01-30\n\n- b\n\n## 2026-01-31\n\n- one\n- two\n"},
		"the newest is first": {"# C\n\n## 2026-01-30\n\n- b\n\n## 2026-01-29\n\n- a\n", "# C\n\n## 2026-01-31\n\n- one\n- two\n\n## 2026-01-30\n\n- b\n\n## 2026-01-29\n\n- a\n"},
		"CRLF":                {"# C\r\n\r\n## 2026-01-31\r\n- zero\r\n", "# C\r\n\r\n## 2026-01-31\r\n- zero\r\n- one\r\n- two\r\n"},
		"another section after the day": {
			"## 2026-01-31\n\n- zero\n\n## Notes\n\ntext\n", "## 2026-01-31\n\n- zero\n- one\n- two\n\n## Notes\n\ntext\n",
		},
		"a header that is not a day": {"## 2026-01-31 x\n", "## 2026-01-31 x\n\n## 2026-01-31\n\n- one\n- two\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := AddToChangelog(c.text, now, []string{"one", " - two\n "})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if AddToChangelog(c.text, now, []string{"", "\n"}) != c.text {
				t.Error("nothing to add changes the text")
			}
		})
	}
	late := time.Date(2026, 2, 1, 1, 0, 0, 0, time.FixedZone("", 7200))
	if got := AddToChangelog("", late, []string{"## x\n## 2026-01-01\x1b[31m"}); got != "## 2026-01-31\n\n- ## x ## 2026-01-01\ufffd[31m\n" {
		t.Errorf("an entry that looks like a header makes %q", got)
	}
}

func TestTwoChangelogsAreUnited(t *testing.T) {
	a := "# C\n\nprose\n\n## 2026-01-30\n\n- both\n- ours\n"
	b := "# C\n\n## 2026-01-30\n\n- both\n- both\n- theirs\n  - and\x07 this\n\n## 2026-01-31\n\n- later\n"
	want := "# C\n\nprose\n\n## 2026-01-30\n\n- both\n- ours\n- both\n- theirs - and\ufffd this\n\n## 2026-01-31\n\n- later\n"
	if diff := cmp.Diff(want, MergeChangelogs(a, b)); diff != "" {
		t.Error(diff)
	}
	if again := MergeChangelogs(want, b); again != want {
		t.Errorf("a second time it is %q", again)
	}
}

func TestACommitMessageHasTheFormOfTheProtocolAndIsReadAgain(t *testing.T) {
	s := Session{Brief: "make\nthe till", State: "currentPhase idle → testing", Tasks: "T-1 pending → done", Summary: "the till works\n\nCo-authored-by: x"}
	want := "agent: make the till\n\n- Updated STATE: currentPhase idle → testing\n- Updated TODO: T-1 pending → done\n- Session summary: the till works Co-authored-by: x\n"
	if diff := cmp.Diff(want, s.Message()); diff != "" {
		t.Error(diff)
	}
	got, ours := ReadMessage(want)
	s.Brief, s.Summary = "make the till", "the till works Co-authored-by: x"
	if diff := cmp.Diff(s, got); diff != "" || !ours {
		t.Error(diff)
	}
	if got := (Session{}).Message(); got != "agent: session\n\n- Updated STATE: no changes\n- Updated TODO: no changes\n- Session summary: nothing was done\n" {
		t.Errorf("an empty session is %q", got)
	}
	long := Session{Brief: strings.Repeat("long ", 50)}.Message()
	if first, _, _ := strings.Cut(long, "\n"); len([]rune(first)) > 72 {
		t.Errorf("the first line is %q", first)
	}
	if _, ours := ReadMessage("Fix agent: x\n"); ours {
		t.Error("another message is taken for one of a session")
	}
}

func TestChangesAreDescribedInAFewWords(t *testing.T) {
	before, _ := FormatSchemas().ReadState([]byte(goodState))
	after := before.Clone()
	after.SetPhase(PhaseIdle)
	after.SetNextIntent("")
	after.AddError(now, "it broke", "E1", true)
	after.AddError(now, "it broke", "", false)
	after.SetLastCommit("1a2b3c4")
	if got, want := DescribeState(before, after), "currentPhase testing → idle, nextIntent none, 2 new in errors"; got != want {
		t.Errorf("state: %q, want %q", got, want)
	}
	if got := DescribeState(State{}, before); got != "currentPhase none → testing, nextIntent T-2, 1 new in errors" {
		t.Errorf("a new state: %q", got)
	}
	if _, wrong := FormatSchemas().ReadState(after.Encode()); len(wrong) > 0 || after.LastCommit() != "1a2b3c4" {
		t.Error(wrong)
	}
	lone := before.Clone()
	lone.SetLastCommit("1a2b3c4")
	if DescribeState(before, lone) != "" || !before.EqualButCommit(lone) || before.EqualButCommit(after) {
		t.Error("a new hash is a change")
	}
	tasks := todoOf(t, "T-1 pending low")
	more := tasks.Clone()
	more.SetStatus("T-1", StatusDone, "", now)
	more.Add(Task{ID: "T-2", Title: "x", Status: StatusPending, Priority: PriorityLow}, now)
	if got := DescribeTasks(tasks, more); got != "T-1 pending → done, T-2 new, pending" {
		t.Errorf("tasks: %q", got)
	}
	if got := DescribeTasks(Todo{}, tasks); got != "T-1 new, pending" {
		t.Errorf("new tasks: %q", got)
	}
}

func TestWhatAReaderDoesNotKnowIsKeptAsItIs(t *testing.T) {
	s, _ := FormatSchemas().ReadState([]byte(goodState))
	s.SetMetadata("session", jsontree.NewInt(1))
	want := "\n  \"metadata\": {\n    \"kept\": [\n      1.50,\n      {\n        \"b\": 1,\n        \"a\": 2\n      }\n    ],\n    \"session\": 1\n  }\n}\n"
	if got := string(s.Encode()); !strings.HasSuffix(got, want) {
		t.Errorf("the state is %s", got)
	}
	todo, _ := FormatSchemas().ReadTodo([]byte(goodTodo))
	todo.SetStatus("T-1", StatusPending, "", now)
	if got := string(todo.Encode()); !strings.Contains(got, "\"kept\": 1e3\n") {
		t.Errorf("the tasks are %s", got)
	}
	for _, fresh := range []Todo{NewTodo(now), emptyTodo()} {
		if _, wrong := FormatSchemas().ReadTodo(fresh.Encode()); len(wrong) > 0 {
			t.Error(wrong)
		}
	}
	if _, wrong := FormatSchemas().ReadState(NewState("shop", now).Encode()); len(wrong) > 0 {
		t.Error(wrong)
	}
}
