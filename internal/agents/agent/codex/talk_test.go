package codex

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestAFailureIsReadFromTheFieldThatSaysMost(t *testing.T) {
	for name, c := range map[string]struct {
		info, message string
		want          loop.FailureClass
		status        int
		typed         bool
	}{
		"a name":                            {`"contextWindowExceeded"`, "x", loop.FailureOverflow, 0, true},
		"a name against its words":          {`"serverOverloaded"`, "unexpected status 401", loop.FailureServer, 0, true},
		"a used up account":                 {`"usageLimitExceeded"`, "Quota exceeded. Check your plan and billing details.", loop.FailureQuota, 0, true},
		"a policy":                          {`"cyberPolicy"`, "x", loop.FailureRefusal, 0, true},
		"a status":                          {`{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`, "x", loop.FailureRateLimit, 429, true},
		"a connection without a status":     {`{"httpConnectionFailed":{"httpStatusCode":null}}`, "x", loop.FailureServer, 0, true},
		"an invalid status":                 {`{"httpConnectionFailed":{"httpStatusCode":99999}}`, "x", loop.FailureServer, 0, true},
		"a name that nobody knows":          {`"other"`, "Incomplete response returned, reason: max_output_tokens", loop.FailureMaxTokens, 0, false},
		"nothing but words with a status":   {`null`, "unexpected status 402 Payment Required: x", loop.FailureQuota, 402, false},
		"words that only quote a status":    {`null`, "the tool said: unexpected status 402 Payment Required", loop.FailureCrash, 0, false},
		"the vendor's own answer":           {`"other"`, `{"error":{"message":"bad request"}}`, loop.FailureRequest, 0, false},
		"nothing":                           {``, "", loop.FailureCrash, 0, false},
		"something of another type":         {`[1]`, "x", loop.FailureCrash, 0, false},
		"a limit in words of older ones":    {`null`, "You've hit your usage limit.", loop.FailureRateLimit, 0, false},
		"a stream that ended in the middle": {`null`, "stream disconnected before completion: x", loop.FailureServer, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := turnError{Message: text(c.message), Info: json.RawMessage(c.info)}.toFailure(limits{})
			if f.Class != c.want || f.Status != c.status || f.Typed != c.typed {
				t.Errorf("failure = %+v", f)
			}
		})
	}
}

func TestACommandIsJudgedByWhatAShellIsStartedFor(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		argv    []string
		script  string
	}{
		"a line for a shell":            {`/bin/bash -lc 'echo hi > b.txt && cat b.txt'`, []string{"/bin/bash", "-lc", "echo hi > b.txt && cat b.txt"}, "echo hi > b.txt && cat b.txt"},
		"one with quotes":               {`/bin/bash -lc "npm install 'a b' \"\$x\""`, []string{"/bin/bash", "-lc", `npm install 'a b' "$x"`}, `npm install 'a b' "$x"`},
		"a word":                        {`/bin/zsh -lc ls`, []string{"/bin/zsh", "-lc", "ls"}, "ls"},
		"a program of its own":          {`python3 -c 'print(1)'`, []string{"python3", "-c", "print(1)"}, `python3 -c 'print(1)'`},
		"a shell with more arguments":   {`bash -lc 'echo "$1"' x`, []string{"bash", "-lc", `echo "$1"`, "x"}, `bash -lc 'echo "$1"' x`},
		"what only a shell could read":  {`bash -lc ls; rm -rf x`, nil, `bash -lc ls; rm -rf x`},
		"an open quote":                 {`bash -lc 'ls`, nil, `bash -lc 'ls`},
		"an open double quote":          {`bash -lc "ls`, nil, `bash -lc "ls`},
		"an expansion in double quotes": {`bash -lc "$(ls)"`, nil, `bash -lc "$(ls)"`},
		"nothing":                       {``, nil, ``},
	} {
		t.Run(name, func(t *testing.T) {
			argv := splitWords(c.command)
			if !slices.Equal(argv, c.argv) {
				t.Errorf("split = %q, want %q", argv, c.argv)
			}
			if got := scriptOf(c.command, argv); got != c.script {
				t.Errorf("script = %q, want %q", got, c.script)
			}
		})
	}
}

func TestSplitFindsTheWordsOfAnyJoinedLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringN(0, 20, -1), 1, 6).Draw(t, "words")
		var joined []string
		for _, w := range words {
			if rapid.Bool().Draw(t, "double") {
				w = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(w) + `"`
			} else {
				w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
			}
			joined = append(joined, w)
		}
		if got := splitWords(strings.Join(joined, " ")); !slices.Equal(got, words) {
			t.Fatalf("split(%q) = %q, want %q", joined, got, words)
		}
	})
}

// check reads all lines, and makes sure of what holds for any of them.
func check(t *testing.T, d agent.Decoder, lines []byte) agent.Result {
	t.Helper()
	calls := map[string]bool{}
	var r agent.Result
	for line := range bytes.SplitSeq(lines, []byte("\n")) {
		events, _ := d.DecodeLine(line)
		for _, e := range events {
			if u := e.Usage; min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
				t.Fatalf("a negative usage: %+v of %q", u, line)
			}
			r.Usage = r.Usage.Add(e.Usage)
			if e.Kind == agent.EventCall {
				if calls[e.ID] || e.Tool == "" {
					t.Fatalf("a call told twice, or without a tool: %q", line)
				}
				calls[e.ID] = true
			}
			if e.Kind == agent.EventReturn && !calls[e.ID] || e.Kind == agent.EventError && e.Failure.Class == "" {
				t.Fatalf("event %+v of %q", e, line)
			}
		}
	}
	d.Finish(&r, "")
	if u := r.Usage; min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
		t.Fatalf("a negative usage: %+v", u)
	}
	if r.Session != nil && !threadID.MatchString(r.Session.ID) {
		t.Fatalf("a session %q", r.Session.ID)
	}
	return r
}

// FuzzTalk feeds whatever an app-server may print.
func FuzzTalk(f *testing.F) {
	agenttest.AddSeeds(f, "*.jsonl", "session/*.jsonl")
	f.Fuzz(func(t *testing.T, lines []byte) {
		in := new(agent.Input)
		questions := 0
		d := newDecoder(agent.Request{Keep: true}, in, func(policy.Call) policy.Answer {
			questions++
			return policy.Answer{Ask: questions%2 == 0}
		})
		r := check(t, d, lines)
		if len(r.Asks) != questions/2 {
			t.Fatalf("%d of %d questions are left to a human", len(r.Asks), questions)
		}
		_ = in.Close() // It may be closed already.
		var answers bytes.Buffer
		if _, err := answers.ReadFrom(in); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(answers.Bytes(), []byte(`"decision":"decline"`)); n != questions && !d.lost {
			t.Fatalf("%d answers to %d questions", n, questions)
		}
	})
}
