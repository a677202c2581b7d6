package runenv

import (
	"net/url"
	"testing"
)

func TestTheProxyIsTheOneThatTheEnvironmentNamesForAnAddress(t *testing.T) {
	h := Host{Environ: []string{"HTTPS_PROXY=http://me:secret@proxy.test:3128", "http_proxy=plain.test:80", "NO_PROXY=10.0.0.0/8,.corp.test"}}
	for address, want := range map[string]string{
		"https://api.anthropic.com/":  "http://me:secret@proxy.test:3128",
		"http://models.test/v1":       "http://plain.test:80",
		"https://mirror.corp.test/":   "",
		"http://10.2.3.4:8000/v1":     "",
		"http://127.0.0.1:11434/":     "",
		"https://localhost/":          "",
		"https://corp.test.evil.com/": "http://me:secret@proxy.test:3128",
	} {
		to, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		proxy, err := h.Upstream()(to)
		if proxy != nil {
			got = proxy.String()
		}
		if err != nil || got != want {
			t.Errorf("%s goes by %q, %v, want %q", address, got, err, want)
		}
	}
	if proxy, err := (Host{}).Upstream()(&url.URL{Scheme: "https", Host: "a.test"}); proxy != nil || err != nil {
		t.Errorf("without a proxy: %v, %v", proxy, err)
	}
}
