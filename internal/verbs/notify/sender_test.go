package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const hookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

var asked = loop.Notice{
	ID: "nt_1", Key: "approval/ap_1", Event: loop.NoticeApproval, Kind: loop.NoticeNeedsYou, Title: "ci#7 asks: may it land?", Body: "it says: grün",
	Loop: "ci", Run: "ci#7", Root: "/w", Answer: loop.PawlCommand("approve", "ap_1").WithFlag("workspace", "/w"), At: noon,
}

// received is one request as a server got it.
type received struct {
	path   string
	header http.Header
	body   string
}

// receiver is a server that answers with these statuses in turn, and then with 200.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
}

func receive(t *testing.T, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || req.Method != http.MethodPost {
			t.Errorf("%s: %v", req.Method, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		status := http.StatusOK
		if len(r.requests) < len(statuses) {
			status = statuses[len(r.requests)]
		}
		r.requests = append(r.requests, received{req.URL.Path, req.Header, string(body)})
		if status/100 == 3 {
			w.Header().Set("Location", "http://other.example/path-with-key")
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, strings.Repeat("not now\n", 10_000))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.requests...)
}

func sendWith(t *testing.T, c loop.Channel, n loop.Notice, environ ...string) error {
	t.Helper()
	return testSender(t, func() time.Time { return noon.Add(time.Minute) }, environ...).Send(t.Context(), c, n)
}

// verify checks a signature as a receiver does, by the text of Standard Webhooks.
func verify(t *testing.T, secret string, r received) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(r.header.Get("webhook-id") + "." + r.header.Get("webhook-timestamp") + "." + r.body))
	if want, got := "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), r.header.Get("webhook-signature"); got != want {
		t.Errorf("the signature is %q, want %q", got, want)
	}
}

func TestAWebhookIsSignedAsStandardWebhooksAsks(t *testing.T) {
	t.Parallel()
	server := receive(t)
	if err := sendWith(t, loop.Channel{Name: "hook", Kind: loop.ChannelWebhook, Target: server.URL + "/in", SecretEnv: "HOOK"}, asked, "HOOK="+hookSecret); err != nil {
		t.Fatal(err)
	}
	got := server.got()[0]
	verify(t, hookSecret, got)
	if at := fmt.Sprint(noon.Add(time.Minute).Unix()); got.path != "/in" || got.header.Get("webhook-id") != "nt_1" || got.header.Get("webhook-timestamp") != at {
		t.Errorf("the request is %+v, want it at %s", got, at)
	}
	var event struct {
		SpecVersion, ID, Source, Type, Subject string
		Time                                   time.Time
		Data                                   map[string]any
	}
	if err := json.Unmarshal([]byte(got.body), &event); err != nil {
		t.Fatal(err)
	}
	if event.SpecVersion != "1.0" || event.ID != "nt_1" || event.Type != "dev.pawl.notice.v1" || event.Subject != "ci#7" || !event.Time.Equal(noon) {
		t.Errorf("the event is %+v", event)
	}
	for key, want := range map[string]any{
		"schema": "pawl.notice/v1", "kind": "needs_you", "event": "approval", "title": asked.Title, "run": "ci#7", "command": "pawl approve ap_1 --workspace /w",
	} {
		if event.Data[key] != want {
			t.Errorf("%s is %v, want %v", key, event.Data[key], want)
		}
	}
}

func TestNtfyGetsAMessageThatAPersonReads(t *testing.T) {
	t.Parallel()
	over := asked
	over.Over, over.Kind, over.Title = true, loop.NoticeInforms, "grün"
	long := asked
	long.Body = strings.Repeat("ü", 3000)
	server := receive(t)
	c := loop.Channel{Name: "phone", Kind: loop.ChannelNtfy, Target: server.URL + "/topic", SecretEnv: "NTFY_TOKEN", Click: "https://example.org/runs"}
	for _, n := range []loop.Notice{asked, over, long} {
		if err := sendWith(t, c, n, "NTFY_TOKEN=tk_secret"); err != nil {
			t.Fatal(err)
		}
	}
	got := server.got()
	for i, want := range []map[string]string{
		{"Title": asked.Title, "Priority": "high", "Tags": "warning,approval", "Click": "https://example.org/runs", "Authorization": "Bearer tk_secret"},
		{"Title": "grün", "Priority": "default", "Tags": "white_check_mark,approval"},
	} {
		for name, value := range want {
			said, err := new(mime.WordDecoder).DecodeHeader(got[i].header.Get(name))
			if err != nil || said != value {
				t.Errorf("%s of message %d is %q: %v, want %q", name, i, said, err, value)
			}
		}
	}
	if d := cmp.Diff("it says: grün\n\npawl approve ap_1 --workspace /w", got[0].body); d != "" || got[0].path != "/topic" {
		t.Errorf("to %s (-want +got):\n%s", got[0].path, d)
	}
	if body := got[2].body; len(body) > 4096 || !strings.HasSuffix(body, "ü…") {
		t.Errorf("a long message has %d bytes and ends with %q", len(body), body[len(body)-8:])
	}
	if err := sendWith(t, loop.Channel{Name: "open", Kind: loop.ChannelNtfy, Target: server.URL + "/topic"}, asked); err != nil || server.got()[3].header.Get("Authorization") != "" {
		t.Errorf("without a token: %v, %v", err, server.got()[3].header)
	}
}

