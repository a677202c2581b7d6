// Package modelapi reads the four APIs of model vendors: Anthropic's Messages,
// OpenAI's Chat Completions and Responses, and Gemini's generateContent, as
// streams and as whole answers. It reads what a request may cost, what an answer
// used, and what an error means.
//
// It makes no calls and forwards nothing. If usage is missing or implausible, it
// estimates it, never as zero. It never mistakes text that a model wrote for a
// statement of its vendor.
package modelapi

// Providers, by the shape of calls that they take.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai" // and all compatible servers
	Gemini    = "gemini"
)
