// Package model is the way of a sandbox to its model: an endpoint that takes
// the calls which an agent program makes, puts the real credential in, forwards
// them to the provider, and counts what they used.
//
// It knows four shapes of calls: Anthropic's Messages, OpenAI's Chat Completions
// and Responses, and Gemini's generateContent, as streams and whole. What a call
// used is read from the answer while it passes. A number that is none, that is
// missing, or that is far below the text that came with it is replaced by an
// estimate, never by zero. An Account holds what a run may spend: a call is
// funded before it is forwarded, and a stream that outgrows its funds is cut.
//
// It never forwards what is no model call, count of tokens or list of models,
// never what a program sent as a credential, never follows a redirect, never
// shows the real credential to the sandbox, not even when the provider repeats
// it, and never takes what a model wrote for what its vendor says.
package model