func TestACommandGetsTheNoticeAsDataOnly(t *testing.T) {
	t.Parallel()
	n, out := asked, filepath.Join(t.TempDir(), "out")
	n.Title = "$(touch " + out + ".evil); `touch " + out + ".evil`"
	c := loop.Channel{Name: "log", Kind: loop.ChannelCommand, Target: `cat > "$OUT" && env | grep ^PAWL_NOTICE_ | sort >> "$OUT"`}
	if err := sendWith(t, c, n, "OUT="+out); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	line, variables, _ := strings.Cut(string(body), "\n")
	var got message
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(message{"pawl.notice/v1", n, "pawl approve ap_1 --workspace /w"}, got); d != "" {
		t.Errorf("the notice (-want +got):\n%s", d)
	}
	want := `PAWL_NOTICE_BODY=it says: grün
PAWL_NOTICE_COMMAND=pawl approve ap_1 --workspace /w
PAWL_NOTICE_EVENT=approval
PAWL_NOTICE_ID=nt_1
PAWL_NOTICE_KIND=needs_you
PAWL_NOTICE_LOOP=ci
PAWL_NOTICE_OVER=
PAWL_NOTICE_RUN=ci#7
PAWL_NOTICE_TITLE=` + n.Title + `
PAWL_NOTICE_WORKSPACE=/w
`
	if d := cmp.Diff(want, variables); d != "" {
		t.Errorf("the variables (-want +got):\n%s", d)
	}
	if _, err := os.Stat(out + ".evil"); err == nil {
		t.Error("the title was run")
	}
}

func TestADesktopShowsTheTextAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > "+dir+"/args\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := testSender(t, time.Now)
	s.Environ = []string{"PATH=" + dir + ":/bin:/usr/bin"}
	n := asked
	n.Title, n.Body = "--help", "<b>bold</b> & more"
	if err := s.Send(t.Context(), loop.Channel{Name: "desktop", Kind: loop.ChannelDesktop}, n); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	want := "--app-name=pawl\n--urgency=critical\n--\n--help\n&lt;b&gt;bold&lt;/b&gt; &amp; more\n\npawl approve ap_1 --workspace /w\n"
	if d := cmp.Diff(want, string(body)); d != "" {
		t.Errorf("the arguments (-want +got):\n%s", d)
	}
	s.System = "darwin"
	argv, err := s.desktopCommand(n)
	if err != nil || argv[0] != "/usr/bin/osascript" || strings.Contains(argv[2], n.Title) || argv[3] != n.Title {
		t.Errorf("on macOS: %q, %v", argv, err)
	}
}

