package frame_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pawl-run/pawl/internal/surface/mcp/frame"
)

const (
	parse   = jsonrpc.CodeParseError
	invalid = jsonrpc.CodeInvalidRequest
	busy    = -32000
)

// malformed lines, the code of their answer and its id.
var malformed = map[string]struct {
	line string
	code int
	id   string
}{
	"half an object":                   {`{bad`, parse, "null"},
	"no JSON at all":                   {`hello`, parse, "null"},
	"HTTP":                             {"GET / HTTP/1.1\r", parse, "null"},
	"a header of LSP":                  {"Content-Length: 52\r", parse, "null"},
	"two messages on a line":           {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, parse, "null"},
	"a comma after the last":           {`{"jsonrpc":"2.0","id":1,"method":"ping",}`, parse, "null"},
	"a comment":                        {`{"jsonrpc":"2.0","id":1,"method":"ping"} // ping`, parse, "null"},
	"names without quotes":             {`{jsonrpc:"2.0",id:1,method:"ping"}`, parse, "null"},
	"an unfinished string":             {`{"jsonrpc":"2.0","id":"1`, parse, "null"},
	"a line feed inside a message":     {`{"jsonrpc":"2.0",`, parse, "null"},
	"a control character":              {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x01ng\"}", parse, "null"},
	"zero bytes":                       {"\x00\x00\x00", parse, "null"},
	"a byte order mark":                {"\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, parse, "null"},
	"UTF-16":                           {"\xff\xfe{\x00}\x00", parse, "null"},
	"a name that is not UTF-8":         {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}", parse, "null"},
	"half a character":                 {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xe2\x82\"}", parse, "null"},
	"a number that is not one":         {`{"jsonrpc":"2.0","id":01,"method":"ping"}`, parse, "null"},
	"not a number":                     {`{"jsonrpc":"2.0","id":NaN,"method":"ping"}`, parse, "null"},
	"arrays 20,000 deep":               {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), parse, "null"},
	"a line of more than 4 MB":         {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", frame.MaxLine) + `"}}`, parse, "null"},
	"a number":                         {`5`, invalid, "null"},
	"null":                             {`null`, invalid, "null"},
	"a string":                         {`"ping"`, invalid, "null"},
	"true":                             {`true`, invalid, "null"},
	"an empty array":                   {`[]`, invalid, "null"},
	"an empty object":                  {`{}`, invalid, "null"},
	"an array of messages":             {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, invalid, "null"},
	"no version":                       {`{"id":1,"method":"ping"}`, invalid, "1"},
	"an old version":                   {`{"jsonrpc":"1.0","id":2,"method":"ping"}`, invalid, "2"},
	"a version that is a number":       {`{"jsonrpc":2.0,"id":3,"method":"ping"}`, invalid, "3"},
	"a version in other letters":       {`{"JSONRPC":"2.0","id":4,"method":"ping"}`, invalid, "4"},
	"no method and no result":          {`{"jsonrpc":"2.0","id":5}`, invalid, "5"},
	"a method that is a number":        {`{"jsonrpc":"2.0","id":"six","method":1}`, invalid, `"six"`},
	"a method that is null":            {`{"jsonrpc":"2.0","id":7,"method":null}`, invalid, "7"},
	"parameters that are a number":     {`{"jsonrpc":"2.0","id":8,"method":"ping","params":1}`, invalid, "8"},
	"parameters that are a string":     {`{"jsonrpc":"2.0","id":9,"method":"ping","params":"a"}`, invalid, "9"},
	"a call with a result":             {`{"jsonrpc":"2.0","id":10,"method":"ping","result":{}}`, invalid, "10"},
	"an id that is null":               {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, invalid, "null"},
	"an id that is an object":          {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, invalid, "null"},
	"an id that is a list":             {`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, invalid, "null"},
	"an id that is true":               {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, invalid, "null"},
	"an id that is half a number":      {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, invalid, "null"},
	"an id beyond what floats hold":    {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, invalid, "null"},
	"an id beyond all numbers":         {`{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, invalid, "null"},
	"an id of two kilobytes":           {`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 2048) + `","method":"ping"}`, invalid, "null"},
	"an id twice":                      {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, invalid, "null"},
	"a method twice":                   {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"initialize"}`, invalid, "null"},
	"a thousand members":               {`{"jsonrpc":"2.0","id":1,"method":"ping"` + strings.Repeat(`,"a":1`, 1000) + `}`, invalid, "null"},
	"an answer without an id":          {`{"jsonrpc":"2.0","result":{}}`, invalid, "null"},
	"an answer with an error too":      {`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"a"}}`, invalid, "null"},
	"an answer with half an error":     {`{"jsonrpc":"2.0","id":1,"error":"a"}`, invalid, "null"},
	"an answer whose error has a text": {`{"jsonrpc":"2.0","id":1,"error":{"code":"one","message":"a"}}`, invalid, "null"},
}

func TestEachMalformedLineIsAnsweredAndSoIsThePingAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		for _, name := range slices.Sorted(maps.Keys(malformed)) {
			c := malformed[name]
			s.write(c.line)
			if a := s.read(); a.Error == nil || a.Error.Code != c.code || string(a.ID) != c.id {
				t.Errorf("%s is answered %.300s, want %d with the id %s", name, a.line, c.code, c.id)
			}
			s.ping()
		}
		s.end()
	})
}

// The first lines of a session are no better protected than later ones.
func TestAMalformedLineBeforeTheSessionBeginsDoesNotEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range malformed {
			s := serve(t, frame.Transport{})
			s.write(c.line)
			if a := s.read(); a.Error == nil || a.Error.Code != c.code {
				t.Errorf("%s is answered %.300s, want %d", name, a.line, c.code)
			}
			s.initialize("2025-06-18")
			s.end()
		}
	})
}

func TestWhatIsUnusualButRightIsPassedOn(t *testing.T) {
	longest := `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"?":{}}}`
	longest = strings.Replace(longest, "?", strings.Repeat("x", frame.MaxLine-len(longest)), 1)
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		for _, line := range []string{
			"", "\r", "   \t ", "\n\r\n",
			`{"jsonrpc":"2.0","method":"notifications/unheard"}`,
			`{"jsonrpc":"2.0","id":4711,"result":{}}`,
			`{"jsonrpc":"2.0","id":4711,"error":{"code":-1,"message":"no such call"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`,
		} {
			s.write(line)
			s.ping() // and nothing else is read
		}
		for line, id := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r":                    "1",
			" \t" + `{ "method" : "ping", "id":2 , "jsonrpc":"2.0" } `:           "2",
			`{"jsonrpc":"2.0","id":3,"method":"ping","params":null}`:             "3",
			`{"jsonrpc":"2.0","id":4,"method":"ping","params":{},"more":[1,{}]}`: "4",
			`{"jsonrpc":"2.0","id":"five \"öé\" \u0000","method":"ping"}`:        `"five \"öé\" \u0000"`,
			`{"jsonrpc":"2.0","id":6.0,"method":"ping"}`:                         "6",
			`{"jsonrpc":"2.0","id":7e2,"method":"ping"}`:                         "700",
			`{"jsonrpc":"2.0","id":0,"method":"ping"}`:                           "0",
			`{"jsonrpc":"2.0","id":-9007199254740991,"method":"ping"}`:           "-9007199254740991",
			`{"jsonrpc":"2.0","id":"","method":"ping"}`:                          `""`,
			`{"\u006asonrpc":"2\u002e0","id":8,"method":"p\u0069ng"}`:            "8",
			longest: "9",
		} {
			s.write(line)
			if a := s.read(); string(a.ID) != id || string(a.Result) != "{}" {
				t.Errorf("%.100q is answered %.300s, want a result with the id %s", line, a.line, id)
			}
		}
		s.end()
	})
}

func TestTheLastLineNeedsNoEnd(t *testing.T) {
	for input, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                      `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n",
		`{"jsonrpc":"2.0","id":1,"met`:                                  "-32700",
		strings.Repeat("x", frame.MaxLine+1):                            "-32700",
		"\n" + strings.Repeat("x", frame.MaxLine-1) + "\r\n":            "-32700",
		strings.Repeat(" ", frame.MaxLine-1) + "\n":                     "",
		strings.Repeat(" ", frame.MaxLine) + "\n\n\n":                   "-32700",
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n": "",
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(input), "with the end": iotest.DataErrReader(strings.NewReader(input)), "halves": iotest.HalfReader(strings.NewReader(input)),
		} {
			var out bytes.Buffer
			answerPings(t, &frame.Transport{Reader: r, Writer: &out})
			if !strings.Contains(out.String(), want) || want == "" && out.Len() > 0 || strings.Count(out.String(), "\n") > 1 {
				t.Errorf("%.50q, %s, is answered %q, want %q", input, name, out.String(), want)
			}
		}
	}
}

