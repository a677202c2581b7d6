package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// call carries out a tool call, and says what became of it in a word.
func (s *Server) call(ctx context.Context, t verb.Tool, r *sdk.CallToolRequest) (res *sdk.CallToolResult, outcome string, err error) {
	c, err := s.parse(t, r.Params.Arguments)
	if err != nil {
		return s.failed(t, r.Params.Arguments, err), s.explain(err).Code, nil
	}
	request := Request{Dir: c.dir, By: s.By, Key: c.key, Say: func(verb.Progress) {}}
	var out any
	switch {
	case t.Long != nil:
		out, err = s.callLong(ctx, t, c, request, r)
	case t.Lists():
		var l verb.Listing
		if l, err = t.List(ctx, s.Open(request), c.in, c.page); err == nil {
			res, err := listed(l)
			return res, "ok", err
		}
	default:
		out, err = t.Call(ctx, s.Open(request), c.in)
	}
	if err != nil {
		return s.failed(t, r.Params.Arguments, err), s.explain(err).Code, nil
	}
	res, err = succeeded(out)
	return res, "ok", err
}

// succeeded is the result of a call.
func succeeded(out any) (*sdk.CallToolResult, error) {
	body, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	text := shorten(body, mostText)
	if string(body) == "{}" { // A loop that there is not.
		text = "null"
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(body)}, nil
}
