package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/surface/httpguard"
	"github.com/pawl-run/pawl/internal/surface/mcp/frame"
)

// Path is where a Handler serves.
const Path = "/mcp"

const (
	idleSession = 30 * time.Minute // until a session that is not used is forgotten
	mostBody    = frame.MaxLine    // bytes of a request
	noteTime    = 2 * time.Second  // for a client to read what it is sent: notes to others wait for it
)

// Handler serves clients over streamable HTTP at Path: the holder of each token by a server of
// its own. A request without a token is refused, as one from the page of another site, with the
// name of another host, or with the session of another token.
func Handler(tokens map[string]*Server) http.Handler {
	byUser := map[string]*Server{}
	for t, s := range tokens {
		byUser[userOf(t)] = s
	}
	ofRequest := func(r *http.Request) *Server { return byUser[auth.TokenInfoFromContext(r.Context()).UserID] }
	sdkHandler := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server { return ofRequest(r).server },
		&sdk.StreamableHTTPOptions{SessionTimeout: idleSession, MaxRequestBodyBytes: mostBody})
	inSession := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ofRequest(r).sessions.serve(w, r, sdkHandler) })
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if user := userOf(token); isUser(byUser, user) {
			return &auth.TokenInfo{UserID: user}, nil // A session belongs to this id.
		}
		return nil, auth.ErrInvalidToken
	}
	holders := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(limit(inSession))
	guessed := &guesses{}
	mux := http.NewServeMux()
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		_, token, given := strings.Cut(r.Header.Get("Authorization"), " ")
		if given && !isUser(byUser, userOf(strings.TrimSpace(token))) && !guessed.allow(r.RemoteAddr, clock.System{}.Now()) {
			w.Header().Set("Retry-After", strconv.Itoa(int(guessTime.Seconds())))
			w.Header().Set("Connection", "close")
			http.Error(w, "too many wrong tokens", http.StatusTooManyRequests)
			return
		}
		holders.ServeHTTP(w, r)
	})
	return httpguard.Handler(mux, httpguard.Options{Patience: noteTime})
}

// userOf is the id of the holder of a token. It tells nothing of the token.
func userOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// isUser looks at all, so that the time it takes tells nothing.
func isUser(all map[string]*Server, user string) bool {
	found := 0
	for known := range all {
		found |= subtle.ConstantTimeCompare([]byte(known), []byte(user))
	}
	return found == 1
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
			if status, said := readMessage(w, r); status != http.StatusOK {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = w.Write(append(said, '\n'))
				return
			}
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// readMessage reads the body of a request, and leaves it to be read again. The status is not
// http.StatusOK, and there is an answer, if it is not one message that everybody reads as the same.
func readMessage(w http.ResponseWriter, r *http.Request) (status int, said []byte) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge, frame.Refusal(nil, fmt.Errorf("it is longer than %d bytes", mostBody))
	}
	if said := frame.Refusal(body, err); said != nil {
		return http.StatusBadRequest, said
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.StatusOK, nil
}

// Close ends what the server does beside calls.
func (s *Server) Close() {
	s.watch.end()
	s.jobs.drain(0)
}
