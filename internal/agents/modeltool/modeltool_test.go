package modeltool

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

// check checks a call as its path says.
func check(c modelcalls.Call, allowed ...loop.ModelTool) (Request, error) {
	_, name, _ := strings.Cut(c.Path, "/models/")
	model, _, _ := strings.Cut(name, ":")
	api := Messages
	switch {
	case strings.Contains(c.Path, "chat/completions"):
		api = Chat
	case strings.Contains(c.Path, "responses"):
		api = Responses
	case model != "":
		api = Generate
	}
	return api.Check(model, []byte(c.Body), allowed)
}

// apiOf are the APIs by the paths of their calls.
var apiOf = map[string]*API{
	modelcalls.MessagesPath: Messages, modelcalls.ChatPath: Chat, modelcalls.ResponsesPath: Responses, modelcalls.GeminiPath: Generate,
}

func TestAttack081EveryNameOfAVendorsToolBelongsToTheToolThatAllowsIt(t *testing.T) {
	for tool, calls := range modelcalls.CallsByOtherNames() {
		others := slices.DeleteFunc(loop.ModelTools(), func(o loop.ModelTool) bool { return o == tool })
		for _, c := range calls {
			checked, err := check(c, tool)
			if err != nil || !slices.Equal(checked.Tools, []loop.ModelTool{tool}) {
				t.Errorf("allowed %s: %s asks for %v, %v", tool, c.Body, checked.Tools, err)
			}
			if _, err := check(c, others...); err == nil {
				t.Errorf("without %s it passes: %s", tool, c.Body)
			}
		}
	}
}

func TestEachWayToAskIsDeniedUnlessItsToolIsAllowed(t *testing.T) {
	for tool, calls := range modelcalls.HostedCalls() {
		others := slices.DeleteFunc(loop.ModelTools(), func(o loop.ModelTool) bool { return o == tool })
		for _, c := range calls {
			if _, err := check(c, tool); err != nil {
				t.Errorf("allowed %s: %s is denied: %v", tool, c.Body, err)
			}
			for _, allowed := range [][]loop.ModelTool{nil, others} {
				_, err := check(c, allowed...)
				if _, denied := errors.AsType[*DeniedError](err); !denied {
					t.Errorf("with %v it passes: %s, %v", allowed, c.Body, err)
				}
			}
		}
	}
}

func TestOrdinaryCallsPassAsTheyAreWritten(t *testing.T) {
	for name, c := range modelcalls.Ordinary {
		checked, err := check(c)
		if err != nil || string(checked.Body) != c.Body || len(checked.Tools)+len(checked.LeftOut) > 0 {
			t.Errorf("%s: %+v, %v", name, checked, err)
		}
	}
}

func TestABodyOfTooManyPartsIsRefused(t *testing.T) {
	for _, text := range []string{"1,", `{"a":1},`} {
		parts := strings.Count(text, ",") + strings.Count(text, ":")
		most := "[" + strings.Repeat(text, mostParts/parts-1)
		if err := checkJSON([]byte(most + text + "1]")); err != nil {
			t.Errorf("%d parts of %s: %v", mostParts, text, err)
		}
		if err := checkJSON([]byte(most + text + text + "1]")); err == nil {
			t.Errorf("more than %d parts of %s pass", mostParts, text)
		}
	}
}

func TestATypeThatIsNotAStringIsDeniedAsUnknown(t *testing.T) {
	_, err := check(modelcalls.Call{Path: modelcalls.MessagesPath, Body: `{"model":"m","messages":[],"tools":[{"type":5,"name":"x"}]}`})
	if _, denied := errors.AsType[*DeniedError](err); !denied || !strings.Contains(err.Error(), `"?"`) {
		t.Errorf("check = %v, want an unknown tool denied", err)
	}
}

// Some servers accept an address in the place of Base64.
func TestDataIsAnAddressIfItBeginsWithAScheme(t *testing.T) {
	for before, isAddress := range map[int]bool{5: true, 63: true, 64: false} {
		_, err := check(modelcalls.Call{Path: modelcalls.ChatPath, Body: `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"` +
			strings.Repeat("x", before) + `:"}}]}]}`})
		if _, denied := errors.AsType[*DeniedError](err); denied != isAddress {
			t.Errorf("a colon after %d characters: %v, want it denied: %t", before, err, isAddress)
		}
	}
}

func TestEachFeatureOfAVendorsToolBelongsToIt(t *testing.T) {
	for feature, want := range map[string]loop.ModelTool{
		"web-search-2025-03-05": loop.ToolWebSearch, "web-fetch-2025-09-10": loop.ToolWebFetch, "code-execution-2025-08-25": loop.ToolCode,
		"skills-2025-10-02": loop.ToolCode, "mcp-client-2025-11-20": loop.ToolMCP, "mcp-servers-2025-12-04": loop.ToolMCP,
		"files-api-2025-04-14": loop.ToolFiles, "advisor-tool-2026-03-01": loop.ToolAdvisor,
	} {
		if tool, known := Feature("Anthropic-Beta", feature); !known || tool != want {
			t.Errorf("%s belongs to %q, %t, want %q", feature, tool, known, want)
		}
	}
}

func TestValuesAreFoundWhateverIsBetweenThem(t *testing.T) {
	for text, want := range map[string]string{
		`[1,2]`: "1 2", "[ 1 ,\t2\r\n]": "1 2", "{ \"a\" :\r1 ,\n\"b\": [ 2 ] }": `"a" 1 "b" [ 2 ]`, `[]`: "", `[ ]`: "", `{}`: "", `["] ,"]`: `"] ,"`,
	} {
		var got []string
		for v := range node(text).values() {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has the values %q, want %s", text, got, want)
		}
	}
}

func TestWhoLooksForOneFieldStopsThere(t *testing.T) {
	seen := 0
	for range node(`{"a":1,"b":2,"c":3}`).fields() {
		seen++
		break
	}
	if seen != 1 {
		t.Errorf("%d fields were handed out", seen)
	}
}

func FuzzCheck(f *testing.F) {
	for _, calls := range modelcalls.HostedCalls() {
		for _, c := range calls {
			f.Add(c.Body)
		}
	}
	for _, c := range modelcalls.Ordinary {
		f.Add(c.Body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for path, api := range apiOf {
			checked, err := api.Check("", []byte(body), nil)
			if err != nil {
				continue
			}
			forward := checked.Body
			// What is forwarded is checked alike once more, and every reader sees one value.
			again, err := api.Check("", forward, nil)
			if err != nil || string(again.Body) != string(forward) {
				t.Fatalf("%s: forwarded %s, and then %s, %v", path, forward, again.Body, err)
			}
			for _, word := range []string{`"googleSearch"`, `"web_search_20250305"`} {
				var top struct{ Tools []map[string]json.RawMessage }
				_ = json.Unmarshal(forward, &top)
				for _, tool := range top.Tools {
					if (api == Generate && tool["googleSearch"] != nil && string(tool["googleSearch"]) != "null") || (api == Messages && string(tool["type"]) == word) {
						t.Fatalf("%s passed: %s", word, forward)
					}
				}
			}
		}
	})
}
