package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/report"
)

func TestAReportIsReadWhole(t *testing.T) {
	text := `{
  "outcome": "done", "summary": "put it right", "reason": "because", "no_change": true, "item": "pr=31", "items": ["a", "b"],
  "state": {"priority": ["[P1] x"], "watch": [], "noise": null}, "readiness": 95, "pitfalls": ["p"], "memory": ["m"],
  "messages": [{"to": "@ann", "kind": "note", "content": "hello"}], "handoff": "go on there",
  "commands": [{"argv": ["go", "test", "./..."], "why": "to see it", "expect": {"exit": 1, "output": "FAIL"}}, {"argv": ["ls"]}]
}
`
	want := report.Report{
		Outcome: report.Done, Summary: "put it right", Reason: "because", NoChange: true, Item: "pr=31", Items: []string{"a", "b"},
		State: &report.State{Priority: []string{"[P1] x"}, Watch: []string{}}, Readiness: new(95), Pitfalls: []string{"p"},
		Memory: []string{"m"}, Messages: []report.Message{{To: "@ann", Kind: "note", Content: "hello"}}, Handoff: "go on there",
		Commands: []report.Command{{Argv: []string{"go", "test", "./..."}, Why: "to see it", Expect: &report.Expect{Exit: 1, Output: "FAIL"}}, {Argv: []string{"ls"}}},
	}
	got, err := report.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestWhatClaimsNothingIsNoError(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"white space":        " \r\n\t\n",
		"a byte order mark":  "\ufeff",
		"both":               "\ufeff \n",
		"an object of none":  "{}",
		"null":               "null",
		"every field null":   `{"outcome":null,"summary":null,"items":null,"state":null,"readiness":null}`,
		"fields of tomorrow": `{"verdict":"pass","result":{"outcome":"done"},"certainty":0.7}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := report.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(report.Report{}, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpaceAroundAReportMeansNothing(t *testing.T) {
	for name, text := range map[string]string{
		"none":              `{"outcome":"quiet"}`,
		"a byte order mark": "\ufeff{\"outcome\":\"quiet\"}",
		"Windows lines":     "\r\n{\r\n\"outcome\": \"quiet\"\r\n}\r\n",
		"tabs and more":     "\t \n{\"outcome\":\t\"quiet\"}\n\n \t",
		"fields beside it":  `{"later": [1, {"outcome": "done"}], "outcome": "quiet"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := report.Parse([]byte(text)); err != nil || got.Outcome != report.Quiet {
				t.Errorf("Parse = %+v, %v; want quiet", got, err)
			}
		})
	}
}

// TestTextThatHoldsASignalIsNoSignal is the corpus of completions that other
// programs took for real: the word echoed from the prompt, promised in prose,
// wrapped in an envelope, or read in a file.
func TestTextThatHoldsASignalIsNoSignal(t *testing.T) {
	const signal = `{"outcome":"done"}`
	quotedSignal := `"{\"outcome\":\"done\"}"`
	for name, text := range map[string]string{
		"prose around it":                 "When finished, write " + signal + " into the file.",
		"prose before it":                 "All done!\n" + signal,
		"prose behind it":                 signal + "\nThat is what I would write.",
		"a fenced block":                  "```json\n" + signal + "\n```",
		"a promise tag":                   "<promise>COMPLETE</promise>",
		"the bare word":                   "done",
		"the word as a string":            `"done"`,
		"a signal as a string":            quotedSignal,
		"a list of signals":               "[" + signal + "]",
		"two signals":                     signal + signal,
		"one signal a line":               signal + "\n" + signal + "\n",
		"an event stream":                 "data: " + signal + "\n\n",
		"an assistant's message":          `{"type":"assistant","message":{"content":[{"type":"text","text":` + quotedSignal + `}]}}`,
		"a tool's result":                 `{"type":"tool_result","content":` + quotedSignal + `}`,
		"an envelope":                     `{"result":` + signal + `}`,
		"the summary":                     `{"summary":` + quotedSignal + `}`,
		"the findings":                    `{"items":["outcome: done",` + quotedSignal + `]}`,
		"a message to somebody":           `{"messages":[{"to":"@a","kind":"outcome","content":"done"}]}`,
		"a key that only looks like it":   `{"outcome ":"done","out_come":"done"}`,
		"a comment":                       "// " + signal + "\n{}",
		"half of it":                      `{"outcome":"done"`,
		"a word that is none of the five": `{"outcome":"Done."}`,
		"shouted":                         `{"outcome":"DONE"}`,
		"a list of words":                 `{"outcome":["done"]}`,
		"true":                            `{"outcome":true}`,
		"UTF-16":                          "\xff\xfe{\x00\"\x00o\x00",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := report.Parse([]byte(text)); got.Outcome != "" {
				t.Errorf("Parse = %+v, %v; want no outcome", got, err)
			}
		})
	}
}

