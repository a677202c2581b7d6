package taskfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilesOfAnAgentAreReadBetweenItsMarks(t *testing.T) {
	block := func(name, content string) string {
		return "---FILE_UPDATE n1: " + name + "---\n" + content + "---END_FILE_UPDATE n1---\n"
	}
	whole := func(inside string) string {
		return "Here it is:\n===FILES n1 START===\n" + inside + "===FILES n1 END===\nBye.\n"
	}
	for name, c := range map[string]struct {
		text, nonce string
		want        []Update
		warnings    []string
		err         error
	}{
		"two files": {
			whole(block("TASKS.md", "# dev\r\n---FILE_UPDATE: TASKS.md---\n===FILES END===\n") + "\n" + block("inbox", "NO_CHANGES\n")), "n1",
			[]Update{{Name: TasksFile, Content: "# dev\r\n---FILE_UPDATE: TASKS.md---\n===FILES END===\n"}, {Name: InboxFile, Content: "NO_CHANGES\n", Keep: true}},
			nil, nil,
		},
		"marks without a nonce": {
			"=== OUTPUT START ===\n---FILE_UPDATE: CONTEXT.md---\nx\n---END_FILE_UPDATE---\n===OUTPUT_END===\n", "", []Update{{Name: ContextFile, Content: "x\n"}}, nil, nil,
		},
		"a name that no file has": {
			whole(block("../../etc/passwd", "x\n") + block("HEARTBEAT.md", "y\n")), "n1",
			[]Update{{Name: HeartbeatFile, Content: "y\n"}},
			[]string{"../../etc/passwd is not a file of an agent and is left out; there are TASKS.md, CONTEXT.md, HEARTBEAT.md and INBOX.md"},
			nil,
		},
		"a file that is printed twice": {
			whole(block("TASKS.md", "x\n") + block("TASKS.md", "y\n")), "n1", []Update{{Name: TasksFile, Content: "y\n"}}, []string{"TASKS.md is printed twice; the last one counts"}, nil,
		},
		"the form of the prompt before it": {UpdateForm("n1") + whole(block("TASKS.md", "x\n")), "n1", []Update{{Name: TasksFile, Content: "x\n"}}, nil, nil},
		"no marks":                         {"I am done.", "n1", nil, nil, ErrNoStructuredOutput},
		"marks of another cycle":           {strings.ReplaceAll(whole(block("TASKS.md", "x\n")), "n1", "n0"), "n1", nil, nil, ErrNoStructuredOutput},
		"marks without the nonce":          {UpdateForm(""), "n1", nil, nil, ErrNoStructuredOutput},
		"an output that was cut off":       {"===FILES n1 START===\n" + block("TASKS.md", "x\n"), "n1", nil, nil, ErrNoStructuredOutput},
		"nothing between the marks":        {whole("\n  \n"), "n1", nil, nil, ErrEmptyStructuredOutput},
		"no file between the marks":        {whole("I changed nothing.\n"), "n1", nil, nil, ErrNoFileUpdatesFound},
		"a file without its end":           {whole("---FILE_UPDATE n1: TASKS.md---\nx\n"), "n1", nil, nil, ErrNoFileUpdatesFound},
		"a file in a file":                 {whole("---FILE_UPDATE n1: TASKS.md---\nx\n" + block("INBOX.md", "y\n")), "n1", nil, nil, ErrNoFileUpdatesFound},
	} {
		got, warnings, err := ParseUpdates(c.text, c.nonce)
		if d := cmp.Diff(c.want, got); d != "" || !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v %s", name, err, c.err, d)
		}
		if d := cmp.Diff(c.warnings, warnings); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestAFileThatLosesSomethingIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"a step":                 {baseTasks, strings.Replace(baseTasks, "- **Step 1**: one", "", 1), "TASKS.md is refused: it loses step-1"},
		"a step in an example":   {baseTasks, strings.Replace(baseTasks, "## Active Tasks", "## Task Format", 1), "TASKS.md is refused: it loses step-1, step-2"},
		"a number for two":       {baseTasks, baseTasks + "- **Step 1**: x\n", "TASKS.md is refused: step-1 is in it twice"},
		"nothing, of the steps":  {baseTasks, strings.Replace(baseTasks, "Status: open", "Status: done", 1) + "- **Step 3**: x\n", ""},
		"text that is not UTF-8": {baseTasks, baseTasks + "\xff", "line 16: not UTF-8"},
	} {
		if got := errorText(AcceptTasks(c.before, c.after)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	b, _ := ParseInbox(baseInbox)
	b.Process(b.Pending()[0].ID, noon, "Step 1")
	for name, c := range map[string]struct{ before, after, want string }{
		"an entry":                {baseInbox, strings.Replace(baseInbox, "Three", "3", 1), "INBOX.md is refused: it loses the entry from c in line 15"},
		"one of two equal ones":   {baseInbox, strings.Replace(baseInbox, "### [2026-11-27T10:00:00Z] From: a\nOne\n", "", 1), "INBOX.md is refused: it loses the entry from a in line 8"},
		"nothing, of the entries": {baseInbox, b.String(), ""},
		"what was processed":      {b.String(), baseInbox, "INBOX.md is refused: it loses the entry from a in line 20"},
	} {
		if got := errorText(AcceptInbox(c.before, c.after)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAFileThatCannotBeReadIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\x00": "line 2: a NUL byte", "\xff": "line 1: not UTF-8", "\uFFFD is a character": "", strings.Repeat("x", MaxFile+1): "line 1: 4194305 bytes, and the most that is read are 4194304",
	} {
		if got := errorText(Check(text)); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}

func FuzzUpdates(f *testing.F) {
	f.Add(UpdateForm("n1"), "n1")
	f.Add(UpdateForm(""), "")
	f.Fuzz(func(t *testing.T, text, nonce string) {
		updates, _, err := ParseUpdates(text, nonce)
		if err != nil && len(updates) > 0 {
			t.Fatal("an error, and something that counts")
		}
		for _, u := range updates {
			if !strings.Contains(text, u.Content) {
				t.Fatalf("%q is not in the text", u.Content)
			}
		}
	})
}
