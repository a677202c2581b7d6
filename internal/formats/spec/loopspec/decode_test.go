package loopspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// full is a spec with each field of the format.
const full = `{
  "id": "lp_0a1b2c3",
  "agentId": "fixer",
  "goal": "No <b> & no \"quotes\" are lost.",
  "loopType": "deterministic",
  "trigger": {
    "type": "event",
    "on": "file:src/**"
  },
  "stateSource": "test output",
  "gates": [
    {
      "name": "tests_pass",
      "kind": "command",
      "check": "` + "`go test ./...`" + `"
    },
    {
      "name": "ui",
      "kind": "reviewer",
      "check": "It reads well.",
      "reviewer": {
        "agent": "critic",
        "model": "other"
      }
    }
  ],
  "budget": {
    "maxIterations": 8,
    "maxTokens": 400000,
    "maxWallClockMs": 2700000,
    "maxItems": 3
  },
  "giveUp": "same gate fails 3× with no diff → escalate",
  "errorPolicy": "retry once w/ backoff, then pause + log",
  "guardrails": [
    "edits limited to /src and /tests"
  ],
  "humanGate": "open a PR, do not merge",
  "memoryWrites": "what worked",
  "role": "coordinator",
  "concurrency": "sequential",
  "parentId": "lp_0000001",
  "childIds": [
    "lp_0000002"
  ],
  "boardEntry": "b7",
  "createdAt": 1700000000000,
  "updatedAt": 1700000000001
}
`

func TestADocumentIsReadAndWrittenAsItWas(t *testing.T) {
	doc, findings := Decode([]byte(full))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if diff := cmp.Diff(full, string(Encode(doc.Spec))); diff != "" {
		t.Errorf("(-read +written):\n%s", diff)
	}
	if doc.Spec.Budget.MaxItems != 3 || doc.Spec.Gates[1].Reviewer.Model != "other" || doc.Spec.ChildIDs[0] != "lp_0000002" {
		t.Errorf("the spec is %+v", doc.Spec)
	}
}

// TestTheFieldsAreThoseOfTheFormat names them once more, in their order.
func TestTheFieldsAreThoseOfTheFormat(t *testing.T) {
	names := func(v any) string {
		var all []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, name)
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{Spec{}, "id agentId goal loopType trigger stateSource gates budget giveUp errorPolicy guardrails humanGate memoryWrites role concurrency " +
			"parentId childIds boardEntry createdAt updatedAt"},
		{Trigger{}, "type on"},
		{loop.Gate{}, "name kind check reviewer"},
		{loop.Reviewer{}, "agent model"},
		{Budget{}, "maxIterations maxTokens maxWallClockMs maxItems"},
		{Run{}, "spec status iterations tokensUsed startedAt rubric updatedAt"},
		{Iteration{}, "n sensed decided acted feedback verdict gate tokens ts"},
		{Rubric{}, "id criteria updatedAt"},
	} {
		if got := names(c.v); got != c.want {
			t.Errorf("%T has the fields %s, want %s", c.v, got, c.want)
		}
	}
}

func TestADocumentIsRefusedAtItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                   {"", "1:1: not JSON: unexpected end of JSON input"},
		"cut off":                 {"{\"goal\": \"x\"", "1:12: not JSON: unexpected end"},
		"text behind it":          {"{}\n x", "2:2: not JSON: invalid character 'x' after top-level value"},
		"two documents":           {"{} {}", "1:4: not JSON: invalid character '{' after top-level value"},
		"a trailing comma":        {"{\"goal\": \"x\",}", "1:14: not JSON: invalid character '}'"},
		"a comment":               {"// hi\n{}", "1:1: not JSON"},
		"not an object":           {"[]", "1:1: expected an object, found a list"},
		"null":                    {" null", "1:2: expected an object, found null"},
		"a line break in text":    {"{\"goal\": \"a\nb\"}", "1:12: not JSON: invalid character '\\n' in string literal"},
		"not UTF-8":               {"{\n\"goal\": \"é\xff\"}", "2:11: not UTF-8: write the document in UTF-8"},
		"half of a character":     {`{"goal": "\ud83d x"}`, "1:10: goal: half of a character"},
		"the other half":          {`{"goal": "x\uDE00"}`, "1:10: goal: half of a character"},
		"a NUL":                   {`{"goal": "a\u0000b"}`, "1:10: goal: contains a NUL"},
		"an unknown field":        {`{"gaol": "x"}`, "1:2: gaol: unknown field; did you mean goal? there are: id, agentId, goal"},
		"a field in another case": {`{"Goal": "x"}`, "1:2: Goal: unknown field; did you mean goal?"},
		"an unknown field inside": {`{"budget": {"maxTokns": 1}}`, "1:13: budget.maxTokns: unknown field; did you mean maxTokens?"},
		"an unknown field of a gate": {
			`{"gates": [{}, {"chek": 1}]}`, "1:17: gates[1].chek: unknown field; did you mean check? there are: name, kind, check, reviewer",
		},
		"a field twice":               {"{\"goal\": \"a\",\n \"goal\": \"b\"}", "2:2: goal: written twice; remove one"},
		"a field twice inside":        {`{"trigger": {"type": "manual", "type": "manual"}}`, "1:32: trigger.type: written twice; remove one"},
		"a number for text":           {`{"goal": 7}`, "1:10: goal: expected text, found a number; write it in quotes"},
		"a text for a number":         {`{"createdAt": "7"}`, "1:15: createdAt: expected a number, found text; write it without quotes"},
		"a text for a list":           {`{"guardrails": "no push"}`, `1:16: guardrails: expected a list, found text; write ["no push"]`},
		"a list for an object":        {`{"trigger": ["manual"]}`, "1:13: trigger: expected an object, found a list"},
		"true for text":               {`{"goal": true}`, "1:10: goal: expected text, found true or false"},
		"null for text":               {`{"parentId": null}`, "1:14: parentId: expected text, found null; remove the field if it has no value"},
		"an object in a list of text": {`{"guardrails": ["x", {}]}`, "1:22: guardrails[1]: expected text, found an object"},
		"a fraction":                  {`{"budget": {"maxItems": 1.5}}`, "1:25: budget.maxItems: '1.5' is not a whole number of at least 1"},
		"zero tokens":                 {`{"budget": {"maxTokens": 0}}`, "1:26: budget.maxTokens: '0' is not a whole number of at least 1"},
		"less than zero":              {`{"budget": {"maxIterations": -8}}`, "1:30: budget.maxIterations: '-8' is not a whole number of at least 1"},
		"a huge number":               {`{"budget": {"maxTokens": 9007199254740992}}`, "1:26: budget.maxTokens: '9007199254740992' is not"},
		"an infinite number":          {`{"budget": {"maxTokens": 1e999}}`, "1:26: budget.maxTokens: '1e999' is not"},
		"almost a whole number":       {`{"createdAt": 1.0000001}`, "1:15: createdAt: '1.0000001' is not a whole number"},
		"a huge negative number":      {`{"createdAt": -1e300}`, "1:15: createdAt: '-1e300' is not a whole number"},
		"a huge number of floats":     {`{"createdAt": 1e300}`, "1:15: createdAt: '1e300' is not a whole number"},
		"too large for any integer":   {`{"createdAt": 92233720368547758080}`, "1:15: createdAt: '92233720368547758080' is not"},
		"a fix for a long text":       {`{"guardrails": "` + strings.Repeat("é", 41) + `"}`, "1:16: guardrails: expected a list, found text; write [\"" + strings.Repeat("é", 40) + "…\"]"},
		"true for a number":           {`{"createdAt": true}`, "1:15: createdAt: expected a number, found true or false"},
		"an object for text":          {`{"goal": {}}`, "1:10: goal: expected text, found an object"},
		"a time before 1970":          {`{"updatedAt": -1}`, "1:15: updatedAt: '-1' is not a whole number of at least 0"},
		"too deep":                    {`{"x": ` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + "}", "1:22: x[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: nested more than 16 deep"},
		"as deep as may be":           {`{"x": ` + strings.Repeat("[", 15) + strings.Repeat("]", 15) + "}", "1:2: x: unknown field; "},
		"far too deep":                {strings.Repeat("[", 20000), "1:10001: not JSON: invalid character '[' exceeded max depth"},
		"too large":                   {`{"goal": "` + strings.Repeat("x", MaxBytes) + `"}`, "1:1: 262156 bytes are more than the 262144 that a spec may have"},
		"after a character of four":   {`{"goal": "😀", "x": 1}`, "1:15: x: unknown field; "},
		"after a tab":                 {"{\t\"goal\": 1}", "1:11: goal: expected text, found a number; write it in quotes"},
		"a name to hide things":       {`{"go\u001b[2Jal": 1}`, "1:2: go\ufffd[2Jal: unknown field; "},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := Decode([]byte(c.text))
			if len(findings) != 1 || !strings.HasPrefix(findings[0].String(), c.want) || strings.HasPrefix(findings[0].String(), c.want+";") {
				t.Errorf("%v, want one finding %s", findings, c.want)
			}
			if fault := AsFault(findings); fault == nil || fault.Exit != loop.ExitUnreadable || !strings.Contains(fault.Why, c.want) {
				t.Errorf("the fault is %+v", fault)
			}
		})
	}
}

