package model

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/redact"
)

// hiddenKey is written in place of the key. It is one word, so that a header that
// contains it stays valid.
const hiddenKey = "[redacted:model-key]"

// minKey is the least length of a key that is hidden: local servers accept words
// such as "none", which are also part of ordinary text.
const minKey = 8

// hider removes the key from what is sent back to the sandbox. In a model's
// answer it changes nothing else; in a vendor's messages it removes everything
// that looks like a secret.
type hider struct {
	spellings [][]byte
	all       *redact.Redactor
}

func newHider(key string) *hider {
	h := &hider{all: redact.New()}
	if len(key) < minKey {
		return h
	}
	h.all = redact.New(redact.Secret{Name: "model-key", Value: key})
	quoted, _ := json.Marshal(key) // A string always has a JSON form.
	for _, s := range []string{
		key, string(quoted[1 : len(quoted)-1]), strings.ReplaceAll(key, "/", `\/`),
		url.QueryEscape(key), url.PathEscape(key), hex.EncodeToString([]byte(key)), strings.ToUpper(hex.EncodeToString([]byte(key))),
		base64.StdEncoding.EncodeToString([]byte(key)), base64.RawStdEncoding.EncodeToString([]byte(key)),
		base64.URLEncoding.EncodeToString([]byte(key)), base64.RawURLEncoding.EncodeToString([]byte(key)),
	} {
		if !slices.ContainsFunc(h.spellings, func(b []byte) bool { return string(b) == s }) {
			h.spellings = append(h.spellings, []byte(s))
		}
	}
	return h
}

// hideKey removes the key from what a model wrote.
func (h *hider) hideKey(text []byte) []byte {
	for _, s := range h.spellings {
		if bytes.Contains(text, s) {
			text = bytes.ReplaceAll(text, s, []byte(hiddenKey))
		}
	}
	return text
}

// redactText removes all secrets from a vendor's message.
func (h *hider) redactText(text string) string {
	return h.all.String(string(h.hideKey([]byte(text))))
}

// copyHeaders copies the headers that may be sent back to the client.
func (h *hider) copyHeaders(to, from http.Header) {
	for name, values := range from {
		if isHopByHop(name, from) || name == "Set-Cookie" || name == "Content-Length" {
			continue
		}
		if name = h.redactText(name); strings.Contains(name, "[") {
			continue
		}
		for _, v := range values {
			to.Add(name, h.redactText(v))
		}
	}
}

var hops = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// isHopByHop reports whether a field is only for the next program on the way.
func isHopByHop(name string, header http.Header) bool {
	if slices.Contains(hops, name) {
		return true
	}
	for _, list := range header["Connection"] {
		for named := range strings.SplitSeq(list, ",") {
			if http.CanonicalHeaderKey(strings.TrimSpace(named)) == name {
				return true
			}
		}
	}
	return false
}
