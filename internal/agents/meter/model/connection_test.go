package model

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
)

func TestTheCertificateOfTheProviderIsChecked(t *testing.T) {
	s := httptest.NewUnstartedServer(says(`{"data":[]}`))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	for _, known := range []bool{false, true} {
		r := start(t, modelapi.OpenAI, nil, func(e *Endpoint) {
			e.Base = base
			if known {
				e.Roots = pool
			}
		})
		got := r.do(r.request(t.Context(), http.MethodGet, "/v1/models", ""))
		if ok := got.status == http.StatusOK; ok != known {
			t.Errorf("known %t: %d %s", known, got.status, got.body)
		}
	}
}

func TestAProviderThatSpeaksHTTP2IsAskedInIt(t *testing.T) {
	var major atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		major.Store(int64(req.ProtoMajor))
		write(w, `{"data":[]}`)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	r := start(t, modelapi.OpenAI, nil, func(e *Endpoint) { e.Base, e.Roots = base, pool })
	if got := r.do(r.request(t.Context(), http.MethodGet, "/v1/models", "")); got.status != http.StatusOK || major.Load() != 2 {
		t.Errorf("got %d %s by HTTP/%d", got.status, got.body, major.Load())
	}
}

func TestTheProxyOfTheMachineIsUsedForOthersThanTheMachine(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy.test:3128"}
	e := &Endpoint{Upstream: func(*url.URL) (*url.URL, error) { return proxy, nil }}
	for address, want := range map[string]*url.URL{
		"https://api.openai.com/v1": proxy, "http://10.0.0.1/": proxy, "http://127.0.0.1:11434/": nil, "http://localhost/": nil, "http://[::1]/": nil,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.proxyFor(&http.Request{URL: u}); err != nil || got != want {
			t.Errorf("%s goes by %v, %v", address, got, err)
		}
	}
}

func TestAProxyOfTheMachineThatCannotBeReadIsNamedWithoutItsPassword(t *testing.T) {
	r := start(t, modelapi.OpenAI, nil, func(e *Endpoint) {
		e.Base = &url.URL{Scheme: "http", Host: "provider.test"}
		e.Upstream = func(*url.URL) (*url.URL, error) { return nil, errors.New("parse me:s3cret@") }
	})
	got := r.post("/v1/chat/completions", askChat)
	if got.status != http.StatusBadGateway || !strings.Contains(got.body, "HTTPS_PROXY") || strings.Contains(got.body, "s3cret") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}
