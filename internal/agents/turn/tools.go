package turn

import (
	"context"
	"io"
	"net"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/toolsocket"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ToolServer serves pawl's own tools to the agent of one run.
type ToolServer interface {
	// Serve answers one client until its stream or ctx ends.
	Serve(ctx context.Context, conn io.ReadWriteCloser) error
}

// toolToken is the file in the home that has the token of the turn.
const toolToken = ".pawl-tools"

// openTools opens the socket of pawl's own tools, and names the server that leads to it.
// The token is in a file, because other users of the host can read command lines.
func (s *Env) openTools(ctx context.Context) error {
	if s.need.PawlTools == nil || s.Home == nil {
		return nil
	}
	s.tools = toolsocket.New()
	s.tools.Serve, s.tools.Refused = s.need.PawlTools.Serve, s.need.Rejected
	if err := s.Home.Write(toolToken, []byte(s.tools.Token())); err != nil {
		return err
	}
	program, err := s.showOwnProgram()
	if err != nil {
		return err
	}
	// Runs that the agent has begun end when the turn is stopped, and not with its program.
	addr, err := s.openPort(ctx, s.need.ToolsPort, func(serving context.Context, l net.Listener) {
		serving, cancel := context.WithCancel(serving)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		s.tools.Accept(serving, l)
	})
	if err != nil {
		return err
	}
	line := toolsocket.CommandLine(program, addr, s.Home.Path()+"/"+toolToken)
	s.Servers = []loop.Server{{Name: loop.PawlServer, Command: line}}
	return nil
}

// toolSecrets returns the token.
func (s *Env) toolSecrets() []redact.Secret {
	if s.tools == nil {
		return nil
	}
	return []redact.Secret{{Name: "PAWL_TOOLS", Value: s.tools.Token()}}
}

// closeTools removes the token, which is worth nothing any more, from a home that is kept.
func (s *Env) closeTools() error {
	if s.tools == nil {
		return nil
	}
	return s.Home.Remove(toolToken)
}

// shellWord quotes a text as one word for the shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
