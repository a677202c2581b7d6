package frame_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/surface/mcp/frame"
)

// A session is a client's side of a real server, on two pipes.
type session struct {
	tb      testing.TB
	in      *io.PipeWriter
	out     *io.PipeReader
	lines   *bufio.Scanner
	release chan struct{} // what calls of the tool "wait" wait for
	begun   atomic.Int64  // calls of "wait"
	ended   chan error    // how the server's session ended
}

type text struct {
	Text string `json:"text"`
}

// serve starts a server with the tools "echo" and "wait".
func serve(tb testing.TB, transport frame.Transport) *session {
	tb.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	s := &session{tb: tb, in: in, out: out, lines: bufio.NewScanner(out), release: make(chan struct{}), ended: make(chan error, 1)}
	s.lines.Buffer(nil, 64<<20)

	server := mcp.NewServer(&mcp.Implementation{Name: "frames", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, text, error) {
		return nil, in, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, text, error) {
		s.begun.Add(1)
		select {
		case <-s.release:
			return nil, in, nil
		case <-ctx.Done():
			return nil, in, context.Cause(ctx)
		}
	})
	transport.Reader, transport.Writer = inReader, outWriter
	running, err := server.Connect(context.Background(), &transport, nil)
	if err != nil {
		tb.Fatal(err)
	}
	go func() { s.ended <- running.Wait() }()
	tb.Cleanup(func() {
		_ = in.Close()
		_ = out.Close()
	})
	return s
}

// initialize begins the session in a version of the protocol.
func (s *session) initialize(version string) {
	s.tb.Helper()
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version))
	if a := s.read(); a.Error != nil || !strings.Contains(string(a.Result), version) {
		s.tb.Fatalf("initialize is answered %s, want the version %s", a.line, version)
	}
	s.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (s *session) write(line string) {
	s.tb.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.tb.Fatalf("write %.80s: %v", line, err)
	}
}

// An answer is one line of the server.
type answer struct {
	line    string
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func readAnswer(tb testing.TB, line string) answer {
	tb.Helper()
	a := answer{line: line}
	if err := json.Unmarshal([]byte(line), &a); err != nil || a.Version != "2.0" || (a.Result == nil) == (a.Error == nil) {
		tb.Fatalf("the server wrote %.200q, which is not an answer (%v)", line, err)
	}
	return a
}

func (s *session) read() answer {
	s.tb.Helper()
	return readAnswer(s.tb, s.readLine())
}

func (s *session) readLine() string {
	s.tb.Helper()
	if !s.lines.Scan() {
		s.tb.Fatalf("the server wrote no more lines (%v)", s.lines.Err())
	}
	return s.lines.Text()
}

// ping asks whether the session lives, and reads nothing but that answer.
func (s *session) ping() {
	s.tb.Helper()
	s.write(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`)
	if a := s.read(); string(a.ID) != `"alive"` || string(a.Result) != "{}" {
		s.tb.Fatalf("a ping is answered %.300s", a.line)
	}
}

// close ends the input, and returns how the session ended and what was still
// written.
func (s *session) close() (rest []answer, err error) {
	s.tb.Helper()
	_ = s.in.Close()
	for s.lines.Scan() {
		rest = append(rest, readAnswer(s.tb, s.lines.Text()))
	}
	return rest, <-s.ended
}

// end ends a session from which no more lines are expected.
func (s *session) end() {
	s.tb.Helper()
	if rest, err := s.close(); err != nil || len(rest) > 0 {
		s.tb.Errorf("the session ended with %v and %d more answers", err, len(rest))
	}
}

func call(id, tool, arg string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}}}`, id, tool, arg)
}

var errReset = errors.New("connection reset")
