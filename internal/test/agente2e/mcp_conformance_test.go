//go:build agents && linux

package agente2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// scenarios are those of the conformance suite, each with the reason why pawl does not pass it;
// empty: it does.
var scenarios = map[string]string{
	"server-initialize":           "",
	"ping":                        "",
	"logging-set-level":           "",
	"completion-complete":         "",
	"tools-list":                  "",
	"tools-call-simple-text":      "",
	"tools-call-error":            "",
	"tools-call-with-progress":    "",
	"resources-list":              "",
	"resources-read-text":         "",
	"resources-subscribe":         "",
	"resources-unsubscribe":       "",
	"prompts-list":                "",
	"server-sse-multiple-streams": "",
	"dns-rebinding-protection":    "",

	// Streams are not taken up again: a call that got no answer is repeated with its
	// idempotency_key, which also helps if the server was started again meanwhile.
	"server-sse-polling": "streams have no events that can be asked for again",

	"resources-templates-read":      "it wants to read its parameter back, and pawl's are names of loops and runs",
	"resources-read-binary":         "what pawl's resources contain is text",
	"prompts-get-simple":            "each of pawl's prompts needs its argument",
	"prompts-get-with-args":         "each of pawl's prompts has one argument",
	"prompts-get-embedded-resource": "pawl's prompts are text",
	"prompts-get-with-image":        "pawl's prompts are text",
	"tools-call-image":              "pawl's results are text and structured content",
	"tools-call-audio":              "pawl's results are text and structured content",
	"tools-call-embedded-resource":  "pawl's results are text and structured content",
	"tools-call-mixed-content":      "pawl's results are text and structured content",
	"tools-call-with-logging":       "pawl logs to its own log, never to a client",
	"tools-call-sampling":           "pawl asks no model of a client",
	"tools-call-elicitation":        "pawl asks a person with approvals, never through a client, which is a program",
	"elicitation-sep1034-defaults":  "pawl asks a person with approvals, never through a client, which is a program",
	"elicitation-sep1330-enums":     "pawl asks a person with approvals, never through a client, which is a program",
	"json-schema-2020-12":           "it looks for a tool of its own, with $defs that pawl's short schemas do not need",
}

var outcomes = regexp.MustCompile(`(?m)^([✓✗]) (\S+): (\d+) passed, (\d+) failed`)

// TestTheConformanceSuitePasses runs all scenarios for servers against a daemon. The suite has no
// way to send a token, and calls tools and resources of its own by name: what is between them
// adds the token, and puts what pawl has in their place.
func TestTheConformanceSuitePasses(t *testing.T) {
	t.Parallel()
	v := newFixture(t, subject{name: "command", agent: "command", keys: []string{"provider: openai", "agent_command: sleep 3; echo two >src/answer.txt"}}, func(*fixture) fakemodel.Script { return fakemodel.Script{} })
	at := v.daemon()
	target, err := url.Parse(at.url)
	if err != nil {
		t.Fatal(err)
	}
	state := "pawl://ws/" + url.PathEscape(v.root) + "/loop/fix/state"
	own := strings.NewReplacer(
		`"name":"test_simple_text"`, `"name":"agent_list"`, "test_error_handling", "loop_get", "test://static-text", state, "test://watched-resource", state,
		`"name":"test_tool_with_progress","arguments":{}`, fmt.Sprintf(`"name":"loop_run","arguments":{"loop":"fix","workspace":%q}`, v.root),
	)
	between := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			t.Error(err)
		}
		body = []byte(own.Replace(string(body)))
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+at.token)
	}})
	t.Cleanup(between.Close)
	cmd := exec.CommandContext(t.Context(), filepath.Join(agents, "mcp-conformance"), "server", "--url", between.URL+target.Path, "--suite", "all")
	cmd.Dir, cmd.Env = v.home, v.environ()
	out, err := cmd.CombinedOutput()
	passed := map[string]bool{}
	for _, m := range outcomes.FindAllStringSubmatch(string(out), -1) {
		name, all := m[2], m[1] == "✓" && m[3] != "0"
		passed[name] = all
		if why, known := scenarios[name]; !known || all != (why == "") {
			t.Errorf("%s: %s passed, %s failed; the table says %q, and has it: %v", name, m[3], m[4], why, known)
		}
	}
	for name := range scenarios {
		if _, ran := passed[name]; !ran {
			t.Errorf("the suite has no scenario %s any more", name)
		}
	}
	if t.Failed() {
		t.Logf("%v\n%s", err, out)
	}
}
