package loopspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatAModelGeneratesIsASpecOrTheSkeleton(t *testing.T) {
	good := string(Encode(complete()))
	skeleton := fill(t, Skeleton, task())
	for name, c := range map[string]struct {
		reply  string
		reason string
		words  string // of the first finding that refuses it
	}{
		"a spec":                     {good, "", ""},
		"in a fence":                 {"```json\n" + good + "```\n", "", ""},
		"in a fence with no name":    {"\n```\n" + good + "\n```", "", ""},
		"with ids of its own":        {strings.Replace(good, `"id": ""`, `"id": "lp_0000001", "parentId": "lp_0000002", "childIds": ["x"]`, 1), "", ""},
		"for another agent":          {strings.Replace(good, `"fixer"`, `"boss"`, 1), "", ""},
		"without a budget":           {strings.Replace(good, `"maxTokens": 400000,`, "", 1), "", ""},
		"words around it":            {"Here it is:\n" + good, ParseFailed, "not JSON"},
		"words around a fence":       {"Here it is:\n```json\n" + good + "```", ParseFailed, "not JSON"},
		"a fence that is open":       {"```json\n" + good, ParseFailed, "not JSON"},
		"nothing":                    {"", ParseFailed, "not JSON"},
		"an unknown field":           {strings.Replace(good, `"goal"`, `"aim"`, 1), ParseFailed, "unknown field"},
		"a budget of nothing":        {strings.Replace(good, "400000", "0", 1), ParseFailed, "at least 1"},
		"a budget of a half":         {strings.Replace(good, "400000", "0.5", 1), ParseFailed, "at least 1"},
		"no goal":                    {strings.Replace(good, "The tests pass.", "", 1), SchemaFailed, "required"},
		"a command that nobody has":  {strings.Replace(good, "go test ./...", "npm test", 1), SchemaFailed, "'npm' is not a program"},
		"a command that was made up": {strings.Replace(good, "go test ./...", "go test -short ./...", 1), SchemaFailed, "no memory and no file has 'go test -short ./...'"},
		"a source that was made up":  {strings.Replace(good, `"diff"`, `"queue: go list"`, 1), SchemaFailed, "no memory and no file has 'go list'"},
		"a phrase of its own":        {strings.Replace(good, "escalate", "cry", 1), SchemaFailed, "'cry'"},
	} {
		t.Run(name, func(t *testing.T) {
			m := programs("go")
			m.Named = func(command string) bool { return command == "go test ./..." || command == "npm test" }
			s, reason, findings := Generated(c.reply, task(), m)
			want := complete()
			if c.reason != "" {
				want = skeleton
			}
			if diff := cmp.Diff(want, s); diff != "" || reason != c.reason {
				t.Errorf("reason %q, want %q (-want +got):\n%s", reason, c.reason, diff)
			}
			if refused := Refused(findings); refused != (c.reason != "") || refused && (!strings.Contains(findings[0].Message, c.words) || findings[0].Line < 1) {
				t.Errorf("findings %v, want %q", findings, c.words)
			}
		})
	}
}
