package compose_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/webhook"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// A page in a browser on this machine asks, by a port that leads to the socket, too: what it sends
// is told by its headers. The name of its host is one that its owner has led to this machine.
func TestAttack103NoPageAsksAnything(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	before := s.head()
	attack := func(surfaces ...string) {
		t.Helper()
		for name, change := range map[string]func(r *http.Request){
			"another origin":      func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			"no origin of a page": func(r *http.Request) { r.Header.Set("Origin", "null") },
			"another site":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"another port":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			"a name that was led here": func(r *http.Request) {
				r.Host = "evil.example"
				r.Header.Set("Origin", "http://evil.example")
				r.Header.Set("Sec-Fetch-Site", "same-origin")
			},
		} {
			for _, surface := range surfaces {
				r := s.right("m1")[surface].r
				if change(r); surface == webhooks && r.Host == "evil.example" {
					continue // Proxies lead to webhooks, by any name. Each delivery is signed.
				}
				if status, said, _ := s.send(r); status != http.StatusForbidden {
					t.Errorf("%s, asked from %s, answers %d %s", surface, name, status, said)
				}
			}
		}
	}
	attack(socket, agents)
	for _, v := range api.Verbs() { // Answers to approvals are among them.
		r := s.request(http.MethodPost, "http://pawl"+v.Path()+"?workspace="+s.root, "{}")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if status, said, _ := s.send(r); status != http.StatusForbidden {
			t.Errorf("%s, asked from another site, answers %d %s", v.Name, status, said)
		}
	}
	s.hasNotMoved(before)
	s.begins()
	attack(webhooks)
	s.eventsOf("hook")
	for surface, c := range s.right("m2") { // They were right but for what was added.
		if status, said, _ := s.send(c.r); status != c.want {
			t.Errorf("%s answers %d %s, want %d", surface, status, said, c.want)
		}
	}
}

func TestAttack104NothingIsDoneForWhoShowsNoTokenAndNoSignature(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	before := s.head()
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer x", "Basic " + agentToken, agentToken, "Bearer " + agentToken + "x", "Bearer " + agentToken[1:]} {
		r := s.right("")[agents].r
		r.Header.Set("Authorization", header)
		r.URL.RawQuery = "access_token=" + agentToken
		if status, said, h := s.send(r); status != http.StatusUnauthorized || h.Get("Mcp-Session-Id") != "" {
			t.Errorf("MCP with %q is answered %d %s", header, status, said)
		}
	}
	s.hasNotMoved(before)
	s.begins()
	for _, header := range []string{webhook.HeaderSignature, webhook.HeaderTimestamp, webhook.HeaderID} {
		r := s.right("m1")[webhooks].r
		r.Header.Del(header)
		if status, said, _ := s.send(r); status != http.StatusUnauthorized {
			t.Errorf("a delivery without %s is answered %d %s", header, status, said)
		}
	}
	s.eventsOf("hook")
}

func TestAttack116NoHeadIsLargerThan64KB(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	s.begins()
	for _, host := range []string{"unix", hostInURL(t, s.agents), hostInURL(t, s.hooks)} {
		for name, head := range map[string]string{"one": "A: " + strings.Repeat("x", 65<<10), "many": strings.Repeat("A: xxxxxxxxxx\r\n", 5000) + "B: x"} {
			if status := s.raw(host, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+head+"\r\n\r\n"); status != http.StatusRequestHeaderFieldsTooLarge && status != 0 {
				t.Errorf("%s with %s large headers answers %d", host, name, status)
			}
		}
	}
}

func hostInURL(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// Each verb that changes something, by each method that is not POST.
func TestAttack106NothingIsChangedByALinkThatIsFetched(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	before := s.head()
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodTrace, http.MethodOptions, "PROPFIND"}
	writes := 0
	for _, v := range api.Verbs() {
		if !v.Writes {
			continue
		}
		writes++
		for _, method := range methods {
			r := s.request(method, "http://pawl"+v.Path()+"?loop=fix&approval=ap_1&run=fix%231&workspace="+url.QueryEscape(s.root), "")
			if status, said, h := s.send(r); status != http.StatusMethodNotAllowed || h.Get("Allow") != http.MethodPost {
				t.Errorf("%s %s is answered %d %s, allowed %q", method, v.Name, status, said, h.Get("Allow"))
			}
		}
	}
	if writes < 20 {
		t.Errorf("%d verbs change something", writes)
	}
	for _, method := range methods {
		r := s.agent("")
		if r.Method, r.Body = method, http.NoBody; method == http.MethodOptions || method == http.MethodTrace {
			continue // The library answers what it does not serve with 405, below.
		}
		if status, said, _ := s.send(r); status < 400 {
			t.Errorf("%s of MCP is answered %d %s", method, status, said)
		}
	}
	s.hasNotMoved(before)
	s.begins()
	for _, method := range methods {
		r := s.right("m1")[webhooks].r
		r.Method = method
		if status, said, _ := s.send(r); status != http.StatusMethodNotAllowed {
			t.Errorf("%s of a webhook is answered %d %s", method, status, said)
		}
	}
	s.eventsOf("hook")
}

