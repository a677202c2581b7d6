// Package toolsocket is how the agent of a run reaches pawl's own tools: a listening
// socket that exists for one turn, on which a connection begins with the turn's token, and
// the program inside of the sandbox that joins it to standard streams.
//
// It knows nothing about tools and about who may use them. It never serves a connection
// that has not shown the token, and none outlives the turn.
package toolsocket

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Bounds of a socket.
const (
	MostConnections = 8               // at the same time
	tokenTime       = 5 * time.Second // in which a connection shows its token
	tokenBytes      = 32
)

// Socket admits the holders of one token. Make it with New.
type Socket struct {
	// Serve answers one connection until its stream or ctx ends.
	Serve func(ctx context.Context, conn io.ReadWriteCloser) error
	// Refused is told of each connection that was closed instead, and why. It is called by
	// several goroutines.
	Refused func(why string)

	token string
}

// New makes a socket with a new random token.
func New() *Socket {
	random := make([]byte, tokenBytes)
	rand.Read(random) // It never fails.
	return &Socket{token: hex.EncodeToString(random)}
}

// Token is what a connection begins with, followed by a line feed.
func (s *Socket) Token() string { return s.token }

// Accept serves the connections of l until ctx ends or l is closed. It then closes all
// connections, and returns when nothing is served any more.
func (s *Socket) Accept(ctx context.Context, l net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	seats := make(chan struct{}, MostConnections)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case seats <- struct{}{}:
		default:
			conn.Close()
			s.Refused("too many connections at once")
			continue
		}
		serving.Go(func() {
			defer func() { <-seats }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			from := bufio.NewReaderSize(conn, 4<<10)
			if why := s.check(conn, from); why != "" {
				if ctx.Err() == nil {
					s.Refused(why)
				}
				return
			}
			_ = s.Serve(ctx, stream{from, conn}) // A client that is gone has heard nothing, whatever the error is.
		})
	}
}

// check reads the token of a connection. It says what is wrong with it; empty: nothing.
func (s *Socket) check(conn net.Conn, from *bufio.Reader) (why string) {
	late := time.AfterFunc(tokenTime, func() { conn.Close() })
	defer late.Stop()
	line := make([]byte, len(s.token)+1)
	if n, err := io.ReadFull(from, line); err != nil && n == 0 {
		return "it showed no token"
	}
	if subtle.ConstantTimeCompare(line, []byte(s.token+"\n")) != 1 {
		return "its token is not that of this turn"
	}
	return ""
}

// stream is a connection of which the beginning has been read.
type stream struct {
	io.Reader
	net.Conn
}

// Read reads what follows the token.
func (s stream) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// errRefused means that the other side closed the connection before it answered anything.
var errRefused = errors.New("pawl has closed the connection: the turn has ended, or the token is not that of this turn")
