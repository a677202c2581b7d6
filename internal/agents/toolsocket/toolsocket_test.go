package toolsocket_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/toolsocket"
)

// served is a socket that answers with what it is told, in capitals, until its connection ends.
type served struct {
	*toolsocket.Socket
	addr string
	stop func()

	mu      sync.Mutex
	refused []string
	closed  chan struct{} // gets a value for each connection that was closed without being served
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{Socket: toolsocket.New(), closed: make(chan struct{}, 100)}
	s.Serve = func(ctx context.Context, conn io.ReadWriteCloser) error {
		buf := make([]byte, 64)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return err
			}
			if _, err := conn.Write(bytes.ToUpper(buf[:n])); err != nil {
				return err
			}
		}
	}
	s.Refused = func(why string) {
		s.mu.Lock()
		s.refused = append(s.refused, why)
		s.mu.Unlock()
		s.closed <- struct{}{}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Accept(ctx, l)
	}()
	s.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(s.stop)
	return s
}

// says opens a connection, sends a text and returns what comes back until the other side closes it, or
// as many bytes as are asked for.
func (s *served) says(t *testing.T, text string, n int64) string {
	t.Helper()
	conn, err := net.Dial("tcp4", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(io.LimitReader(conn, n)) // A reset is an end, too.
	return string(got)
}

func TestWhoShowsTheTokenIsServed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	if got := s.says(t, s.Token()+"\nhello", 5); got != "HELLO" {
		t.Errorf("got %q", got)
	}
	if len(s.Token()) != 64 || s.Token() == toolsocket.New().Token() {
		t.Errorf("the token %q is not one of 256 random bits", s.Token())
	}
}

// TestAttack101AConnectionWithoutTheTokenOfTheTurn tries what an agent, a gate or another run may try.
func TestAttack101AConnectionWithoutTheTokenOfTheTurn(t *testing.T) {
	t.Parallel()
	s, another := serve(t), serve(t)
	for name, text := range map[string]string{
		"no token":                  "\n",
		"JSON at once":              `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + strings.Repeat(" ", 64) + "\n",
		"the token of another turn": another.Token() + "\nhello",
		"a part of it":              s.Token()[:63] + "\n\nhello",
		"the token and more":        s.Token() + "x\nhello",
		"no line feed":              s.Token() + "hello",
		"a line that never ends":    strings.Repeat("x", 1<<16),
	} {
		if name == "no token" {
			text += strings.Repeat("x", 64)
		}
		if got := s.says(t, text, 100); got != "" {
			t.Errorf("%s: it was answered %q", name, got)
		}
		<-s.closed
	}
	if len(s.refused) != 7 {
		t.Errorf("%d connections were counted as refused, want 7: %q", len(s.refused), s.refused)
	}
	if got := s.says(t, s.Token()+"\nhello", 5); got != "HELLO" {
		t.Errorf("after them the right token gets %q", got)
	}
}

func TestNoConnectionOutlivesTheTurn(t *testing.T) {
	t.Parallel()
	s := serve(t)
	conn, err := net.Dial("tcp4", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, s.Token()+"\nhello")
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	s.stop() // It returns, although the client is there.
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("after the turn it still reads %d bytes, %v", n, err)
	}
	if conn, err := net.Dial("tcp4", s.addr); err == nil {
		conn.Close()
		t.Error("after the turn it still connects")
	}
}

func TestOnlySoManyConnectAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for range toolsocket.MostConnections {
		conn, err := net.Dial("tcp4", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, s.Token()+"\nhello")
		if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.says(t, s.Token()+"\nhello", 5); got != "" {
		t.Errorf("one more is answered %q", got)
	}
}

func TestTheRelayJoinsStandardStreamsToTheSocket(t *testing.T) {
	t.Parallel()
	s := serve(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(s.Token()), 0o600); err != nil {
		t.Fatal(err)
	}
	relay := func(in string, args ...string) (int, string, string) {
		var out, errOut bytes.Buffer
		status := toolsocket.Relay(t.Context(), append([]string{toolsocket.Argument}, args...), strings.NewReader(in), &out, &errOut)
		return status, out.String(), errOut.String()
	}
	if status, out, errOut := relay("hello", s.addr, file); status != 0 || out != "HELLO" {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("0", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errOut := relay("hello", s.addr, file); status != 1 || out != "" || errOut == "" {
		t.Errorf("with a wrong token: status %d, %q, %q", status, out, errOut)
	}
	if status, _, errOut := relay("", s.addr, file+".gone"); status != 1 || !strings.Contains(errOut, "token") {
		t.Errorf("without its file: status %d, %q", status, errOut)
	}
	if status, _, errOut := relay("", s.addr); status != 2 || errOut == "" {
		t.Errorf("without an argument: status %d, %q", status, errOut)
	}
	s.stop()
	if status, _, errOut := relay("", s.addr, file); status != 1 || errOut == "" {
		t.Errorf("after the turn: status %d, %q", status, errOut)
	}
}