func TestEverythingThatIsWrongIsSaidAtOnceInOrder(t *testing.T) {
	_, findings := Decode([]byte("{\n\"id\": 1, \"budget\": {\"maxItems\": 0},\n\"x\": 1, \"goal\": \"a\", \"goal\": 2,\n\"gates\": [{\"name\": []}, 7]}"))
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Path))
	}
	want := []string{"2:7 id", "2:33 budget.maxItems", "3:1 x", "3:22 goal", "4:20 gates[0].name", "4:25 gates[1]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatTheTextsHideIsSaidInOrderToo(t *testing.T) {
	_, findings := Decode([]byte("{\"x\": 1,\n \"goal\": \"\\ud83d\",\n \"y\": \"\\u0000\"}"))
	var lines []int
	for _, f := range findings {
		lines = append(lines, f.Line)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 3}, lines); diff != "" {
		t.Errorf("%v (-want +got):\n%s", findings, diff)
	}
	if why := AsFault(findings).Why; strings.Count(why, "\n") != 3 {
		t.Errorf("the fault says %q, want a line for each finding", why)
	}
}

func TestAPlaceBehindAnEscapeIsFound(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{`/\ud83d\ude00`, "1:53"},
		{`/\ud800\udc00`, "1:53"},
		{`/\udbff\udfff`, "1:53"},
		{`/\ue000`, "1:47"},
		{`/\ud7ff`, "1:47"},
		{`/\u0041`, "1:47"},
		{`/\/x`, "1:44"},
		{"/😀", "1:42"},
		{"/é", "1:42"},
		{`/\ud83d\ude00\u0041`, "1:59"},
	} {
		doc, findings := Decode([]byte(`{"guardrails": ["edits limited to ` + c.path + ` and /.."]}`))
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		_, all := doc.Spec.Rules()
		for _, f := range doc.Locate(all) {
			if got := fmt.Sprintf("%d:%d", f.Line, f.Column); f.Path == "guardrails[0]" && got != c.want {
				t.Errorf("%s: at %s, want %s (%s)", c.path, got, c.want, f.Message)
			}
		}
	}
}

func TestNumbersOfOtherProgramsAreRead(t *testing.T) {
	doc, findings := Decode([]byte(`{"budget": {"maxIterations": 8.0, "maxTokens": 4e5, "maxWallClockMs": 2.7E6}, "createdAt": 1.7e12}`))
	want := Budget{MaxIterations: 8, MaxTokens: 400000, MaxWallClockMs: 2700000}
	if doc.Spec.Budget != want || doc.Spec.CreatedAt != 1_700_000_000_000 || len(findings) > 0 {
		t.Errorf("%+v %v, want %+v", doc.Spec, findings, want)
	}
}

func TestAByteOrderMarkIsSkipped(t *testing.T) {
	if doc, findings := Decode([]byte("\ufeff" + full)); len(findings) > 0 || doc.Spec.AgentID != "fixer" {
		t.Errorf("%v", findings)
	}
}

func TestAnEscapedReplacementCharacterIsNotHalfOfACharacter(t *testing.T) {
	for _, text := range []string{`{"goal": "\uFFFD"}`, "{\"goal\": \"\ufffd\"}", `{"goal": "\ud83d\ude00"}`} {
		if _, findings := Decode([]byte(text)); len(findings) > 0 {
			t.Errorf("%s: %v", text, findings)
		}
	}
}

func TestFindingsAreAtTheWordInTheDocument(t *testing.T) {
	for _, c := range []struct{ text, path, want string }{
		{`same gate fails 3× whenever`, "giveUp", "1:32"},
		{`same gate fails 3\u00d7 \u2192 dance`, "giveUp", "1:44"},
		{`\"same gate`, "giveUp", "1:13"},
		{`\ud83d\ude00 same`, "giveUp", "1:13"},
		{`same \ud83d\ude00`, "giveUp", "1:18"},
		{`same \ud800\udc00`, "giveUp", "1:18"},
		{`same \udbff\udfff x`, "giveUp", "1:18"},
		{`\ud83d\ude00\ud83d\ude00 x`, "giveUp", "1:13"},
		{`\u0073ame \ue000 x`, "giveUp", "1:23"},
		{`same gate \ud83d\ude00`, "giveUp", "1:23"},
		{`same\tgate\n\u0066ails never`, "giveUp", "1:36"},
	} {
		doc, findings := Decode([]byte(`{"giveUp": "` + c.text + `"}`))
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		_, all := doc.Spec.Rules()
		for _, f := range doc.Locate(all) {
			if got := fmt.Sprintf("%d:%d", f.Line, f.Column); f.Path == c.path && got != c.want {
				t.Errorf("%s: at %s, want %s (%s)", c.text, got, c.want, f.Message)
			}
		}
	}
}

