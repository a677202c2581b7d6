package redact

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFindSaysWhereSecretsAre(t *testing.T) {
	r := New(Secret{"KEY", "hunter2hunter2"})
	tests := map[string]struct {
		data string
		want []Found
	}{
		"nothing":            {"package main\n", nil},
		"no data":            {"", nil},
		"a value":            {"a\nb hunter2hunter2\n", []Found{{"KEY", 4, 2}}},
		"the same twice":     {"hunter2hunter2\n\nhunter2hunter2", []Found{{"KEY", 0, 1}, {"KEY", 16, 3}}},
		"a value in hex":     {"\n\n\t" + hex.EncodeToString([]byte("hunter2hunter2")), []Found{{"KEY", 3, 3}}},
		"a binary":           {"\x7fELF\x00\x00\nhunter2hunter2\x00", []Found{{"KEY", 7, 2}}},
		"UTF-16":             {"\xff\xfe" + wide("x=hunter2hunter2", false), []Found{{"KEY", 6, 1}}},
		"a key, once":        {"x\n" + pem("RSA ", pemBody) + "y\n", []Found{{"private-key", 7, 2}}},
		"an id and a secret": {shaped[0] + "\n" + body40, []Found{{"aws-access-key-id", 0, 1}, {"aws-secret-key", 21, 2}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, r.Find([]byte(test.data))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindStopsAtItsBound(t *testing.T) {
	data := strings.Repeat("hunter2hunter2\n", MaxFound+50)
	found := New(Secret{"KEY", "hunter2hunter2"}).Find([]byte(data))
	if len(found) != MaxFound || found[MaxFound-1].Line != MaxFound {
		t.Errorf("%d found, the last %+v", len(found), found[len(found)-1])
	}
}

func TestFindReportsExactlyWhatStringReplaces(t *testing.T) {
	names := encodings()
	rapid.Check(t, func(t *rapid.T) {
		values := []Secret{{"K0", secretValue(t)}}
		r := New(values...)
		text := mixture(t, values, names)
		found := r.Find([]byte(text))
		if changed := r.String(text) != text; changed != (len(found) > 0) {
			t.Fatalf("%q becomes %q, found %v", text, r.String(text), found)
		}
		for _, f := range found {
			if want := 1 + strings.Count(text[:f.Offset], "\n"); f.Line != want {
				t.Fatalf("%+v is on line %d of %q", f, want, text)
			}
		}
	})
}
