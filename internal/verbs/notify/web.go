package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/webhook"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// post sends a request with its body. An answer other than 2xx is an error; a redirect
// is never followed, because a GET elsewhere would look like success.
func (s *Sender) post(ctx context.Context, address string, header http.Header, body []byte) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the address of the channel is not a URL")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address of the channel is not a URL")
	}
	req.Header = header
	req.Header.Set("User-Agent", "pawl")
	client := http.Client{
		Transport: &http.Transport{
			Proxy: s.Proxy, DialContext: (&net.Dialer{Timeout: timeout}).DialContext, TLSHandshakeTimeout: timeout,
			MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if e, ok := errors.AsType[*url.Error](err); ok { // It has the whole address, with what may be secret in its path.
			err = e.Err
		}
		return fmt.Errorf("POST to %s: %w", u.Host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("%s answered %s: pawl follows no redirect; name the address to which it leads%s", u.Host, resp.Status, leadsTo(resp))
	}
	return fmt.Errorf("%s answered %s: %s", u.Host, resp.Status, cmp.Or(strings.TrimSpace(string(said)), "without a word"))
}

// leadsTo is the host of a redirect; the rest of its address may be secret.
func leadsTo(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil {
		return ""
	}
	return ", on " + to.Scheme + "://" + to.Host
}

// decodeSecret returns the key in a secret of a webhook.
func decodeSecret(c loop.Channel, secret string) (webhook.Key, error) {
	key, err := webhook.ParseSecret(secret)
	if err != nil {
		err = &loop.Fault{
			Exit: loop.ExitUsage, What: "the secret of the channel " + c.Name + " in " + cmp.Or(c.SecretEnv, c.SecretFile) + " is not one of Standard Webhooks",
			Why: err.Error(), Fix: "make one: printf whsec_; openssl rand -base64 32",
		}
	}
	return key, err
}

// cloudEvent is the body of a webhook: a notice as an event of CloudEvents 1.0.
type cloudEvent struct {
	Version string          `json:"specversion"`
	ID      string          `json:"id"`
	Source  string          `json:"source"`
	Type    string          `json:"type"`
	Subject string          `json:"subject,omitempty"`
	Time    time.Time       `json:"time"`
	Content string          `json:"datacontenttype"`
	Data    json.RawMessage `json:"data"`
}

// sendWebhook posts a notice, signed as Standard Webhooks asks. Its id is the same in
// each try, so that a receiver knows what it has.
func (s *Sender) sendWebhook(ctx context.Context, c loop.Channel, n loop.Notice, secret string) error {
	key, err := decodeSecret(c, secret)
	if err != nil {
		return err
	}
	data, err := encode(n)
	if err != nil {
		return err
	}
	body, err := json.Marshal(cloudEvent{
		Version: "1.0", ID: n.ID, Source: "pawl", Type: "dev.pawl.notice.v1", Subject: cmp.Or(n.Run, n.Loop), Time: n.At, Content: "application/json", Data: data,
	})
	if err != nil {
		return err
	}
	header := key.Sign(n.ID, s.Now(), body)
	header.Set("Content-Type", "application/cloudevents+json")
	return s.post(ctx, c.Target, header, body)
}

// checkTopic refuses what is not a topic of an ntfy server.
func checkTopic(text string) error {
	u, err := parseURL("the topic of ntfy", text)
	if err != nil {
		return err
	}
	if topic := strings.Trim(u.Path, "/"); topic == "" || strings.Contains(topic, "/") && u.Host == "ntfy.sh" {
		return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%q has no topic", text), Fix: "write the address with one, like https://ntfy.sh/my-topic; whoever knows the topic reads the notices"}
	}
	return nil
}

// mostNtfy is how many bytes a message of ntfy may have; a longer one would be a file.
const mostNtfy = 4096

func (s *Sender) sendNtfy(ctx context.Context, c loop.Channel, n loop.Notice, token string) error {
	priority, tag := "default", "information_source"
	switch {
	case n.Over:
		tag = "white_check_mark"
	case n.Kind == loop.NoticeNeedsYou:
		priority, tag = "high", "warning"
	}
	header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	header.Set("Title", mime.BEncoding.Encode("utf-8", n.Title))
	header.Set("Priority", priority)
	header.Set("Tags", tag+","+string(n.Event))
	if c.Click != "" {
		header.Set("Click", c.Click)
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	body := []byte(cmp.Or(text(n), n.Title))
	if len(body) > mostNtfy {
		body = []byte(strings.ToValidUTF8(string(body[:mostNtfy-len("…")]), "") + "…")
	}
	return s.post(ctx, c.Target, header, body)
}
