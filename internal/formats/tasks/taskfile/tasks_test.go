package taskfile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func stepsOf(t *testing.T, text string) []Step {
	t.Helper()
	tasks, problems := ParseTasks(text)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	if got := tasks.String(); got != text {
		t.Fatalf("the text changed: %s", cmp.Diff(text, got))
	}
	return tasks.Steps()
}

func TestAStepHasTheFieldsBelowIt(t *testing.T) {
	text := "# dev\r\n\r\n## Active Tasks\r\n" +
		"* **Step 3**: Add a login page <!-- soon -->\r\n" +
		"   * status: In Progress\r\n" +
		"   * **Priority**: High\r\n" +
		"   * Blocked reason: the API\r\n" +
		"   * retry_count: 2\r\n" +
		"   * Depends on: Step 1, step-2 and task-1; the weather\r\n" +
		"   * Tags: [code, web]\r\n" +
		"   * Assigned by: chief\r\n" +
		"   * Task-ID: 77\r\n" +
		"     * Status: of a line below a field, which is text\r\n" +
		"   > as the customer wrote it\r\n\r\n" +
		"## Completed Tasks\r\n- [x] **Step 1:** The skeleton\r\n### task-001\r\n- title: Try it\r\n- status: done\r\n"
	want := []Step{
		{
			Key: "step-3", Number: 3, Title: "Add a login page", Status: StatusInProgress, Priority: PriorityHigh, BlockedReason: "the API", Retries: 2,
			DependsOn: []string{"step-1", "step-2", "task-001", "the weather"}, Tags: []string{"code", "web"}, From: "chief", Fields: []Field{{"Task-ID", "77"}},
			Text: "* Status: of a line below a field, which is text\nas the customer wrote it", Line: 4,
		},
		{Key: "step-1", Number: 1, Title: "The skeleton", Status: StatusDone, Priority: PriorityMedium, Line: 17, Completed: true},
		{Key: "task-001", Number: 1, Title: "Try it", Status: StatusDone, Priority: PriorityMedium, Line: 18, Completed: true},
	}
	if d := cmp.Diff(want, stepsOf(t, text)); d != "" {
		t.Error(d)
	}
}

func TestAnExampleIsNeverAStep(t *testing.T) {
	for name, text := range map[string]string{
		"below Task Format":            "## Task Format\n- **Step 1**: x\n### task-001\n- title: y\n#### More\n- **Step 2**: z\n",
		"with an invalid number":       "## Task Format\n- **Step N**: x\n  - Status: open | done\n",
		"in a code block":              "## Active Tasks\n```md\n- **Step 1**: x\n```\n",
		"in a longer code block":       "## Active Tasks\n````\n```\n- **Step 1**: x\n```\n````\n",
		"in a comment":                 "## Active Tasks\n<!--\n- **Step 1**: x\n-->\n",
		"in a sentence":                "## Active Tasks\nSee **Step 1**: x\n",
		"a bold word that begins like": "## Active Tasks\n- **Stepping stones**: x\n",
	} {
		if got := stepsOf(t, text); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestACodeBlockThatIsNeverClosedHidesNothing(t *testing.T) {
	if got := stepsOf(t, "## Active Tasks\n```\n- **Step 1**: x\n"); len(got) != 1 {
		t.Errorf("steps: %v", got)
	}
}

func TestWhatCannotBeWorkedOnIsNamedWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
		good int // steps that are not malformed
	}{
		"a status that is not a word of the enum": {
			"- **Step 1**: x\n  - Status: open | done\n- **Step 2**: y\n",
			[]string{"2:13: \"open | done\" is not a status; write open, in-progress, blocked, done, failed or cancelled"},
			1,
		},
		"a priority that is not a word of the enum": {
			"- **Step 1**: ä\n  - Priority: ü asap\n",
			[]string{"2:15: \"ü asap\" is not a priority; write critical, high, medium or low"},
			0,
		},
		"a number that two steps have": {
			"- **Step 4**: x\n- **Step 2**: y\n- **Step 4**: z\n",
			[]string{"3:1: step-4 is in line 1 and in line 3; give one of them another number"},
			1,
		},
		"a number that is a letter":      {"- **Step N**: x\n", []string{"1:10: a step needs a number, as in \"- **Step 3**: title\""}, 0},
		"a number that is not whole":     {"- **Step 1.5**: x\n", []string{"1:10: a step needs a number, as in \"- **Step 3**: title\""}, 0},
		"a task without a number":        {"### task-x\n- title: y\n", []string{"1:10: a task needs a number, as in \"### task-001\""}, 0},
		"a step without a title":         {"- **Step 1**:\n", []string{"1:1: step-1 has no title"}, 0},
		"a second status":                {"- **Step 1**: x\n  - Status: open\n  - Status: done\n", []string{"3:13: the step has a second status; the first is in line 2"}, 0},
		"a retry count that is a word":   {"- **Step 1**: x\n  - Retry count: many\n", []string{"2:18: \"many\" is not a retry count; write 0 or more"}, 0},
		"a retry count that is negative": {"- **Step 1**: x\n  - Retry count: -1\n", []string{"2:18: \"-1\" is not a retry count; write 0 or more"}, 0},
	} {
		tasks, problems := ParseTasks(c.text)
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		good := 0
		for _, s := range tasks.Steps() {
			if !s.Malformed {
				good++
			}
		}
		if d := cmp.Diff(c.want, got); d != "" || good != c.good {
			t.Errorf("%s: %d sound steps, want %d %s", name, good, c.good, d)
		}
	}
}