// Each kind of answer of each surface: send looks at their headers.
func TestAttack107NoAnswerIsShownInAFrameOrReadByAPage(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	s.begins()
	seen := map[int]bool{}
	look := func(r *http.Request) {
		status, _, _ := s.send(r)
		seen[status] = true
	}
	for _, path := range []string{
		"/healthz", "/readyz", "/version", "/metrics", "/openapi.json", "/nothing", "//x", "/v1/loops/pause", "/v1/loops/list", "/v1/events?after=x",
		"/v1/loops/list?workspace=" + s.root,
	} {
		look(s.request(http.MethodGet, "http://pawl"+path, ""))
	}
	stream := s.request(http.MethodPost, "http://pawl"+api.ResumeLoops.Path()+"?workspace="+s.root, `{"loop":"fix"}`)
	stream.Header.Set("Accept", "text/event-stream")
	look(stream)
	for _, path := range []string{"/", "/webhooks/other", "/a/../b"} {
		look(s.request(http.MethodPost, strings.TrimSuffix(s.hooks, "/webhooks/deploy")+path, ""))
	}
	for _, url := range []string{s.hooks, s.agents, s.agents + "/x"} {
		look(s.request(http.MethodPost, url, "{}"))
		r := s.request(http.MethodPost, url, "{}")
		r.Header.Set("Origin", "http://evil.example")
		look(r)
	}
	for _, body := range []string{"{", "[]", `{"jsonrpc":"2.0","id":1,"method":"ping"}`} {
		look(s.agent(body))
	}
	for range 12 { // Until no more wrong tokens are answered.
		r := s.agent("{}")
		r.Header.Set("Authorization", "Bearer guess")
		look(r)
	}
	for _, c := range s.right("m1") {
		look(c.r)
	}
	for _, status := range []int{200, 202, 400, 401, 403, 404, 405, 429} {
		if !seen[status] {
			t.Errorf("no answer %d was seen", status)
		}
	}
}

// hostile are names of files outside, in the ways in which they are written.
var hostile = []string{
	"../../../../../../etc/passwd", "/etc/passwd", "..%2f..%2fetc%2fpasswd", "..\\..\\etc\\passwd", "file:///etc/passwd", "fix/../../../outside/canary", "fix/", "/", ".", "..",
	"fix#1/../../canary", "~/canary", "fix\n", "%00", "-rf", "$(cat /etc/passwd)", strings.Repeat("../", 1000) + "etc/passwd", strings.Repeat("a", 5000),
}

