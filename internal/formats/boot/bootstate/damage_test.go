package bootstate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// checkDamaged recovers a memory with one damaged file. The result must be a valid memory
// that has everything that git or the file still has, or a stop with its reason.
func checkDamaged(t *testing.T, f Found, what string) {
	t.Helper()
	m, repairs, stop := FormatSchemas().Recover(f)
	if stop != nil {
		if stop.Reason.Sentence() == "" || stop.Message == "" {
			t.Fatalf("%s: it stops without a reason: %+v", what, stop)
		}
		return
	}
	if _, wrong := FormatSchemas().ReadState(m.State.Encode()); len(wrong) > 0 {
		t.Fatalf("%s: the state is invalid: %v", what, wrong)
	}
	if _, wrong := FormatSchemas().ReadTodo(m.Tasks.Encode()); len(wrong) > 0 {
		t.Fatalf("%s: the tasks are invalid: %v", what, wrong)
	}
	if m.State.Metadata("kept") == nil && m.State.Metadata("kepu") == nil && !bytes.Contains(f.State.Content, []byte(`"metadata"`)) {
		t.Fatalf("%s: the state is empty: %s", what, m.State.Encode())
	}
	if len(m.Tasks.Tasks()) < 3 {
		t.Fatalf("%s: only %d tasks are left", what, len(m.Tasks.Tasks()))
	}
	// What was put aside or replaced is told.
	changed := string(m.State.Encode()) != encoded(f.State.Content) || string(m.Tasks.Encode()) != encoded(f.Tasks.Content)
	if changed && len(repairs) == 0 {
		t.Fatalf("%s: it was changed, and nobody is told", what)
	}
	for _, r := range repairs {
		if !strings.Contains(m.Changelog, r.Note) || !strings.Contains(r.Note, "recovered") {
			t.Fatalf("%s: the repair %q is not in the changelog", what, r.Note)
		}
	}
}

func encoded(src []byte) string {
	if s, wrong := FormatSchemas().ReadState(src); len(wrong) == 0 {
		return string(s.Encode())
	}
	if todo, wrong := FormatSchemas().ReadTodo(src); len(wrong) == 0 {
		return string(todo.Encode())
	}
	return ""
}

func damaged(state bool, content []byte) Found {
	f := found()
	if state {
		f.State.Content = content
	} else {
		f.Tasks.Content = content
	}
	return f
}

func TestAFileThatIsCutAtAnyByteIsRecovered(t *testing.T) {
	for _, state := range []bool{true, false} {
		src := []byte(goodTodo)
		if state {
			src = []byte(goodState)
		}
		for n := 0; n < len(src); n += sample.Size(5, 1) {
			f := damaged(state, src[:n])
			checkDamaged(t, f, "cut")
			if _, repairs, stop := FormatSchemas().Recover(f); n < len(src)-1 && (stop != nil || len(repairs) != 1) {
				t.Fatalf("cut after %d bytes: %v %v, want one repair", n, repairs, stop)
			}
		}
	}
}

func TestAFileWithAnyBitFlippedIsRecoveredOrStops(t *testing.T) {
	for _, state := range []bool{true, false} {
		src := []byte(goodTodo)
		if state {
			src = []byte(goodState)
		}
		for n := 0; n < 8*len(src); n += sample.Size(13, 1) {
			flipped, i := slices.Clone(src), n/8
			flipped[i] ^= 1 << (n % 8)
			checkDamaged(t, damaged(state, flipped), "bit "+string(flipped[max(0, i-10):min(len(src), i+10)]))
		}
	}
}

func TestTasksThatAreWholeBeforeACutAreKeptWithoutGit(t *testing.T) {
	for n := range len(goodTodo) {
		f := damaged(false, []byte(goodTodo[:n]))
		f.TasksHistory = nil
		m, _, stop := FormatSchemas().Recover(f)
		if stop != nil {
			t.Fatalf("cut after %d bytes: %v", n, stop)
		}
		for _, id := range []string{"T-1", "T-2", "T-3"} {
			end := strings.Index(goodTodo, `{"id": "`+id)
			end += strings.IndexByte(goodTodo[end:], '\n') - 1
			if id == "T-3" {
				end++
			}
			if _, there := m.Tasks.Task(id); !there && n > end {
				t.Fatalf("cut after %d bytes: %s is lost", n, id)
			}
		}
	}
}

