package loopspec

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func checkFinding(t *testing.T, f Finding) {
	t.Helper()
	if f.Message == "" || strings.ContainsAny(f.String(), "\n\r\x1b") || f.Offset < 0 || f.Line < 0 {
		t.Fatalf("finding %+v: want one line at a place", f)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(strings.ReplaceAll(full, "\n", "\r\n")))
	f.Add([]byte(`{"goal": "\ud83d\ude00", "goal": null, "gates": [{"check": "\u0060"}, 1], "budget": {"maxTokens": 1e3}}`))
	f.Add([]byte("\ufeff{\"giveUp\": \"same \\u0067ate 3\\u00d7 never\", \"x\": [[[[[]]]]]}"))
	f.Add([]byte(`{"trigger":{"type":"schedule","on":"90000"},"guardrails":["edits limited to /a, /{b","note: x"],"stateSource":"queue: ls ."} `))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, findings := Decode(data)
		for _, one := range findings {
			checkFinding(t, one)
			if one.Line < 1 || one.Column < 1 || one.Note {
				t.Fatalf("finding %+v has no place", one)
			}
		}
		s := doc.Spec.WithDefaults()
		for _, one := range doc.Locate(Validate(s, Machine{})) {
			checkFinding(t, one)
			if one.Line < 1 || one.Line > bytes.Count(data, []byte("\n"))+1 {
				t.Fatalf("finding %+v is not in the document", one)
			}
		}
		if len(findings) > 0 {
			return
		}
		first := Encode(s)
		again, wrong := Decode(first)
		if len(first) <= MaxBytes && (len(wrong) > 0 || !bytes.Equal(Encode(again.Spec), first)) {
			t.Fatalf("%v\n%s", wrong, first)
		}
	})
}

func FuzzPhrases(f *testing.F) {
	for _, p := range Phrases {
		f.Add(p.Text)
		f.Add(strings.NewReplacer("[N×]", "3×", "N×", "twice", "PATHS", "/src, and **/*.go", "COMMAND", "go test ./...", "N", "7").Replace(p.Text) + " → pause + report.")
	}
	f.Add("retry once w/ backoff, then pause + log")
	f.Add("edits limited to ,and and,, + /a\u00a0b\xff")
	f.Add("3\u00d7x×→->w/w/+`")
	f.Fuzz(func(t *testing.T, text string) {
		s := Spec{
			GiveUp: text, ErrorPolicy: text, HumanGate: text, StateSource: text, Guardrails: []string{text}, Trigger: Trigger{TriggerSchedule, text},
		}
		r, findings := s.Rules()
		wrong := map[string]bool{}
		for _, one := range findings {
			checkFinding(t, one)
			if one.Offset > len(text) || utf8.ValidString(text) && !utf8.ValidString(text[one.Offset:]) {
				t.Fatalf("%q: finding %+v is not at a character of the text", text, one)
			}
			wrong[one.Path] = true
		}
		if !wrong["giveUp"] && (r.GiveUp.Times < 1 || r.GiveUp.Times > mostCount || r.GiveUp.Repeat == "" || r.GiveUp.Then == "") {
			t.Fatalf("%q is the rule %+v", text, r.GiveUp)
		}
		if p := r.ErrorPolicy; !wrong["errorPolicy"] && (p.Then == "" || p.Retries < 0 || p.Retries > loop.MaxRetries || p.Doubling && p.Retries < 2) {
			t.Fatalf("%q is the policy %+v", text, p)
		}
		if !wrong["humanGate"] && r.HumanGate.Gate == "" || !wrong["stateSource"] && r.StateSource.Kind == "" || !wrong["trigger.on"] && r.Trigger.Cadence == "" {
			t.Fatalf("%q: %+v", text, r)
		}
		for _, glob := range r.Guardrails.Scope {
			if leavesTree(glob) || isWholeTree(glob) || strings.HasPrefix(glob, "/") {
				t.Fatalf("%q allows %q", text, glob)
			}
		}
		// Case and white space do not matter where no path or command is written.
		loud := s
		loud.GiveUp, loud.HumanGate = " "+strings.ToUpper(text)+"\n", strings.ReplaceAll(text, " ", "  ")
		if again, _ := loud.Rules(); isASCII(text) && !strings.Contains(text, "`") && (again.GiveUp != r.GiveUp || again.HumanGate != r.HumanGate) {
			t.Fatalf("%q: %s", text, cmp.Diff(r, again))
		}
	})
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 0x7e }) < 0
}
