package frame_test

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-run/pawl/internal/surface/mcp/frame"
)

// An assault is what a client sends. It gets a number of answers, in any order,
// with one of the codes; 0 is that of a result.
type assault struct {
	send    io.Reader
	answers int
	codes   []int
}

// noCode stands for an error to which the server has given the code 0.
const noCode = 1

func lines(all ...string) io.Reader { return strings.NewReader(strings.Join(all, "\n") + "\n") }

// assail sends each assault, and a ping after it that has to be answered. Between
// them, the heap must not hold what was sent.
func assail(t *testing.T, assaults map[string]assault) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		for name, c := range assaults {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := io.Copy(s.in, c.send); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for range c.answers {
				a := s.read()
				code := 0
				if a.Error != nil {
					code = cmp.Or(a.Error.Code, noCode)
				}
				// The server's own tools bound what they answer.
				if !slices.Contains(c.codes, code) || code != 0 && len(a.line) > 10_000 {
					t.Errorf("%s is answered %.300s, want one of %v", name, a.line, c.codes)
				}
			}
			s.ping()
			runtime.GC()
			runtime.ReadMemStats(&after)
			// The buffer of the client in this test may have grown to the longest answer.
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
				t.Errorf("%s leaves %d bytes in memory", name, grown)
			}
		}
		s.end()
	})
}

func TestAttack116NoMessageOnStandardInputEndsTheSessionOrStaysInMemory(t *testing.T) {
	const invalidParams, methodNotFound, unsupported = -32602, -32601, -32022
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	assail(t, map[string]assault{
		"a wrong version of JSON-RPC": {lines(`{"jsonrpc":"1.1","id":1,"method":"ping"}`), 1, []int{invalid}},
		"a version of MCP that is not there": {
			lines(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`),
			1,
			[]int{unsupported},
		},
		"half of what the newest MCP says of itself": {
			lines(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`),
			1,
			[]int{invalidParams},
		},
		"an array of 10,000 messages": {lines(`[` + ping + strings.Repeat(`,`+ping, 9_999) + `]`), 1, []int{invalid}},
		"a line of 100 MB":            {io.MultiReader(io.LimitReader(&endless{left: 100 << 20, rest: strings.NewReader("")}, 100<<20), lines("")), 1, []int{parse}},
		"an id that is open":          {lines(call("7", "wait", "w"), call("7", "echo", "again"), cancel("7")), 2, []int{invalid, busy, 0}},
		"10,000 calls with one id": {
			lines(call("7", "wait", "w"), strings.TrimSuffix(strings.Repeat(call("7", "echo", "again")+"\n", 10_000), "\n"), cancel("7")),
			10_001,
			[]int{invalid, busy, 0},
		},
		"a tool that is not there":              {lines(call("1", "rm", "/")), 1, []int{invalidParams}},
		"a method that is not there":            {lines(`{"jsonrpc":"2.0","id":1,"method":"tools/run"}`), 1, []int{methodNotFound}},
		"a method of the newest MCP":            {lines(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`), 1, []int{methodNotFound}},
		"a second beginning":                    {lines(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`), 1, []int{noCode}},
		"fields of a message that no one knows": {lines(`{"jsonrpc":"2.0","id":1,"method":"ping","admin":true,"result2":{}}`), 1, []int{0}},
		"fields of a call that no one knows": {
			lines(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","as":"operator","arguments":{"text":"a"}}}`), 1, []int{0},
		},
		"arguments that no one knows": {
			lines(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a","as":"operator"}}}`), 1, []int{0},
		},
		"the end of a call that was never made": {lines(cancel("4711"), cancel(`"x"`), cancel("null"), cancel("{}"), cancel("1e400")), 0, nil},
	})
}

// cancel ends a call.
func cancel(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}

func TestAttack131BombsOfJSONOnStandardInputAreAnswered(t *testing.T) {
	argument := func(value string) io.Reader {
		return lines(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":` + value + `}}}`)
	}
	nest := func(open, end string, depth int) string {
		return strings.Repeat(open, depth) + "1" + strings.Repeat(end, depth)
	}
	assail(t, map[string]assault{
		"lists, 9,000 deep":       {argument(nest("[", "]", 9_000)), 1, []int{invalid}},
		"lists, 1,000,000 deep":   {argument(nest("[", "]", 1_000_000)), 1, []int{parse}},
		"objects, 9,000 deep":     {argument(nest(`{"a":`, "}", 9_000)), 1, []int{invalid}},
		"objects, 100,000 deep":   {argument(nest(`{"a":`, "}", 100_000)), 1, []int{parse}},
		"lists that never end":    {lines(strings.Repeat("[", 3_000_000)), 1, []int{parse}},
		"a number of a megabyte":  {argument(strings.Repeat("9", 1_000_000)), 1, []int{0}},
		"a number beyond all":     {argument("1e999999999"), 1, []int{0}},
		"a list of a million":     {argument("[1" + strings.Repeat(",1", 999_999) + "]"), 1, []int{0}},
		"an object of 100,000":    {argument(`{"a":1` + strings.Repeat(`,"a":1`, 99_999) + "}"), 1, []int{0}},
		"a text of escapes":       {argument(`"` + strings.Repeat(`\u0000`, 500) + `"`), 1, []int{0}},
		"an id of a megabyte":     {lines(`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 1_000_000) + `","method":"ping"}`), 1, []int{invalid}},
		"a method of a megabyte":  {lines(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 1_000_000) + `"}`), 1, []int{-32601}},
		"a list for parameters":   {lines(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[` + strings.Repeat(`"\u00e9",`, 400_000) + `1]}`), 1, []int{-32602}},
		"100,000 members":         {lines(`{"jsonrpc":"2.0","id":1,"method":"ping"` + strings.Repeat(`,"x":[]`, 100_000) + "}"), 1, []int{invalid}},
		"100,000 lines of rubble": {lines(strings.TrimSuffix(strings.Repeat("{\n", 20_000), "\n")), 20_000, []int{parse}},
	})
}
