package meter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// request is a plain HTTP request that may be sent to its host.
type request struct {
	head    *head
	target  target
	allowed Hosts // the entries that allow the host
}

// forward sends one plain request and passes on its response.
func (e *Egress) forward(ctx context.Context, w *watch, c *client, r request) error {
	path, _, _ := strings.Cut(r.target.path, "?")
	if !r.allowed.allowCall(r.head.method, path) {
		return deny(c.to, ReasonCall, r.head.method+" "+shorten(path))
	}
	up, err := e.connectTo(ctx, w, c.to)
	if err != nil {
		return err
	}
	defer closeAtEnd(ctx, up)()
	if r.head.listHas("Expect", "100-continue") && !r.head.old {
		if _, err := io.WriteString(c.Conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	sent := make(chan error, 1)
	go func() {
		err := r.sendTo(up, c.in)
		if err != nil {
			// The request is incomplete, so that no answer will come.
			_ = up.Close()
		}
		sent <- err
	}()
	err = c.passResponse(up, r, e.limits().Head)
	_ = up.Close()
	return c.finishForward(w, err, sent)
}

// finishForward waits for the sender and decides which of two errors caused the
// other.
func (c *client) finishForward(w *watch, err error, sent <-chan error) error {
	w.endAfter(linger)
	// The sender may wait for the rest of a body that the host did not want.
	_ = c.SetReadDeadline(pastDeadline)
	sendErr := <-sent
	_ = c.SetReadDeadline(time.Time{})
	if _, denied := denialIn(sendErr); denied {
		return sendErr
	}
	if err == nil {
		c.drainInput()
	}
	return err
}

var pastDeadline = time.Unix(1, 0)

// sendTo writes the request anew, so that the host reads exactly what was
// checked.
func (r request) sendTo(up *countedConn, body io.Reader) error {
	var text strings.Builder
	writeHead(&text, r)
	if _, err := io.WriteString(up, text.String()); err != nil {
		return err
	}
	if r.head.chunked {
		return r.sendChunks(up, body)
	}
	_, err := io.CopyN(up, body, r.head.length)
	return err
}

func writeHead(text *strings.Builder, r request) {
	fmt.Fprintf(text, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", r.head.method, r.target.path, r.hostField())
	for _, f := range r.head.endToEnd() {
		fmt.Fprintf(text, "%s: %s\r\n", f.name, f.value)
	}
	switch {
	case r.head.chunked:
		text.WriteString("Transfer-Encoding: chunked\r\n")
	case len(r.head.fieldValues("Content-Length")) > 0:
		fmt.Fprintf(text, "Content-Length: %d\r\n", r.head.length)
	}
	text.WriteString("\r\n")
}

// sendChunks decodes the chunks of the body and encodes them anew.
func (r request) sendChunks(up *countedConn, body io.Reader) error {
	in := &errorKeeper{r: body}
	out := httputil.NewChunkedWriter(up)
	_, err := io.Copy(struct{ io.Writer }{out}, httputil.NewChunkedReader(bufio.NewReader(in)))
	if err != nil {
		_, denied := denialIn(err)
		_, network := errors.AsType[net.Error](err)
		if in.err == nil && !denied && !network {
			return deny(r.target.place, ReasonRequest, "its chunks are malformed")
		}
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	_, err = io.WriteString(up, "\r\n")
	return err
}

// errorKeeper keeps the error of a reader, so that it can be told from errors of
// the code that reads it.
type errorKeeper struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (n *errorKeeper) Read(p []byte) (int, error) {
	got, err := n.r.Read(p)
	if err != nil {
		n.err = err
	}
	return got, err
}

// hostField returns the Host field, without the default port.
func (r request) hostField() string {
	if r.target.port == portPlain {
		return strings.TrimSuffix(r.target.authority(), ":80")
	}
	return r.target.authority()
}

// passResponse passes the response on, without the fields that are for the proxy.
func (c *client) passResponse(up *countedConn, r request, limit int) error {
	resp, err := readResponse(up, r.head.method, limit)
	if err != nil {
		if up.cut != nil {
			return up.cut // A head that was cut would look malformed.
		}
		return &unreachableError{c.to, fmt.Errorf("read its answer: %w", err)}
	}
	defer resp.Body.Close()
	c.answered = true
	forProxy := strings.Join(resp.Header["Connection"], ",")
	for name := range resp.Header {
		if isHopByHop(name) || listHasElement(forProxy, name) {
			resp.Header.Del(name)
		}
	}
	resp.Close, resp.Trailer = true, nil
	resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
	resp.TransferEncoding = nil
	if resp.ContentLength < 0 && !r.head.old {
		// Without a length, only a last chunk shows that the body is complete: a
		// body that was cut must not look complete.
		resp.TransferEncoding = []string{"chunked"}
	}
	return resp.Write(c.Conn)
}

// readResponse reads the head of a response. The limit applies to the head only,
// not to the body.
func readResponse(up *countedConn, method string, limit int) (*http.Response, error) {
	bounded := &io.LimitedReader{R: up, N: int64(limit)}
	in := bufio.NewReader(bounded)
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			if bounded.N <= 0 {
				return nil, errHeadSize
			}
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			_ = resp.Body.Close()
			return nil, errors.New("it changes to a protocol that nobody asked for")
		}
		if resp.StatusCode >= http.StatusOK {
			bounded.N = math.MaxInt64
			return resp, nil
		}
	}
}
