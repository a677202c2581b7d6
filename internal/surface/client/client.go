// Package client asks the daemon of a store to carry verbs out, over its socket.
//
// It never starts a daemon, and it opens no store: who finds no daemon carries a verb out
// in its own process.
package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// ErrGone means that no daemon answers on the socket: nothing was asked.
var ErrGone = errors.New("the daemon does not answer")

// Client asks one daemon. Close it.
type Client struct {
	Dir string // the folder in whose workspace verbs are carried out
	By  loop.Actor
	Say func(verb.Progress)
	Key string // of one call, so that it is carried out once; empty: each call counts

	http http.Client
}

// dialTime is how long a daemon may take to accept a connection.
const dialTime = 2 * time.Second

// New returns a client of the daemon that listens on a socket.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "unix", socket)
	}
	return &Client{Say: func(verb.Progress) {}, http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// As returns a client of the same daemon for one request of somebody.
func (c *Client) As(dir string, by loop.Actor, key string, say func(verb.Progress)) *Client {
	return &Client{Dir: dir, By: by, Key: key, Say: say, http: http.Client{Transport: c.http.Transport}}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks how the daemon is. The error is ErrGone if it does not say so in time.
func (c *Client) Status(ctx context.Context) (s api.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://pawl/version", nil)
	if err != nil {
		return s, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return s, errors.Join(ErrGone, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// Call carries a verb out. If ctx ends, it asks the daemon to interrupt the verb, and
// still waits for the result.
func (c *Client) Call(ctx context.Context, v verb.Info, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	address := "http://pawl" + v.Path() + "?workspace=" + url.QueryEscape(c.Dir)
	id := rand.Text()
	req, err := c.request(context.WithoutCancel(ctx), address, id, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if v.Writes {
		req.Header.Set("Accept", "text/event-stream")
	}
	cancel := context.AfterFunc(ctx, func() { c.cancel(context.WithoutCancel(ctx), id) })
	defer cancel()
	resp, err := c.http.Do(req)
	if err != nil {
		return c.lost(v, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch media := resp.Header.Get("Content-Type"); {
	case media == "application/problem+json":
		return c.problem(v, resp.Body, out)
	case media == "text/event-stream":
		return c.follow(v, resp.Body, out)
	case resp.StatusCode != http.StatusOK:
		return c.lost(v, errors.New(resp.Status))
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return c.lost(v, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, address, id string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, body)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		api.HeaderWho: c.By.Who, api.HeaderRole: string(c.By.Role), api.HeaderFrom: c.By.From, api.HeaderLoops: c.By.Grant.List(), api.HeaderKey: c.Key, api.HeaderRequest: id, "Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	return req, nil
}

// cancel asks the daemon to end a request, which it answers as always.
func (c *Client) cancel(ctx context.Context, id string) {
	ctx, done := context.WithTimeout(ctx, dialTime)
	defer done()
	req, err := c.request(ctx, "http://pawl/v1/requests/cancel", id, nil)
	if err != nil {
		return
	}
	if resp, err := c.http.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

// lost is the error if the daemon went away while it carried a verb out.
func (c *Client) lost(v verb.Info, err error) error {
	return &loop.Fault{
		Exit: loop.ExitHeld, What: "the daemon went away while it was asked to " + v.Does, Why: err.Error(), Err: err,
		Fix: "see whether it was done: {1}", Actions: []loop.Command{loop.PawlCommand("runs")},
	}
}

// problem is the error that the daemon answered with. There may be a result beside it.
func (c *Client) problem(v verb.Info, body io.Reader, out any) error {
	p := struct {
		verb.Problem

		Result json.RawMessage `json:"result"`
	}{}
	if err := json.NewDecoder(body).Decode(&p); err != nil {
		return c.lost(v, err)
	}
	if len(p.Result) > 0 && string(p.Result) != "null" {
		if err := json.Unmarshal(p.Result, out); err != nil {
			return c.lost(v, err)
		}
	}
	return p.Err()
}

// follow tells the progress of a verb, and returns what became of it.
func (c *Client) follow(v verb.Info, body io.Reader, out any) error {
	lines := bufio.NewReader(body)
	name := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return c.lost(v, err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			switch name {
			case api.EventProgress:
				var p verb.Progress
				if err := json.Unmarshal([]byte(value), &p); err != nil {
					return c.lost(v, fmt.Errorf("read its progress: %w", err))
				}
				c.Say(p)
			case api.EventResult:
				if err := json.Unmarshal([]byte(value), out); err != nil {
					return c.lost(v, err)
				}
				return nil
			case api.EventProblem:
				return c.problem(v, strings.NewReader(value), out)
			}
		}
	}
}
