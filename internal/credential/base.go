package credential

import (
	"net/url"

	"github.com/pawl-run/pawl/internal/loop"
)

// Base is where the models of a provider are: at the base_url of a definition, or
// at the vendor's own. The error is a *loop.Fault.
func Base(provider, text string) (*url.URL, error) {
	if base, err := BaseURL(text); base != nil || err != nil {
		return base, err
	}
	v, ok := vendorOf(provider)
	if !ok {
		return nil, &loop.Fault{
			Exit: loop.ExitUsage, What: "provider " + provider, Why: "pawl does not know where its models are", Fix: "write base_url, or provider: anthropic, openai or gemini",
		}
	}
	return &url.URL{Scheme: "https", Host: v.host}, nil
}