func TestABrokenReportIsNamedWithItsPlace(t *testing.T) {
	long := strings.Repeat("9", 1<<19)
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":                             {"{\"outcome\": done}", "not JSON at line 1 column 13"},
		"on a later line":                     {"{\n  \"summary\": \"ok\",\n  outcome: \"done\"\n}", "line 3 column 3"},
		"behind letters of more than a byte":  {"{\"summary\": \"Ärger 😀\", x}", "line 1 column 24"},
		"behind a byte order mark":            {"\ufeff{x}", "line 1 column 2"},
		"a line feed in a string":             {"{\"summary\":\"a\nb\"}", "line 1 column 14"},
		"a comma too many":                    {`{"summary":"a",}`, "line 1 column 16"},
		"a comment":                           {"{ // hello\n}", "line 1 column 3"},
		"cut off in a string":                 {`{"summary":"half of`, "cut off after 19 bytes"},
		"cut off in an object":                {`{"summary":"a"`, "cut off after 14 bytes"},
		"cut off in a word":                   {`{"no_change":tr`, "cut off after 15 bytes"},
		"something behind it":                 {"{} x", "goes on after its JSON object, at line 1 column 4"},
		"something behind it, lines later":    {"{}\r\n\r\n  true", "line 3 column 3"},
		"a bracket behind it":                 {"{}]", "line 1 column 3"},
		"a list":                              {"[]", "the report is a JSON array at line 1 column 1, expected an object"},
		"a string":                            {`"done"`, "the report is a JSON string at line 1"},
		"a number for a text":                 {"{\n\"summary\": 1}", `field "summary" is a JSON number at line 2 column 12, expected a string`},
		"a text for a list":                   {`{"items":"x"}`, `field "items" is a JSON string at line 1 column 12, expected a list`},
		"a number in a list":                  {`{"state":{"watch":["a",7]}}`, `field "state.watch" is a JSON number at line 1 column 24, expected a string`},
		"a list for an object":                {`{"state":[]}`, `field "state" is a JSON array`},
		"a text for yes or no":                {`{"no_change":"yes"}`, "expected true or false"},
		"a fraction":                          {`{"readiness":3.5}`, `"readiness" is a JSON number 3.5 at line 1 column 16, expected a whole number`},
		"a number that no computer holds":     {`{"readiness":` + long + `}`, `"readiness" is a JSON number 99999`},
		"an unknown outcome":                  {`{"outcome":"ok"}`, `outcome "ok" is not one of done, blocked, failed, quiet, escalate, continue`},
		"nothing to go on with":               {`{"outcome":"continue"}`, "outcome continue needs commands"},
		"commands of who is blocked":          {`{"outcome":"blocked","reason":"x","commands":[{"argv":["ls"]}]}`, "commands are run with outcome done or continue, and not with blocked"},
		"a line for a shell":                  {`{"commands":[{"argv":"ls -l"}]}`, `field "commands.argv" is a JSON string at line 1 column 28, expected a list`},
		"a command as a text":                 {`{"commands":["ls"]}`, `field "commands" is a JSON string at line 1 column 17, expected an object`},
		"no program":                          {`{"commands":[{"argv":["ls"]},{"argv":[]}]}`, "commands[1].argv names no program"},
		"an empty program":                    {`{"commands":[{"argv":["","x"]}]}`, "commands[0].argv names no program"},
		"a NUL in a command":                  {`{"commands":[{"argv":["ls","\u0000"]}]}`, "commands[0].argv has a NUL"},
		"an exit status of nobody":            {`{"commands":[{"argv":["ls"],"expect":{"exit":256}}]}`, "commands[0].expect.exit is 256"},
		"a text as an expectation":            {`{"commands":[{"argv":["ls"],"expect":"ok"}]}`, `field "commands.expect" is a JSON string`},
		"more commands than are run":          {`{"commands":[` + strings.Repeat(`{"argv":["ls"]},`, 20) + `{"argv":["ls"]}]}`, "commands has 21 entries, at most 20"},
		"an outcome that is a whole book":     {`{"outcome":"` + long + `"}`, "is not one of done"},
		"blocked without a reason":            {`{"outcome":"blocked"}`, "what does the step wait for?"},
		"blocked with a blank reason":         {`{"outcome":"blocked","reason":" \n"}`, "what does the step wait for?"},
		"readiness below nothing":             {`{"readiness":-1}`, "readiness -1 is not between 0 and 100"},
		"readiness above all":                 {`{"readiness":101}`, "readiness 101 is not between 0 and 100"},
		"bytes that are no UTF-8":             {"{\n\"summary\":\"a\xffb\"}", "not UTF-8 at line 2 column 13"},
		"half a letter at the end":            {"{}\xe2\x82", "not UTF-8 at line 1 column 3"},
		"UTF-16":                              {"\xff\xfe{\x00", "not UTF-8 at line 1 column 1"},
		"a byte order mark in the middle":     {"{}\ufeff", "goes on after"},
		"deeper than any report":              {strings.Repeat("[", 1<<19), "not JSON"},
		"a megabyte and one":                  {strings.Repeat(" ", report.MaxSize+1), "1048577 bytes, at most 1048576"},
		"a NUL":                               {"{\"summary\":\"\x00\"}", "line 1 column 13"},
		"nothing but a NUL":                   {"\x00", "line 1 column 1"},
		"a state of the wrong kind in a list": {`{"messages":[{"to":1}]}`, `"messages.to" is a JSON number`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := report.Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Parse = %.200v, want an error that says %q", err, c.want)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes: %.400s…", len(err.Error()), err)
			}
			if diff := cmp.Diff(report.Report{}, got); diff != "" {
				t.Errorf("a report comes with the error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEdgesOfWhatIsAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"readiness 0":           `{"readiness":0}`,
		"readiness 100":         `{"readiness":100}`,
		"commands alone":        `{"commands":[{"argv":["ls"],"expect":{"exit":255}}]}`,
		"to go on":              `{"outcome":"continue","commands":[` + strings.Repeat(`{"argv":["ls",""]},`, 19) + `{"argv":["ls"]}]}`,
		"blocked with a reason": `{"outcome":"blocked","reason":"waits for the key"}`,
		"a megabyte":            `{}` + strings.Repeat(" ", report.MaxSize-2),
		"escapes":               `{"summary":"\u0000\ud800\u2028\"\\"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := report.Parse([]byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// written is a report as an agent's library would write it.
func written(t interface{ Fatal(...any) }, r report.Report) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// same compares two reports. A list without an entry and no list at all claim
// the same, but in State, where they do not.
func same(a, b report.Report) string {
	for _, r := range []*report.Report{&a, &b} {
		for _, list := range []*[]string{&r.Items, &r.Pitfalls, &r.Memory} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		if len(r.Messages) == 0 {
			r.Messages = nil
		}
		if len(r.Commands) == 0 {
			r.Commands = nil
		}
	}
	return cmp.Diff(a, b)
}

func TestAReportThatIsWrittenIsReadBackTheSame(t *testing.T) {
	list := rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfN(rapid.String(), 0, 3))
	reports := rapid.Custom(func(t *rapid.T) report.Report {
		r := report.Report{
			Outcome: rapid.SampledFrom([]report.Outcome{"", report.Done, report.Blocked, report.Failed, report.Quiet, report.Escalate}).Draw(t, "outcome"),
			Summary: rapid.String().Draw(t, "summary"), Reason: "because " + rapid.String().Draw(t, "reason"), NoChange: rapid.Bool().Draw(t, "no change"),
			Item: rapid.String().Draw(t, "item"), Items: list.Draw(t, "items"), Pitfalls: list.Draw(t, "pitfalls"), Memory: list.Draw(t, "memory"),
			Handoff: rapid.String().Draw(t, "handoff"),
		}
		if r.Outcome == report.Done || r.Outcome == "" {
			for range rapid.IntRange(0, 2).Draw(t, "commands") {
				c := report.Command{Argv: []string{"x" + strings.ReplaceAll(rapid.String().Draw(t, "argv"), "\x00", "")}, Why: rapid.String().Draw(t, "why")}
				if rapid.Bool().Draw(t, "expects") {
					c.Expect = &report.Expect{Exit: rapid.IntRange(0, 255).Draw(t, "exit"), Output: rapid.String().Draw(t, "output")}
				}
				r.Commands = append(r.Commands, c)
			}
		}
		if rapid.Bool().Draw(t, "has a state") {
			r.State = &report.State{Priority: list.Draw(t, "priority"), Watch: list.Draw(t, "watch"), Noise: list.Draw(t, "noise")}
		}
		if rapid.Bool().Draw(t, "is sure") {
			r.Readiness = new(rapid.IntRange(0, 100).Draw(t, "readiness"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "messages") {
			r.Messages = append(r.Messages, report.Message{To: rapid.String().Draw(t, "to"), Kind: "note", Content: rapid.String().Draw(t, "content")})
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		r := reports.Draw(t, "report")
		got, err := report.Parse(written(t, r))
		if err != nil {
			t.Fatal(err)
		}
		if diff := same(r, got); diff != "" {
			t.Fatalf("read back (-written +read):\n%s", diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "\ufeff{}", `{"outcome":"done","no_change":true}`, `{"outcome":"blocked","reason":"x"}`, `{"outcome":"blocked"}`,
		`{"state":{"priority":["[P1] x"],"watch":[],"noise":null},"readiness":95}`, `{"items":["a","\u2028","<&>"],"messages":[{"to":"@a"}]}`,
		"{\n\"summary\":\"Ärger\xff\"}", `{"readiness":1e2}`, `{"OUTCOME":"quiet"}`, `{"outcome":"done"`, "{} {}", "[[[", "```json\n{}\n```",
		`{"state":{"priority":["a"]},"state":{"watch":["b"]}}`, `{"summary":"\ud800"}`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := report.Parse(data)
		if err != nil {
			if diff := cmp.Diff(report.Report{}, r); diff != "" || err.Error() == "" {
				t.Fatalf("a report comes with the error %q:\n%s", err, diff)
			}
			return
		}
		again := written(t, r)
		if len(again) > report.MaxSize {
			return // Escapes made it longer.
		}
		got, err := report.Parse(again)
		if err != nil {
			t.Fatalf("what was read and written is not read again: %v\n%s", err, again)
		}
		if diff := same(r, got); diff != "" {
			t.Fatalf("read again (-first +second):\n%s", diff)
		}
	})
}
