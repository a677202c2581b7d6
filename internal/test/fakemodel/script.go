package fakemodel

import (
	"encoding/json"
	"net/http"
	"time"
)

// Model is the one model of the lists that are served. A request may name any.
const Model = "fake-1"

// Script is what the model does, one turn after the other. The zero Script says
// "OK". After its last turn that turn is said again if it is a text; else the
// model says that the script is over.
type Script struct {
	Turns []Turn `json:"turns"`
	// Skip is how many tool results lie in the conversation before this script
	// begins, of earlier ones in a session that is gone on with.
	Skip int `json:"skip,omitempty"`
	// Bare scripts are for requests that offer no tools, as a reviewer's do. For
	// any other script such a request is a side call.
	Bare bool `json:"bare,omitempty"`
	// Model makes requests for any other model side calls. Empty: none.
	Model string `json:"model,omitempty"`
}

// Turn is one answer: a tool is used if Use is set, else Say is said.
type Turn struct {
	Say    string      `json:"say,omitempty"`
	Use    *Use        `json:"use,omitempty"`
	Usage  *Usage      `json:"usage,omitempty"`  // nil: 1000 + 100 for each turn before in, 50 + 1 for each out
	Lie    *Lie        `json:"lie,omitempty"`    // what is reported instead
	Flood  int         `json:"flood,omitempty"`  // so many tokens of filler are said first
	Repeat bool        `json:"repeat,omitempty"` // for ever
	Header http.Header `json:"header,omitempty"` // goes with the answer
	Fault  *Fault      `json:"fault,omitempty"`
}

// Use is what a tool is wanted for; whichever tool the client offers for it is
// used. $CWD in a path or a command is the folder that the client says it works
// in; tools that want whole paths get relative ones with it before them. If no tool fits, the model says so, and names those that were offered.
type Use struct {
	Intent Intent          `json:"intent"`
	Path   string          `json:"path,omitempty"`
	Text   string          `json:"text,omitempty"` // to write; in place of Old; the command
	Old    string          `json:"old,omitempty"`
	Name   string          `json:"name,omitempty"`  // of IntentTool: the tool's, or its last part
	Input  json.RawMessage `json:"input,omitempty"` // of IntentTool: an object, or a string for a tool that takes text
}

// Intent is what a tool is for.
type Intent string

// The intents.
const (
	IntentWrite Intent = "write"
	IntentRead  Intent = "read"
	IntentEdit  Intent = "edit"
	IntentShell Intent = "shell"
	IntentTool  Intent = "tool" // this very tool
)

// Usage counts the tokens of one or more answers, each token once.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// Lie is a usage as no honest vendor reports it. Each field that is not empty is
// printed as it stands where the number belongs; it need not be JSON.
type Lie struct {
	Missing    bool   `json:"missing,omitempty"` // nothing is reported at all
	Input      string `json:"input,omitempty"`   // such as -5, 1e309, "NaN", 9223372036854775808
	Output     string `json:"output,omitempty"`
	CacheRead  string `json:"cache_read,omitempty"`
	CacheWrite string `json:"cache_write,omitempty"`
}

// Fault is what goes wrong with a turn. The zero Fault is a response of status
// 500.
type Fault struct {
	Kind       FaultKind     `json:"kind,omitempty"`
	Status     int           `json:"status,omitempty"`      // 0: the kind's own
	Header     http.Header   `json:"header,omitempty"`      // goes with the error
	Body       string        `json:"body,omitempty"`        // empty: as the vendor words it
	Text       string        `json:"text,omitempty"`        // the vendor's message; empty: the usual one
	RetryAfter int           `json:"retry_after,omitempty"` // seconds; 0: the header is not sent
	Reset      time.Time     `json:"reset,omitzero"`        // when a usage limit is lifted; zero: in 2100
	Delay      time.Duration `json:"delay,omitempty"`       // before anything is sent
	Times      int           `json:"times,omitempty"`       // so many attempts at the turn fail, all clients counted; 0: every one
}

// FaultKind is a way to go wrong.
type FaultKind string

// The kinds of faults.
const (
	FaultStatus     FaultKind = ""            // an error of this status, in the vendor's words
	FaultUsageLimit FaultKind = "usage_limit" // a subscription's window is used up
	FaultQuota      FaultKind = "quota"       // the account is used up
	FaultOverflow   FaultKind = "overflow"    // the conversation does not fit
	FaultOverload   FaultKind = "overload"    // in the middle of a stream, where the vendor can say so there
	FaultRefusal    FaultKind = "refusal"     // the answer is one, and says so
	FaultMaxTokens  FaultKind = "max_tokens"  // the answer stops at its limit
	FaultCut        FaultKind = "cut"         // the connection breaks half way through the answer
	FaultStall      FaultKind = "stall"       // half of the answer, then nothing until the client leaves
	FaultHang       FaultKind = "hang"        // nothing at all until the client leaves
	FaultDelay      FaultKind = "delay"       // only Delay
)

// far is when a usage limit is lifted if the script does not say.
var far = time.Unix(4102444800, 0)

// Say is a turn that says a text.
func Say(text string) Turn { return Turn{Say: text} }

// Write is a turn that writes a file.
func Write(path, text string) Turn {
	return Turn{Use: &Use{Intent: IntentWrite, Path: path, Text: text}}
}

// Read is a turn that reads a file.
func Read(path string) Turn { return Turn{Use: &Use{Intent: IntentRead, Path: path}} }

// Edit is a turn that puts a text in place of another one in a file.
func Edit(path, old, text string) Turn {
	return Turn{Use: &Use{Intent: IntentEdit, Path: path, Old: old, Text: text}}
}

// Shell is a turn that runs a command.
func Shell(command string) Turn { return Turn{Use: &Use{Intent: IntentShell, Text: command}} }

// Tool is a turn that uses the tool of this name, or whose name ends with it.
func Tool(name, input string) Turn {
	return Turn{Use: &Use{Intent: IntentTool, Name: name, Input: json.RawMessage(input)}}
}

// Failing is the turn with a fault.
func (t Turn) Failing(f Fault) Turn {
	t.Fault = &f
	return t
}

// Using is the turn with a usage of its own.
func (t Turn) Using(u Usage) Turn {
	t.Usage = &u
	return t
}

// Lying is the turn with a usage that is none.
func (t Turn) Lying(l Lie) Turn {
	t.Lie = &l
	return t
}

// Add is the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}
