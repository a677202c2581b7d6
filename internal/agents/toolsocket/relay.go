package toolsocket

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Argument is the first argument of pawl as a relay. The address of the socket and the
// file with the token follow.
const Argument = "__pawl-tools"

// CommandLine is the line for a shell that starts pawl as a relay. Program is the path of
// pawl, quoted for the shell.
func CommandLine(program, address, tokenFile string) string {
	return program + " " + Argument + " " + address + " '" + strings.ReplaceAll(tokenFile, "'", `'\''`) + "'"
}

// Relay joins in and out to the socket at an address until either side ends, and returns
// the exit status. Args are those of the process.
func Relay(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) != 3 {
		fmt.Fprintln(errOut, "pawl: this is a part of a run: it is started with the address of pawl's tools and the file of a token")
		return loop.ExitUsage
	}
	if err := relay(ctx, args[1], args[2], in, out); err != nil {
		fmt.Fprintln(errOut, "pawl: reach pawl's tools:", err)
		return loop.ExitError
	}
	return loop.ExitOK
}

func relay(ctx context.Context, address, tokenFile string, in io.Reader, out io.Writer) error {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(append(token, '\n')); err != nil {
		return err
	}
	go func() { // It ends with the process: reading standard input cannot be interrupted.
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // It was dialed with tcp.
	}()
	n, err := io.Copy(out, conn)
	if err == nil && n == 0 {
		err = errRefused
	}
	return err
}
