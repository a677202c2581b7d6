package mcp

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/httpguard"
	"github.com/pawl-run/pawl/internal/mcp/frame"
)

// Path is where a Handler serves.
const Path = "/mcp"

const (
	idleSession = 30 * time.Minute // until a session that is not used is forgotten
	mostBody    = frame.MaxLine    // bytes of a request
)

// Handler serves clients over streamable HTTP at Path: the holder of each token by a server of
// its own. A request without a token is refused, as one from the page of another site, with the
// name of another host, or with the session of another token.
func Handler(tokens map[string]*Server) http.Handler {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		for t := range tokens {
			if subtle.ConstantTimeCompare([]byte(t), []byte(token)) == 1 {
				sum := sha256.Sum256([]byte(t))
				return &auth.TokenInfo{UserID: hex.EncodeToString(sum[:])}, nil // A session belongs to this id.
			}
		}
		return nil, auth.ErrInvalidToken
	}
	byUser := map[string]*sdk.Server{}
	for t, s := range tokens {
		sum := sha256.Sum256([]byte(t))
		byUser[hex.EncodeToString(sum[:])] = s.server
	}
	sessions := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		return byUser[auth.TokenInfoFromContext(r.Context()).UserID]
	}, &sdk.StreamableHTTPOptions{SessionTimeout: idleSession, MaxRequestBodyBytes: mostBody})
	mux := http.NewServeMux()
	mux.Handle(Path, auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(limit(sessions)))
	return httpguard.Handler(mux, httpguard.Options{})
}

// limit lets a number of requests in at once, and some more wait.
func limit(next http.Handler) http.Handler {
	seats, queue := make(chan struct{}, frame.AtOnce), make(chan struct{}, frame.AtOnce+frame.MaxWaiting)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // A stream of notes, or the end of a session.
			next.ServeHTTP(w, r)
			return
		}
		select {
		case queue <- struct{}{}:
			defer func() { <-queue }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests at once", http.StatusTooManyRequests)
			return
		}
		select {
		case seats <- struct{}{}:
			defer func() { <-seats }()
			if isBatch(r) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"one message for each request: an array may ask for any amount of answers"}}`+"\n")
				return
			}
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// isBatch reports whether the body of a request is an array, and leaves it to be read.
func isBatch(r *http.Request) bool {
	body := bufio.NewReader(r.Body)
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	for n := 1; ; n++ {
		start, err := body.Peek(n)
		if err != nil {
			return false
		}
		switch start[n-1] {
		case ' ', '\t', '\r', '\n':
		default:
			return start[n-1] == '['
		}
	}
}

// Close ends what the server does beside calls.
func (s *Server) Close() {
	s.watch.end()
	s.jobs.drain(0)
}
