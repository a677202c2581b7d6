package api

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/agenttest"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// record writes what the agent prints, and what models are made to stream, for
// the recordings in testdata: go test -record, then make generate.
var record = flag.Bool("record", false, "record turns of the agent and streams of models anew")

func TestRecordedTurnsAreReadAsDrawn(t *testing.T) {
	agenttest.Replay(t, Driver{Self: "/usr/bin/pawl"})
}

func TestTheAgentPrintsWhatWasRecorded(t *testing.T) {
	work := []fakemodel.Turn{
		fakemodel.Read("main.go"), fakemodel.Edit("main.go", "println(1)", "println(2)"), fakemodel.Shell("echo fine"), fakemodel.Say("All is done."),
	}
	for name, turns := range map[string][]fakemodel.Turn{
		"anthropic-work": work, "openai-work": work, "gemini-work": work,
		"openai-refusal":    {fakemodel.Say("x").Failing(fakemodel.Fault{Kind: fakemodel.FaultRefusal})},
		"openai-limit":      {fakemodel.Read("none"), fakemodel.Say("x").Failing(fakemodel.Fault{Kind: fakemodel.FaultUsageLimit})},
		"openai-cut":        {fakemodel.Write("a.txt", "hello\n").Failing(fakemodel.Fault{Kind: fakemodel.FaultCut, Times: 1}), fakemodel.Say("done")},
		"anthropic-maxima":  {fakemodel.Say("half").Failing(fakemodel.Fault{Kind: fakemodel.FaultMaxTokens})},
		"gemini-overflow":   {fakemodel.Say("x").Failing(fakemodel.Fault{Kind: fakemodel.FaultOverflow})},
		"anthropic-denials": {fakemodel.Write("a.txt", "hello\n"), fakemodel.Tool("list", `{"path":3}`), fakemodel.Say("I could not.")},
	} {
		t.Run(name, func(t *testing.T) {
			provider, _, _ := strings.Cut(name, "-")
			_, url := serve(t, turns...)
			r := request(t, provider, url)
			var printed bytes.Buffer
			input := string(encodeJSON(task{Prompt: "Repair it.", Model: "model-1", Provider: provider, URL: url, Dir: r.Dir, Backoff: 1})) + "\n" + answers(name)
			if status := Main(t.Context(), strings.NewReader(input), &printed); status != 0 {
				t.Fatalf("status %d", status)
			}
			compare(t, filepath.Join("testdata", name+".jsonl"), printed.Bytes())
			stream(t, provider, name, turns)
		})
	}
}

// answers are yes to everything, or no.
func answers(name string) string {
	var b strings.Builder
	for id := range 9 {
		yes := "true"
		if strings.HasSuffix(name, "denials") {
			yes = "false"
		}
		b.WriteString(strings.NewReplacer("ID", string(rune('0'+id)), "YES", yes).Replace(`{"id":"ID","answer":{"allow":YES,"rule":"scope","words":"out of scope"}}` + "\n"))
	}
	return b.String()
}

// stream records the first answer of a model.
func stream(t *testing.T, provider, name string, turns []fakemodel.Turn) {
	t.Helper()
	_, url := serve(t, turns...)
	p := &place{}
	path, header, body := shapeOf(provider).buildRequest(conversation{model: "model-1", tools: p.availableTools(), messages: []message{{text: "x"}}}, "k")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body) // One of them is cut.
	compare(t, filepath.Join("testdata", "streams", name+".sse"), text)
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	if *record {
		put(t, name, string(got))
	}
	if diff := cmp.Diff(content(t, name), string(got)); diff != "" {
		t.Errorf("%s (-recorded +now):\n%s", name, diff)
	}
}
