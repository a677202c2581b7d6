// Package webhook signs deliveries as Standard Webhooks asks, and verifies those that were
// signed so.
//
// It sends and receives nothing, and remembers no delivery: who receives refuses an id that
// came before, within Tolerance.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Tolerance is by how much the time of a delivery may differ from that of its receiver.
const Tolerance = 5 * time.Minute

// SecretPrefix begins a secret; base64 follows.
const SecretPrefix = "whsec_"

// The bounds of a key and of an id, in bytes.
const (
	leastKey = 24
	mostKey  = 64
	mostID   = 256
)

// ErrSecret is the error of ParseSecret.
var ErrSecret = fmt.Errorf("it has to be %s and the base64 of %d to %d random bytes", SecretPrefix, leastKey, mostKey)

// The errors of Verify. None says what was expected.
var (
	ErrIncomplete = errors.New("the delivery has no " + HeaderID + ", " + HeaderTimestamp + " or " + HeaderSignature)
	ErrTime       = fmt.Errorf("the time of the delivery is more than %s away from now", Tolerance)
	ErrSignature  = errors.New("no signature of the delivery is right")
)

// Key is the key of a webhook. Its zero value verifies nothing.
type Key struct{ bytes []byte }

// ParseSecret reads a secret of Standard Webhooks.
func ParseSecret(secret string) (Key, error) {
	coded, prefixed := strings.CutPrefix(secret, SecretPrefix)
	key, err := base64.StdEncoding.DecodeString(coded)
	if !prefixed || err != nil || len(key) < leastKey || len(key) > mostKey {
		return Key{}, ErrSecret
	}
	return Key{key}, nil
}

// String keeps the key out of logs.
func (k Key) String() string { return "the key of a webhook" }

// Sign returns the headers of a delivery with an id and a body that is sent at a time.
func (k Key) Sign(id string, at time.Time, body []byte) http.Header {
	seconds := strconv.FormatInt(at.Unix(), 10)
	h := http.Header{}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, seconds)
	h.Set(HeaderSignature, "v1,"+base64.StdEncoding.EncodeToString(k.signature(id, seconds, body)))
	return h
}

func (k Key) signature(id, seconds string, body []byte) []byte {
	mac := hmac.New(sha256.New, k.bytes)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, seconds, body)
	return mac.Sum(nil)
}

// Verify returns the id of a delivery that was signed with the key and whose time is within
// Tolerance of now. A delivery may have several signatures: one has to be right.
func (k Key) Verify(h http.Header, body []byte, now time.Time) (id string, err error) {
	id, seconds, signatures := h.Get(HeaderID), h.Get(HeaderTimestamp), h.Get(HeaderSignature)
	if id == "" || len(id) > mostID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || seconds == "" || signatures == "" {
		return "", ErrIncomplete
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", ErrIncomplete
	}
	if sent := time.Unix(at, 0); sent.Before(now.Add(-Tolerance)) || sent.After(now.Add(Tolerance)) {
		return "", ErrTime
	}
	want := k.signature(id, seconds, body)
	for one := range strings.FieldsSeq(signatures) {
		coded, isV1 := strings.CutPrefix(one, "v1,")
		got, err := base64.StdEncoding.DecodeString(coded)
		if isV1 && err == nil && len(k.bytes) > 0 && hmac.Equal(got, want) {
			return id, nil
		}
	}
	return "", ErrSignature
}
