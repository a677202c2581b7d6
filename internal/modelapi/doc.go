// Package modelapi reads the four APIs that vendors of models offer: Anthropic's
// Messages, OpenAI's Chat Completions and Responses, and Gemini's generateContent,
// as streams and whole. It reads what a request may cost, what an answer used, and
// what an error means.
//
// It makes no calls and forwards nothing. If usage is missing or implausible, an
// estimate is used, never zero; what a model wrote is never taken for what its
// vendor says.
package modelapi

// Providers, by the shape of calls that they take.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai" // and all that speak like it
	Gemini    = "gemini"
)
