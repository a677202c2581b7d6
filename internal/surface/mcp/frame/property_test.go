package frame_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/surface/mcp/frame"
)

// A piecewise reader returns what it reads in pieces of drawn sizes.
type piecewise struct {
	r     io.Reader
	sizes []int
}

func (p *piecewise) Read(b []byte) (int, error) {
	n := p.sizes[0]
	p.sizes = append(p.sizes[1:], n)
	return p.r.Read(b[:min(n, len(b))])
}

// Whatever comes between them, in whatever pieces and with whatever ends of
// lines: each call has exactly one answer, its own, and each other line exactly
// one error if it is malformed, and none otherwise.
func TestEachCallHasOneAnswerInAnyCompany(t *testing.T) {
	names := slices.Sorted(maps.Keys(malformed))
	names = slices.DeleteFunc(names, func(name string) bool { return len(malformed[name].line) > 100_000 })
	silent := []string{
		"", " ", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":77,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never sent"}}`,
	}
	rapid.Check(t, func(rt *rapid.T) {
		var input strings.Builder
		want := map[string]int{} // lines by what answers them
		for i := range rapid.IntRange(0, 120).Draw(rt, "lines") {
			var line string
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				arg := rapid.StringN(0, 20, -1).Draw(rt, "text")
				line = call(fmt.Sprintf(`"call %d"`, i), "echo", "")
				quoted, _ := json.Marshal(arg)
				line = strings.Replace(line, `"text":""`, `"text":`+string(quoted), 1)
				want[fmt.Sprintf(`"call %d" %q`, i, arg)]++
			case 1:
				bad := malformed[rapid.SampledFrom(names).Draw(rt, "bad")]
				line = bad.line
				want[fmt.Sprintf("%s %d", bad.id, bad.code)]++
			default:
				line = rapid.SampledFrom(silent).Draw(rt, "silent")
			}
			input.WriteString(line + rapid.SampledFrom([]string{"\n", "\r\n", "\n\n", " \n"}).Draw(rt, "end"))
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 5000), 1, 5).Draw(rt, "sizes")

		got := map[string]int{}
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, frame.Transport{})
			s.initialize("2025-11-25")
			go func() {
				_, _ = io.Copy(s.in, &piecewise{strings.NewReader(input.String()), sizes})
				_ = s.in.Close()
			}()
			for s.lines.Scan() {
				a := readAnswer(t, s.lines.Text())
				if a.Error != nil {
					got[fmt.Sprintf("%s %d", a.ID, a.Error.Code)]++
					continue
				}
				var result struct {
					StructuredContent text `json:"structuredContent"`
				}
				if err := json.Unmarshal(a.Result, &result); err != nil {
					t.Error(err)
				}
				got[fmt.Sprintf("%s %q", a.ID, result.StructuredContent.Text)]++
			}
			if err := <-s.ended; err != nil {
				t.Errorf("the session ended with %v", err)
			}
		})
		if !maps.Equal(got, want) {
			rt.Errorf("the answers are %v, want %v", got, want)
		}
	})
}

// FuzzFrames sends anything, and then a call: it is answered, and every line
// before it is answered at most once. What is passed on, the server can read.
func FuzzFrames(f *testing.F) {
	for _, c := range malformed {
		if len(c.line) < 4000 {
			f.Add([]byte(c.line))
		}
	}
	f.Add([]byte("\r\n\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n" + `[{"jsonrpc":"2.0","id":1,"method":"ping"},5,{"jsonrpc":"2.0","method":"x"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	const last = "the last call, whose id no input guesses"
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("guesses")) || bytes.Contains(data, []byte(`\u`)) {
			return // it could have the id of the last call
		}
		input := append(bytes.Clone(data), ("\n" + `{"jsonrpc":"2.0","id":"` + last + `","method":"tools/list"}` + "\n")...)
		var out bytes.Buffer
		others := answerPings(t, &frame.Transport{Reader: bytes.NewReader(input), Writer: &out})

		lines, errs, lasts := 0, 0, 0
		for line := range bytes.Lines(input) {
			if len(bytes.Trim(line, " \t\r\n")) > 0 {
				lines++
			}
		}
		answers := 0
		for line := range bytes.Lines(out.Bytes()) {
			answers++
			if line[0] == '[' { // the answers to an array
				var all []json.RawMessage
				if err := json.Unmarshal(line, &all); err != nil || len(all) == 0 {
					t.Fatalf("%q is answered %q", data, line)
				}
				continue
			}
			a := readAnswer(t, string(line))
			switch {
			case a.Error != nil:
				errs++
			case string(a.ID) == `"`+last+`"`:
				lasts++
			}
		}
		if lasts != 1 {
			t.Errorf("after %q a call has %d answers", data, lasts)
		}
		// An array may hold notifications beside what is answered, and a client's
		// error without an id has no answer.
		plain := !bytes.Contains(data, []byte("[")) && !bytes.Contains(data, []byte("error"))
		if answers > lines || plain && answers != lines-others {
			t.Errorf("%q has %d lines, %d of them without an answer, and %d answers, %d of them errors", data, lines, others, answers, errs)
		}
	})
}
