package redact

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkWriter measures text without secrets: Go source, and the records
// that agents print.
func BenchmarkWriter(b *testing.B) {
	for kind, text := range map[string][]byte{"source": source(b), "records": records(b)} {
		for _, known := range []int{0, 5, 50} {
			b.Run(fmt.Sprintf("%s/%d_values", kind, known), func(b *testing.B) {
				w := New(someSecrets(known)...).Writer(io.Discard)
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					for chunk := range chunks(text, 32<<10) {
						if _, err := w.Write(chunk); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkHostile measures texts that were made to take long.
func BenchmarkHostile(b *testing.B) {
	r := New(someSecrets(5)...)
	for kind, unit := range map[string]string{
		"dashes": "-----", "headers": "-----BEGIN RSA PRIVATE KEY-----\n", "keys": pem("RSA ", pemBody), "web_tokens": "eyJhbGciOiJIUzI1NiJ9.",
		"slack": "xoxb-", "github": "github_pat_", "anthropic": "sk-ant-api03-", "openai": "sk-proj-T3BlbkFJ1", "urls": "://a:b0b0b0b0",
		"access_keys": "AKIAQ3EGRT7WYHN2ZLKP,", "bearers": "bearer ", "names": "secret_access_key=\"", "a_value": someSecrets(5)[1].Value[:30],
	} {
		text := []byte(strings.Repeat(unit, 1<<20/len(unit)))
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				w := r.Writer(io.Discard)
				for chunk := range chunks(text, 4<<10) {
					if _, err := w.Write(chunk); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, known := range []int{0, 5, 50} {
		values := someSecrets(known)
		b.Run(fmt.Sprintf("%d_values", known), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				New(values...)
			}
		})
	}
}

// someSecrets are values of the forms that environments hold.
func someSecrets(n int) []Secret {
	random := rand.New(rand.NewPCG(1, 2))
	prefixes := []string{"", "sk-ant-api03-", "ghp_", "postgres-", "https://"}
	var out []Secret
	for i := range n {
		value := []byte(prefixes[i%len(prefixes)])
		for range 24 + random.IntN(40) {
			value = append(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"[random.IntN(66)])
		}
		out = append(out, Secret{Name: fmt.Sprintf("S%d", i), Value: string(value)})
	}
	return out
}

// source is four megabytes of Go.
func source(tb testing.TB) []byte {
	tb.Helper()
	var out []byte
	names, err := filepath.Glob(filepath.Join(goroot(tb), "src", "*", "*", "*.go"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		if len(out) > 4<<20 {
			break
		}
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, text...)
	}
	return out
}

// records are the same bytes as JSON, a line each.
func records(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	for line := range bytes.Lines(source(tb)) {
		fmt.Fprintf(&out, `{"type":"tool_result","session_id":"0198c5a4-7d1f-7a44-9e3c-1f0c6a1d2b3e","content":%q}`+"\n", line)
	}
	return out.Bytes()
}