func TestWhatIsMissingIsReportedWhereItBelongs(t *testing.T) {
	doc, _ := Decode([]byte("\n{\"trigger\":\n {}, \"gates\": [{},\n  {\"kind\": \"command\"}]}"))
	at := map[string]string{}
	for _, f := range doc.Locate(Validate(doc.Spec.WithDefaults(), Machine{})) {
		at[f.Path] = fmt.Sprintf("%d:%d", f.Line, f.Column)
	}
	for path, want := range map[string]string{"goal": "2:1", "trigger.type": "3:2", "gates[0].name": "3:16", "gates[1].check": "4:3"} {
		if at[path] != want {
			t.Errorf("%s is at %q, want %s", path, at[path], want)
		}
	}
}

// drawText draws a text with what JSON and terminals treat in a way of their own.
func drawText(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "x", "<a href=\"b\">&</a>", "\u2028\u2029", "a\nb\tc\\", "`go test ./...`", "é × → 😀", "\ufffd", "\x1b[2J\x7f", "null"}),
		rapid.String(),
	).Draw(t, label)
}

// drawSpec draws a spec as Decode can return it.
func drawSpec(t *rapid.T) Spec {
	text := func(label string) string { return strings.ReplaceAll(drawText(t, label), "\x00", "") }
	texts := func(label string, most int) []string {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return strings.ReplaceAll(drawText(t, label), "\x00", "") }), 0, most).Draw(t, label+"s")
	}
	number := func(label string, least int64) int64 {
		return rapid.OneOf(rapid.SampledFrom([]int64{1, 8, 400_000, mostExact}), rapid.Int64Range(least, mostExact)).Draw(t, label)
	}
	s := Spec{
		ID: text("id"), AgentID: text("agent"), Goal: text("goal"), LoopType: loop.Determinism(text("type")),
		Trigger: Trigger{TriggerType(text("trigger")), text("on")}, StateSource: text("source"),
		Budget: Budget{number("iterations", 1), number("tokens", 1), number("wall", 1), number("items", 1)},
		GiveUp: text("give up"), ErrorPolicy: text("policy"), Guardrails: texts("guardrail", 3), HumanGate: text("gate"), MemoryWrites: text("memory"),
		Role: Role(text("role")), Concurrency: Concurrency(text("concurrency")), ParentID: text("parent"), ChildIDs: texts("child", 2),
		BoardEntry: text("board"), CreatedAt: number("created", 0), UpdatedAt: number("updated", 0),
	}
	if rapid.Bool().Draw(t, "no items") {
		s.Budget.MaxItems = 0
	}
	for range rapid.IntRange(0, 3).Draw(t, "gates") {
		s.Gates = append(s.Gates, loop.Gate{
			Name: text("name"), Kind: loop.GateKind(text("kind")), Check: text("check"), Reviewer: loop.Reviewer{Agent: text("reviewer"), Model: text("model")},
		})
	}
	return s
}

// checkRoundTrip sends a spec out and in again.
func checkRoundTrip(t rapid.TB, s Spec) {
	t.Helper()
	first := Encode(s)
	doc, findings := Decode(first)
	if len(findings) > 0 {
		t.Fatalf("%v\n%s", findings, first)
	}
	if second := Encode(doc.Spec); !bytes.Equal(first, second) {
		t.Fatalf("(-first +second):\n%s", cmp.Diff(string(first), string(second)))
	}
	// An empty list and none are written alike.
	if diff := cmp.Diff(s, doc.Spec, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-written +read):\n%s", diff)
	}
	// A reader of JSON that is not ours sees the same.
	var plain Spec
	if err := json.Unmarshal(first, &plain); err != nil || !bytes.Equal(Encode(plain), first) {
		t.Fatalf("encoding/json reads it otherwise: %v", err)
	}
}

func TestASpecIsTheSameAfterExportAndImport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkRoundTrip(t, drawSpec(t)) })
	specs := rapid.Custom(drawSpec)
	for seed := range sample.Size(200, 100_000) {
		checkRoundTrip(t, specs.Example(seed))
	}
}