// answerPings answers all calls until the end of the input, initialize with a
// version that has arrays of messages, and returns how many messages were not
// calls.
func answerPings(tb testing.TB, transport *frame.Transport) (others int) {
	tb.Helper()
	ctx := context.Background()
	c, err := transport.Connect(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	for {
		m, err := c.Read(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			tb.Fatalf("read: %v", err)
		}
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
			result := json.RawMessage("{}")
			if r.Method == "initialize" {
				result = json.RawMessage(`{"protocolVersion":"2025-03-26"}`)
			}
			if err := c.Write(ctx, &jsonrpc.Response{ID: r.ID, Result: result}); err != nil {
				tb.Fatalf("answer %v: %v", r.ID.Raw(), err)
			}
		} else {
			others++
		}
	}
	if err := c.Close(); err != nil {
		tb.Fatal(err)
	}
	return others
}

var xs = bytes.Repeat([]byte("x"), 64<<10)

// endless is a line of n bytes and a ping. It looks at the memory while it is
// read.
type endless struct {
	left int64
	rest io.Reader
	most uint64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return e.rest.Read(p)
	}
	n := int(min(e.left, int64(len(p))))
	n = copy(p[:n], xs)
	if before := e.left; before>>26 != (before-int64(n))>>26 { // every 64 MB
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		e.most = max(e.most, m.HeapInuse)
	}
	e.left -= int64(n)
	return n, nil
}