func TestTheEndOfAStepIsTheEndOfItsFields(t *testing.T) {
	for name, after := range map[string]string{
		"a heading":            "## Notes\n- Status: done\n",
		"a rule":               "---\n- Status: done\n",
		"a rule of asterisks":  "* * *\n***\n- Status: done\n",
		"a paragraph":          "\nA note.\n- Status: done\n",
		"a bullet beside it":   "- Buy milk\n  - Status: done\n",
		"an example of a step": "\n## Task Format\n- **Step N**: x\n  - Status: done\n",
	} {
		text := "## Active Tasks\n- **Step 1**: x\n" + after
		if got := stepsOf(t, text); len(got) != 1 || got[0].Status != StatusOpen {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSetChangesOnlyItsLines(t *testing.T) {
	done, blocked, why, result, two := StatusDone, StatusBlocked, "no\nkey\x1b[31m", "step 1 done: <!-- all --> good", 2
	for name, c := range map[string]struct {
		text, want string
		f          StepFields
	}{
		"a value with what is behind it": {
			"- **Step 1**: x\n  - Status:   open  <!-- me -->\t\r\n", "- **Step 1**: x\n  - Status:   done  <!-- me -->\t\r\n", StepFields{Status: &done},
		},
		"a word that is written in another way stays": {"- **Step 1**: x\n  - Status: DONE\n", "- **Step 1**: x\n  - Status: DONE\n", StepFields{Status: &done}},
		"a value that is empty":                       {"- **Step 1**: x\n  - Result:\n", "- **Step 1**: x\n  - Result: step 1 done: <! -- all → good\n", StepFields{Result: &result}},
		"a line that is missing": {
			"\t* **Step 1**: x\n\t      * Priority: low\n\n## Notes\n",
			"\t* **Step 1**: x\n\t      * Priority: low\n\t      * Status: blocked\n\t      * Blocked reason: no key\n\t      * Retry count: 2\n\n## Notes\n",
			StepFields{Status: &blocked, BlockedReason: &why, Retries: &two},
		},
		"all lines are missing":    {"- **Step 1**: x\n  goes on\n\n- **Step 2**: y", "- **Step 1**: x\n  goes on\n  - Status: done\n\n- **Step 2**: y", StepFields{Status: &done}},
		"the last line has no end": {"- **Step 2**: y\r\n- **Step 1**: x", "- **Step 2**: y\r\n- **Step 1**: x\r\n  - Status: done", StepFields{Status: &done}},
		"a heading": {
			"### task-001\n- title: x\n- status: open\n\n### task-002\n- title: y\n", "### task-001\n- title: x\n- status: open\n- retry_count: 2\n\n### task-002\n- title: y\n",
			StepFields{Retries: &two},
		},
		"a block of code below a field": {
			"- **Step 1**: x\n  - Priority: low\n    ```\n\n  - a\n    ```\n", "- **Step 1**: x\n  - Priority: low\n    ```\n\n  - a\n    ```\n  - Status: done\n",
			StepFields{Status: &done},
		},
	} {
		tasks, _ := ParseTasks(c.text)
		key := "step-1"
		if strings.Contains(c.text, "task-001") {
			key = "task-001"
		}
		if !tasks.Set(key, c.f) {
			t.Errorf("%s: there is no %s", name, key)
		}
		if d := cmp.Diff(c.want, tasks.String()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestAStepThatIsNotThereOrThereTwiceIsNotSet(t *testing.T) {
	text := "- **Step 1**: x\n- **Step 1**: y\n"
	tasks, _ := ParseTasks(text)
	done := StatusDone
	for _, key := range []string{"step-1", "step-2", ""} {
		if tasks.Set(key, StepFields{Status: &done}) || tasks.String() != text {
			t.Errorf("%q was set: %s", key, tasks)
		}
	}
}

func TestANewStepGoesToTheEndOfTheActiveOnes(t *testing.T) {
	for name, c := range map[string]struct{ text, want, key string }{
		"after the last one": {
			"## Active Tasks\n- **Step 2**: x\n\n- **Step 1**: y\n\nA note.\n\n## Completed Tasks\n- **Step 7**: z\n",
			"## Active Tasks\n- **Step 2**: x\n\n- **Step 1**: y\n\n- **Step 8**: new\n  - Status: open\n  - Priority: medium\n\nA note.\n\n## Completed Tasks\n- **Step 7**: z\n", "step-8",
		},
		"below the heading": {
			"## Active Tasks\r\n\r\n## Completed Tasks\r\n",
			"## Active Tasks\r\n\r\n- **Step 1**: new\r\n  - Status: open\r\n  - Priority: medium\r\n\r\n## Completed Tasks\r\n", "step-1",
		},
		"in the shape of headings": {
			"## Active Tasks\n### task-0009\n- title: x",
			"## Active Tasks\n### task-0009\n- title: x\n\n### task-0010\n- title: new\n- status: open\n- priority: medium", "task-0010",
		},
		"without a heading": {"# me", "# me\n\n## Active Tasks\n\n- **Step 1**: new\n  - Status: open\n  - Priority: medium", "step-1"},
		"without anything":  {"", "## Active Tasks\n\n- **Step 1**: new\n  - Status: open\n  - Priority: medium\n", "step-1"},
		"with a heading that is an example": {
			"## Task Format\n### Active Tasks\n", "## Task Format\n### Active Tasks\n\n## Active Tasks\n\n- **Step 1**: new\n  - Status: open\n  - Priority: medium\n", "step-1",
		},
	} {
		tasks, _ := ParseTasks(c.text)
		if key := tasks.Add(NewStep{Title: "new"}); key != c.key {
			t.Errorf("%s: the key is %s, want %s", name, key, c.key)
		}
		if d := cmp.Diff(c.want, tasks.String()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestAnAddedStepIsReadAsItWasGiven(t *testing.T) {
	tasks, _ := ParseTasks(NewTasks("dev"))
	key := tasks.Add(NewStep{
		Title: "Fix\nit <!-- now", Priority: PriorityCritical, Tags: []string{"code", "a,b"}, DependsOn: []string{"step-2", "task-001"},
		From: "chief", Text: "## Completed Tasks\n- **Step 9**: mine\n  - Status: done\n```", Least: 41,
	})
	want := []Step{{
		Key: "step-41", Number: 41, Title: "Fix it <! -- now", Status: StatusOpen, Priority: PriorityCritical, Tags: []string{"code", "a b"}, DependsOn: []string{"step-2", "task-001"},
		From: "chief", Text: "## Completed Tasks\n- **Step 9**: mine\n  - Status: done\n```", Line: 5,
	}}
	if d := cmp.Diff(want, stepsOf(t, tasks.String())); d != "" || key != "step-41" {
		t.Error(key, d)
	}
}

// drawLines draws a file of lines that mean something, in any order.
func drawLines(t *rapid.T, lines []string) string {
	var b strings.Builder
	for range rapid.IntRange(0, 25).Draw(t, "lines") {
		b.WriteString(rapid.SampledFrom([]string{"", "", "", "  ", "    ", "\t", " "}).Draw(t, "margin"))
		b.WriteString(rapid.SampledFrom(lines).Draw(t, "line"))
		b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n", " \n", "\n\n", ""}).Draw(t, "end"))
	}
	return b.String()
}

var taskLines = []string{
	"# dev", "## Active Tasks", "## Task Format", "## Completed Tasks", "### Active Tasks", "### task-001", "### task-2: y", "#### More", "- title: x",
	"- **Step 1**: x", "- **Step 2**: y", "* **Step 3:** z", "- [x] **Step 4**: w", "- **Step N**: v", "- Status: open", "* status: done", "- **Status**: BLOCKED",
	"- Status:", "- Result: r <!-- c -->", "- Blocked reason:", "- Retry count: 1", "- Depends on: Step 1, -", "- note", "text", "> quoted", "---", "```", "~~~", "````md", "<!--", "-->", "<!-- x -->", bom,
}

// ownedLines removes the lines of a field from a file.
func withoutField(text, name string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if n, _, ok := cutField(line); !ok || lookupField(n) != name {
			kept = append(kept, strings.TrimRight(line, "\r\n"))
		}
	}
	return strings.Join(kept, "\n")
}

func TestSetReadsBackAndKeepsEverythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawLines(t, taskLines)
		tasks, _ := ParseTasks(text)
		if tasks.String() != text {
			t.Fatalf("%q became %q", text, tasks.String())
		}
		steps := tasks.Steps()
		if len(steps) == 0 {
			return
		}
		at := rapid.IntRange(0, len(steps)-1).Draw(t, "step")
		result := rapid.SampledFrom([]string{"done", "**bold**", ": x", "- **Step 9**: y", "```", ""}).Draw(t, "result")
		if !tasks.Set(steps[at].Key, StepFields{Result: &result}) {
			return
		}
		if got, want := withoutField(tasks.String(), "result"), withoutField(text, "result"); got != want {
			t.Fatalf("more than the result changed: %s", cmp.Diff(want, got))
		}
		again, _ := ParseTasks(tasks.String())
		if d := cmp.Diff(tasks.Steps(), again.Steps()); d != "" {
			t.Fatalf("of %q it is read otherwise: %s", tasks.String(), d)
		}
		if got := again.Steps()[at].Result; got != result {
			t.Fatalf("the result is %q, want %q in %q", got, result, tasks.String())
		}
	})
}

func TestAddOnlyInserts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawLines(t, taskLines)
		tasks, _ := ParseTasks(text)
		before := tasks.Steps()
		key := tasks.Add(NewStep{Title: "new", Text: rapid.SampledFrom([]string{"", "```", "<!--", "-->", "a\n\n- **Step 1**: b"}).Draw(t, "text")})
		after := tasks.Steps()
		if d := cmp.Diff(before, slices.DeleteFunc(slices.Clone(after), func(s Step) bool { return s.Key == key }), cmpopts.IgnoreFields(Step{}, "Line")); d != "" {
			t.Fatalf("others changed: %s", d)
		}
		if len(after) != len(before)+1 || tasks.find(key) < 0 {
			t.Fatalf("%d steps became %d with %s: %q became %q", len(before), len(after), key, text, tasks.String())
		}
		if !isInside(text, tasks.String()) {
			t.Fatalf("%q is not kept in %q", text, tasks.String())
		}
	})
}

// isInside reports whether long has all bytes of short in their order.
func isInside(short, long string) bool {
	for i := range len(long) {
		if short != "" && long[i] == short[0] {
			short = short[1:]
		}
	}
	return short == ""
}

func FuzzTasks(f *testing.F) {
	f.Add("## Active Tasks\n- **Step 1**: x\n  - Status: open\n", "done")
	f.Add(bom+"### task-001\r\n- title: x\r\n- status: open", "a\nb")
	f.Add("```\n- **Step 1**: x\n<!--\n```\n-->", "")
	f.Fuzz(func(t *testing.T, text, result string) {
		tasks, _ := ParseTasks(text)
		if tasks.String() != text {
			t.Fatalf("%q became %q", text, tasks.String())
		}
		for _, s := range tasks.Steps() {
			tasks.Set(s.Key, StepFields{Result: &result})
		}
		tasks.Add(NewStep{Title: result, Text: text})
		again, _ := ParseTasks(tasks.String())
		if d := cmp.Diff(tasks.Steps(), again.Steps()); d != "" {
			t.Fatal(d)
		}
	})
}

func tenThousandSteps() string {
	var b strings.Builder
	b.WriteString("# dev\n\n## Active Tasks\n\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "- **Step %d**: do the thing with the number %d\n  - Status: open\n  - Priority: high\n  - Blocked reason:\n  - Retry count: 0\n  - Depends on: Step %d\n  - Result: \n", i+1, i, max(i, 1))
	}
	b.WriteString("\n## Completed Tasks\n")
	return b.String()
}

func BenchmarkTenThousandSteps(b *testing.B) {
	text, done := tenThousandSteps(), StatusDone
	for b.Loop() {
		tasks, _ := ParseTasks(text)
		if !tasks.Set("step-5000", StepFields{Status: &done}) || len(tasks.String()) != len(text) {
			b.Fatal("not set")
		}
	}
}

func TestANewFieldGoesBelowTheOthersAndNotBehindACommentThatFollows(t *testing.T) {
	const before = "## Active Tasks\n\n- **Step 1**: a\n  - Status: open\n<!-- a note\n  of two lines -->\n- **Step 2**: b\n"
	tasks, _ := ParseTasks(before)
	tasks.Set("step-1", StepFields{Result: new("x")})
	want := strings.Replace(before, "open\n", "open\n  - Result: x\n", 1)
	if diff := cmp.Diff(want, tasks.String()); diff != "" {
		t.Errorf("TASKS.md (-want +got):\n%s", diff)
	}
}
