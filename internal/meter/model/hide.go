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

	"github.com/pawl-run/pawl/internal/redact"
)

// hidden stands in place of the key. It is one word, so that a header with it is
// still one.
const hidden = "[redacted:model-key]"

// shortest is how long a key is that is worth hiding: local servers take words
// such as "none", which also stand in ordinary text.
const shortest = 8

// hider takes the key out of what goes back to the sandbox. What a model wrote
// keeps everything else; in the words of a vendor whatever looks like a secret
// goes.
type hider struct {
	spellings [][]byte
	all       *redact.Redactor
}

func newHider(key string) *hider {
	h := &hider{all: redact.New()}
	if len(key) < shortest {
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

// content is what a model wrote, without the key.
func (h *hider) content(text []byte) []byte {
	for _, s := range h.spellings {
		if bytes.Contains(text, s) {
			text = bytes.ReplaceAll(text, s, []byte(hidden))
		}
	}
	return text
}

// words are what a vendor says, without secrets.
func (h *hider) words(text string) string {
	return h.all.String(string(h.content([]byte(text))))
}

// header copies what may go back to the client.
func (h *hider) header(to, from http.Header) {
	for name, values := range from {
		if hop(name, from) || name == "Set-Cookie" || name == "Content-Length" {
			continue
		}
		if name = h.words(name); strings.Contains(name, "[") {
			continue
		}
		for _, v := range values {
			to.Add(name, h.words(v))
		}
	}
}

var hops = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// hop tells whether a field is for the next machine only.
func hop(name string, header http.Header) bool {
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