func TestAFailedTrySaysWhyWithoutASecret(t *testing.T) {
	t.Parallel()
	const secret = "tk_3f9a7c51e0b24d68"
	gone := httptest.NewServer(nil)
	gone.Close()
	hook := func(address string) loop.Channel {
		return loop.Channel{Name: "phone", Kind: loop.ChannelNtfy, Target: address + "/hidden-topic", SecretEnv: "TOKEN"}
	}
	for name, c := range map[string]struct {
		channel loop.Channel
		says    string
	}{
		"an error of the server": {hook(receive(t, 500).URL), "answered 500 Internal Server Error: not now not now"},
		"a redirect":             {hook(receive(t, 307).URL), "pawl follows no redirect; name the address to which it leads, on http://other.example"},
		"no server":              {hook(gone.URL), "connection refused"},
		"a command that fails":   {loop.Channel{Kind: loop.ChannelCommand, Target: `echo "no $TOKEN"; exit 3`}, "exit status 3: no [redacted:TOKEN]"},
		"a silent command":       {loop.Channel{Kind: loop.ChannelCommand, Target: `exit 4`}, "exit status 4, and it printed nothing"},
		"no variable":            {loop.Channel{Name: "x", Kind: loop.ChannelNtfy, Target: gone.URL + "/t", SecretEnv: "NOT_SET"}, "the variable NOT_SET is not set"},
		"an unknown kind":        {loop.Channel{Kind: "pigeon"}, `"pigeon" is not a kind of channel`},
	} {
		err := sendWith(t, c.channel, asked, "TOKEN="+secret)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
			continue
		}
		for _, hidden := range []string{secret, "hidden-topic", "path-with-key"} {
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("%s: %v has %s", name, err, hidden)
			}
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestATryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(req.Body)
		cancel(enough)
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	s := testSender(t, time.Now)
	if err := s.Send(ctx, loop.Channel{Kind: loop.ChannelNtfy, Target: server.URL + "/t"}, asked); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("send = %v, want the cause", err)
	}
}

func TestAChannelThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		channel loop.Channel
		exit    int // 0: it can work
		says    string
	}{
		"a webhook":                {channel: loop.Channel{Kind: loop.ChannelWebhook, Target: "https://example.org/in", SecretEnv: "HOOK"}},
		"a webhook with a file":    {channel: loop.Channel{Kind: loop.ChannelWebhook, Target: "http://127.0.0.1:1/in", SecretFile: write("key", hookSecret+"\n")}},
		"a topic":                  {channel: loop.Channel{Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/topic"}},
		"a command":                {channel: loop.Channel{Kind: loop.ChannelCommand, Target: "cat"}},
		"no kind":                  {loop.Channel{Kind: "mail", Target: "x"}, 2, `"mail" is not a kind of channel`},
		"not an address":           {loop.Channel{Kind: loop.ChannelWebhook, Target: "example.org", SecretEnv: "HOOK"}, 2, "not an address that begins with https://"},
		"a file URL":               {loop.Channel{Kind: loop.ChannelNtfy, Target: "file:///etc/passwd"}, 2, "not an address"},
		"a password in a URL":      {loop.Channel{Kind: loop.ChannelNtfy, Target: "https://me:hunter2@ntfy.sh/t"}, 2, "holds a name or a password"},
		"an unsafe click":          {loop.Channel{Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/t", Click: "javascript:alert(1)"}, 2, "--click"},
		"no topic":                 {loop.Channel{Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/"}, 2, "has no topic"},
		"a webhook without secret": {loop.Channel{Kind: loop.ChannelWebhook, Target: "https://example.org/in"}, 2, "a webhook needs a secret"},
		"a variable that is not set": {
			loop.Channel{Name: "hook", Kind: loop.ChannelWebhook, Target: "https://example.org/in", SecretEnv: "NONE"}, 2, "the variable NONE is not set: the channel hook takes its secret from it",
		},
		"a weak secret":       {loop.Channel{Kind: loop.ChannelWebhook, Target: "https://example.org/in", SecretEnv: "WEAK"}, 2, "not one of Standard Webhooks"},
		"a secret in no file": {loop.Channel{Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/t", SecretFile: filepath.Join(dir, "none")}, 2, "no such file"},
		"a secret in a folder": {
			loop.Channel{Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/t", SecretFile: dir}, 2, "it is not a file",
		},
		"a secret of two lines": {loop.Channel{Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/t", SecretFile: write("two", "a\nb\n")}, 2, "does not hold one line"},
		"an empty command":      {loop.Channel{Kind: loop.ChannelCommand, Target: " "}, 2, "the command is empty"},
		"a desktop":             {loop.Channel{Kind: loop.ChannelDesktop}, 5, "notify-send is not installed"},
	} {
		s := testSender(t, time.Now)
		s.Environ = []string{"PATH=" + dir, "HOOK=" + hookSecret, "WEAK=password"}
		err := s.Check(c.channel)
		f, _ := errors.AsType[*loop.Fault](err)
		switch {
		case c.exit == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.exit != 0 && (f == nil || f.Exit != c.exit || f.Fix == "" || !strings.Contains(f.Error(), c.says)):
			t.Errorf("%s: %v, want %q with exit status %d and a fix", name, err, c.says, c.exit)
		case f != nil && strings.Contains(fmt.Sprintf("%+v", *f), "hunter2"):
			t.Errorf("%s: the password is told: %v", name, err)
		}
	}
}