// The folder outside is watched: whoever opens a file there is seen.
func TestAttack119NoNameLeadsOutOfTheWorkspace(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	outside := t.TempDir()
	canary := filepath.Join(outside, "canary")
	writeFile(t, canary, secretText)
	opened := watchOpens(t, outside)
	text, err := os.ReadFile(canary)
	if string(text) != secretText || err != nil || !opened() {
		t.Fatal("an opened file is not seen")
	}
	names := append([]string{canary, strings.Repeat("../", 30) + canary[1:], outside}, hostile...)
	next := 0
	some := func() []string { // Each text is tried with one of the names that are a file.
		if sample.All() {
			return names
		}
		next++
		return names[next%3:][:1]
	}
	ask := func(r *http.Request, what string) {
		t.Helper()
		r.Header.Set(api.HeaderRole, string(loop.RoleAgent)) // A person may name any file, as on the command line.
		status, said, _ := s.send(r)
		if strings.Contains(said, secretText) || strings.Contains(said, "root:x:0") {
			t.Errorf("%s is answered %d with a file from outside: %s", what, status, said)
		}
		if status >= 500 && status != http.StatusServiceUnavailable {
			t.Errorf("%s is answered %d %s", what, status, said)
		}
		if opened() {
			t.Errorf("%s opens a file outside, and is answered %d %s", what, status, said)
		}
	}
	s.joins()
	in := "workspace=" + url.QueryEscape(s.root)
	for _, v := range api.Verbs() {
		if v.Writes {
			continue
		}
		for _, field := range jsonNames(v, reflect.String) {
			for _, name := range some() {
				body := fmt.Sprintf("{%q:%s}", field, quoteJSON(t, name))
				ask(s.request(http.MethodPost, "http://pawl"+v.Path()+"?"+in, body), fmt.Sprintf("%s of %.200s", v.Name, body))
			}
		}
	}
	for _, name := range names[:sample.Size(5, len(names))] {
		ask(s.request(http.MethodGet, "http://pawl/v1/loops/list?workspace="+url.QueryEscape(name), ""), "the workspace "+name)
	}
	for _, pattern := range []string{
		"pawl://run/%s/trace", "pawl://run/%s/transcript", "pawl://run/%s/diff", "pawl://approval/%s", "pawl://ws/here/loop/%s/runlog", "pawl://ws/%s/loop/fix/definition",
		"pawl://ws/here/loop/fix/%s",
	} {
		for _, name := range some() {
			for _, written := range []string{name, strings.ReplaceAll(url.PathEscape(name), ".", "%2e")} {
				uri := fmt.Sprintf(pattern, written)
				ask(s.agent(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":`+quoteJSON(t, uri)+`}}`), "the resource "+uri)
			}
		}
	}
	for _, path := range []string{
		"/runs/../../etc/passwd", "/v1/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/v1//loops/list", "/v1/loops%2flist", "/v1/loops/list%00", "/v1/loops/list/", "/v1/./loops/list", "/v1/loops/LIST",
	} {
		for _, host := range []string{"unix", hostInURL(t, s.agents)} {
			if status := s.raw(host, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); status != http.StatusNotFound && status != http.StatusBadRequest {
				t.Errorf("%s at %s is answered %d", path, host, status)
			}
		}
	}
}

// What lies in the workspace as a link is not followed by whoever shows it.
func TestAttack119NoLinkInALoopsFolderIsFollowed(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	outside := t.TempDir()
	canary := filepath.Join(outside, "canary")
	writeFile(t, canary, secretText+"\nname: fix\n")
	folder := filepath.Join(s.root, ".loops/fix")
	for _, name := range []string{"STATE.md", "run-log.md", "LOOP.md", "loop-budget.md", "loop.config.yaml"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(canary, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(s.root, ".loops/linked")); err != nil {
		t.Fatal(err)
	}
	for _, v := range api.Verbs() {
		if v.Writes {
			continue
		}
		for _, name := range []string{"", "fix", "linked"} {
			request := map[string]any{}
			names := jsonNames(v)
			if slices.Contains(names, "limit") {
				request["limit"] = 10
			}
			if slices.Contains(names, "loop") {
				request["loop"] = name
			} else if name != "" {
				continue
			}
			r := s.request(http.MethodPost, "http://pawl"+v.Path()+"?workspace="+url.QueryEscape(s.root), quoteJSON(t, request))
			if status, said, _ := s.send(r); strings.Contains(said, secretText) || status == http.StatusOK && strings.Contains(said, outside) {
				t.Errorf("%s of %v is answered %d with what a link leads to: %s", v.Name, request, status, said)
			}
		}
	}
}

// jsonNames are the names of the fields of a verb's request, of a kind or of all.
func jsonNames(v verb.Info, kinds ...reflect.Kind) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v.Request())) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" && (len(kinds) == 0 || slices.Contains(kinds, f.Type.Kind())) {
			names = append(names, name)
		}
	}
	return names
}

func quoteJSON(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// raw sends bytes, and returns the status of the answer; 0: the connection was closed.
func (s *surfaces) raw(host, text string) int {
	s.t.Helper()
	network := "tcp"
	if host == "unix" {
		network, host = "unix", s.socket
	}
	c, err := (&net.Dialer{}).DialContext(s.t.Context(), network, host)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, text)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// watchOpens returns what reports whether a file of a folder was opened since it was asked last.
func watchOpens(t *testing.T, folder string) (opened func() bool) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		var buffer [4096]byte
		n, _ := unix.Read(fd, buffer[:])
		return n > 0
	}
}
