package webhook_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/webhook"
)

func secret(n int) string {
	return webhook.SecretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", n)))
}

var now = time.Unix(1_700_000_000, 0)

// The signature of an example of the specification's own library.
func TestADeliveryIsSignedAsTheSpecificationSays(t *testing.T) {
	key, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := key.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got, want := h.Get(webhook.HeaderSignature), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}

func TestOnlyASecretOfTheRightSizeIsTaken(t *testing.T) {
	for text, ok := range map[string]bool{
		secret(24): true, secret(64): true, secret(23): false, secret(65): false, "": false, "whsec_": false,
		strings.TrimPrefix(secret(32), "whsec_"): false, secret(32) + "!": false,
	} {
		key, err := webhook.ParseSecret(text)
		if ok != (err == nil) || !ok && !errors.Is(err, webhook.ErrSecret) {
			t.Errorf("%.12q… of %d bytes is %v", text, len(text), err)
		}
		if ok && strings.Contains(key.String(), "kkk") {
			t.Error("a key prints itself")
		}
	}
}

func TestAttack086OnlyWhatWasSignedNowWithTheKeyIsVerified(t *testing.T) {
	key, err := webhook.ParseSecret(secret(32))
	if err != nil {
		t.Fatal(err)
	}
	other, err := webhook.ParseSecret(secret(33))
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"ref":"main"}`)
	for name, c := range map[string]struct {
		change func(h http.Header)
		at     time.Duration
		want   error
	}{
		"right":                    {nil, 0, nil},
		"almost five minutes old":  {nil, 5 * time.Minute, nil},
		"six minutes old":          {nil, 6 * time.Minute, webhook.ErrTime},
		"from the future":          {nil, -6 * time.Minute, webhook.ErrTime},
		"without an id":            {func(h http.Header) { h.Del(webhook.HeaderID) }, 0, webhook.ErrIncomplete},
		"without a time":           {func(h http.Header) { h.Del(webhook.HeaderTimestamp) }, 0, webhook.ErrIncomplete},
		"with an invalid time":     {func(h http.Header) { h.Set(webhook.HeaderTimestamp, "now") }, 0, webhook.ErrIncomplete},
		"without a signature":      {func(h http.Header) { h.Del(webhook.HeaderSignature) }, 0, webhook.ErrIncomplete},
		"with an id of many lines": {func(h http.Header) { h.Set(webhook.HeaderID, "a\nb") }, 0, webhook.ErrIncomplete},
		"with an endless id":       {func(h http.Header) { h.Set(webhook.HeaderID, strings.Repeat("x", 300)) }, 0, webhook.ErrIncomplete},
		"with the id of another":   {func(h http.Header) { h.Set(webhook.HeaderID, "msg_2") }, 0, webhook.ErrSignature},
		"with a time of its own":   {func(h http.Header) { h.Set(webhook.HeaderTimestamp, "1700000001") }, 0, webhook.ErrSignature},
		"signed by somebody else": {func(h http.Header) {
			h.Set(webhook.HeaderSignature, other.Sign("msg_1", now, body).Get(webhook.HeaderSignature))
		}, 0, webhook.ErrSignature},
		"with an empty signature": {func(h http.Header) { h.Set(webhook.HeaderSignature, "v1,") }, 0, webhook.ErrSignature},
		"with a signature of no kind": {func(h http.Header) {
			h.Set(webhook.HeaderSignature, strings.Replace(h.Get(webhook.HeaderSignature), "v1,", "v2,", 1))
		}, 0, webhook.ErrSignature},
		"with a right one among wrong": {func(h http.Header) { h.Set(webhook.HeaderSignature, "v1a,x v1,AAAA "+h.Get(webhook.HeaderSignature)) }, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := key.Sign("msg_1", now, body)
			if c.change != nil {
				c.change(h)
			}
			id, err := key.Verify(h, body, now.Add(c.at))
			if !errors.Is(err, c.want) || (err == nil) != (id == "msg_1") {
				t.Errorf("it is %q, %v, want %v", id, err, c.want)
			}
		})
	}
	if _, err := key.Verify(key.Sign("msg_1", now, body), append(body, ' '), now); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("with another body it is %v", err)
	}
	var none webhook.Key
	if _, err := none.Verify(none.Sign("msg_1", now, body), body, now); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("without a key it is %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	key, err := webhook.ParseSecret(secret(32))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("msg_1", "1700000000", "v1,AAAA", []byte("{}"))
	f.Add("", "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, id, at, signature string, body []byte) {
		h := http.Header{webhook.HeaderID: {id}, webhook.HeaderTimestamp: {at}, webhook.HeaderSignature: {signature}}
		if id, err := key.Verify(h, body, now); err == nil {
			t.Errorf("%q is verified", id)
		}
	})
}