func TestALineOfAGigabyteIsSkippedWithoutHoldingIt(t *testing.T) {
	e := &endless{left: 1 << 30, rest: strings.NewReader("\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")}
	runtime.GC() // what other tests have left is not counted
	var out bytes.Buffer
	answerPings(t, &frame.Transport{Reader: e, Writer: &out})
	first, second, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	if a := readAnswer(t, first); a.Error == nil || a.Error.Code != parse {
		t.Errorf("the line is answered %s", first)
	}
	if a := readAnswer(t, second); string(a.ID) != "1" || a.Error != nil {
		t.Errorf("the ping after it is answered %s", second)
	}
	t.Logf("at most %.1f MB of heap", float64(e.most)/1e6)
	if e.most == 0 || e.most > 64e6 {
		t.Errorf("the heap had %d bytes, want less than 64 MB", e.most)
	}
}

func TestArraysOfMessagesAreForTheProtocolsThatHaveThem(t *testing.T) {
	one := `{"jsonrpc":"2.0","id":%d,"method":"ping"}`
	for version, has := range map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": false, "2025-11-25": false} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, frame.Transport{})
			s.initialize(version)
			s.write(`[` + call("1", "wait", "slow") + `,` + fmt.Sprintf(one, 2) + `, 5, {"jsonrpc":"2.0","method":"notifications/x"},` +
				fmt.Sprintf(one, 2) + `,{"jsonrpc":"2.0","id":3,"method":"initialize"},{"jsonrpc":"2.0","id":9,"result":{}}]`)
			if !has {
				if a := s.read(); a.Error == nil || a.Error.Code != invalid {
					t.Errorf("%s: an array is answered %s", version, a.line)
				}
				s.end()
				return
			}
			s.ping()
			close(s.release)
			var answers []json.RawMessage
			if line := s.readLine(); json.Unmarshal([]byte(line), &answers) != nil {
				t.Fatalf("%s: an array is answered %s", version, line)
			}
			codes := map[string]int{}
			for _, raw := range answers {
				a := readAnswer(t, string(raw))
				code := 0
				if a.Error != nil {
					code = a.Error.Code
				}
				codes[string(a.ID)+" "+fmt.Sprint(code)]++
			}
			// The second 2 may come when the first is answered, or before.
			twice := codes["2 0"] == 2 && codes["null -32600"] == 1 || codes["2 0"] == 1 && codes["null -32600"] == 2
			if codes["1 0"] != 1 || codes["3 -32600"] != 1 || !twice || len(answers) != 5 {
				t.Errorf("%s: an array is answered %v", version, codes)
			}
			s.write(`[{"jsonrpc":"2.0","method":"notifications/x"}]`)
			s.ping() // nothing but notifications has no answer
			for name, line := range map[string]string{
				"empty": `[]`, "too many": `[1` + strings.Repeat(",1", 10_000) + `]`, "one too many": `[1` + strings.Repeat(",1", 288) + `]`,
			} {
				s.write(line)
				if a := s.read(); a.Error == nil || a.Error.Code != invalid {
					t.Errorf("%s: an array, %s, is answered %.200s", version, name, a.line)
				}
			}
			s.end()
		})
	}
}

func TestAClientThatStopsReadingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		start := time.Now()
		s.write(call("1", "wait", "never answered"))
		s.write(call("2", "echo", strings.Repeat("e", 100_000)))
		synctest.Wait()
		if s.begun.Load() != 1 {
			t.Fatal("the call does not run")
		}
		// The call that runs hears of it, and the session ends.
		if err := <-s.ended; !errors.Is(err, frame.ErrStalled) {
			t.Errorf("the session ended with %v, want that the client has stopped reading", err)
		}
		if got := time.Since(start); got != 30*time.Second {
			t.Errorf("the client was cut off after %v, want 30s", got)
		}
		if _, err := io.WriteString(s.in, "{}\n"); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the input is still read (%v)", err)
		}
	}) // which fails if a goroutine is left
}

func TestAClientThatReadsSlowlyIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		s.write(call("1", "echo", strings.Repeat("e", 1_000_000)))
		var got []byte
		piece := make([]byte, 64<<10)
		for !bytes.HasSuffix(got, []byte("\n")) {
			time.Sleep(25 * time.Second)
			n, err := s.out.Read(piece)
			if err != nil {
				t.Fatalf("after %d bytes: %v", len(got), err)
			}
			got = append(got, piece[:n]...)
		}
		if a := readAnswer(t, string(got)); string(a.ID) != "1" || len(got) < 1_000_000 {
			t.Errorf("the answer is %.100q", got)
		}
		s.end()
	})
}

// While the client takes nothing, nothing more is read from it: the answers to
// its wrong lines would pile up.
func TestNothingIsReadWhileTooMuchWaitsToBeTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, client := io.Pipe()
		out, outWriter := io.Pipe()
		c, err := (&frame.Transport{Reader: in, Writer: outWriter}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var written atomic.Int64
		go func() {
			for {
				n, err := io.WriteString(client, "bad\n")
				if written.Add(int64(n)); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if n := written.Load(); n < 100_000 || n > 10_000_000 {
			t.Errorf("%d bytes are read while the client takes nothing", n)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if _, err := c.Read(t.Context()); !errors.Is(err, frame.ErrStalled) {
			t.Errorf("read: %v, want that the client has stopped reading", err)
		}
		_ = out.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestABrokenStreamEndsTheSessionAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		_ = s.in.CloseWithError(errReset)
		if err := <-s.ended; !errors.Is(err, errReset) {
			t.Errorf("the session ended with %v, want %v", err, errReset)
		}

		s = serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		s.write(call("1", "wait", "w"))
		_ = s.out.CloseWithError(errReset)
		s.write(call("2", "echo", "nobody reads this"))
		if err := <-s.ended; !errors.Is(err, errReset) {
			t.Errorf("the session ended with %v, want %v", err, errReset)
		}
	})
}

func TestWhatIsWrittenIsTakenBeforeTheConnectionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, outWriter := io.Pipe()
		in, _ := io.Pipe()
		c, err := (&frame.Transport{Reader: in, Writer: outWriter}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := c.Write(t.Context(), &jsonrpc.Request{Method: "notifications/message", Params: json.RawMessage(fmt.Sprint(`{"n":`, i, `}`))}); err != nil {
				t.Fatal(err)
			}
		}
		var got []byte
		read := make(chan error)
		go func() {
			time.Sleep(time.Second)
			var err error
			got, err = io.ReadAll(out)
			read <- err
		}()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-read; err != nil || bytes.Count(got, []byte("\n")) != 100 {
			t.Errorf("%d lines are taken (%v), want 100", bytes.Count(got, []byte("\n")), err)
		}
		if err := c.Write(t.Context(), &jsonrpc.Request{Method: "notifications/message"}); err == nil {
			t.Error("a closed connection takes a message")
		}
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("a closed connection reads %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("the second close: %v", err)
		}
	})
}

func TestAReadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, _ := io.Pipe()
		c, err := (&frame.Transport{Reader: in, Writer: io.Discard}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errReset)
		defer cancel()
		if _, err := c.Read(ctx); !errors.Is(err, errReset) {
			t.Errorf("read: %v, want %v", err, errReset)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