func TestAFileWithAnyDamageIsRecoveredOrStops(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		state := rapid.Bool().Draw(rt, "state")
		src := []byte(goodTodo)
		if state {
			src = []byte(goodState)
		}
		from := rapid.IntRange(0, len(src)).Draw(rt, "from")
		to := rapid.IntRange(from, len(src)).Draw(rt, "to")
		by := rapid.SampledFrom([]string{"", "\x00\x00\x00", "{", "}]}", `"`, "<<<<<<< ours\n", goodTodo, goodState, "\xff"}).Draw(rt, "by")
		content := slices.Concat(src[:from], []byte(by), src[to:])
		f := damaged(state, content)
		m, _, stop := FormatSchemas().Recover(f)
		if stop != nil {
			return
		}
		if _, wrong := FormatSchemas().ReadTodo(m.Tasks.Encode()); len(wrong) > 0 {
			rt.Fatalf("%q: %v", content, wrong)
		}
		// Whole lines may be cut out of a file by people: then it is JSON, with fewer tasks.
		if _, wrong := FormatSchemas().ReadTodo(f.Tasks.Content); len(wrong) > 0 && len(m.Tasks.Tasks()) < 3 && !isJSON(f.Tasks.Content) {
			rt.Fatalf("%q: only %d tasks are left", content, len(m.Tasks.Tasks()))
		}
	})
}

// bigTodo is about as long as a file may be.
func bigTodo(status string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"version": "1.0.0", "tasks": [`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `{"id": "%d", "title": "x", "status": %q, "priority": "low", "dependencies": ["%d"]},`, i, status, i+1)
	}
	b.WriteString(`{"id": "20000", "title": "x", "status": "pending", "priority": "low"}]}`)
	return b.Bytes()
}

func TestAFileOfManyTasksIsReadPlannedAndMerged(t *testing.T) {
	x := FormatSchemas()
	big, wrong := x.ReadTodo(bigTodo("pending"))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	d, planned := Plan(stateWith(""), big, "make 1 thing", nil, now)
	_, begun := Begin(stateWith(""), planned, d.Task, now)
	m, wrong := x.Merge(memoryAt(1, big), memoryAt(2, begun))
	if len(wrong) > 0 || len(m.Tasks.Tasks()) != 20_002 {
		t.Errorf("%d tasks, %v", len(m.Tasks.Tasks()), wrong)
	}
	if got := DescribeTasks(Todo{}, m.Tasks); len(got) > 1000 {
		t.Errorf("%d bytes describe it", len(got))
	}
	for name, content := range map[string][]byte{
		"wip": bigTodo("wip"), "other words": bigTodo("Completed"), "cut": bigTodo("pending")[:1<<20], "braces": bytes.Repeat([]byte("{"), MaxBytes),
		"nested": bytes.Repeat([]byte(`{"a":`), MaxBytes/5),
	} {
		f := damaged(false, content)
		m, repairs, stop := x.Recover(f)
		if stop != nil || len(repairs) != 1 || len(repairs[0].Note) > 2000 {
			t.Errorf("%s: %v, %d repairs", name, stop, len(repairs))
		}
		if n := len(m.Tasks.Tasks()); n < 3 {
			t.Errorf("%s: %d tasks", name, n)
		}
	}
	for name, content := range map[string][]byte{
		"unknown":    bigTodo("asleep"),
		"numbers":    append(append([]byte("[0"), bytes.Repeat([]byte(",0"), MaxBytes/2-10)...), ']'),
		"surrogates": append(append([]byte("[0"), bytes.Repeat([]byte(`,"\udc00"`), MaxBytes/9-10)...), ']'),
	} {
		if _, _, stop := x.Recover(damaged(false, content)); stop == nil || stop.Reason != loop.ReasonStateManual || len(stop.Findings) == 0 || len(stop.Findings) > 1100 {
			t.Errorf("%s: %v, want it left to a person", name, stop)
		}
	}
}
