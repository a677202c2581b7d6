package probe_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pawl-run/pawl/internal/confine/probe"
)

func TestWhatGatesNeedThatNoCopyHasIsSaid(t *testing.T) {
	root := fstest.MapFS{
		"docker-compose.yml": {Data: []byte("services:\n  db:\n    image: postgres:16\n  cache:\n    image: 'docker.io/library/redis:7'\n  db2:\n    image: postgres:15\n")},
		"api/.env.example":   {Data: []byte("DATABASE_URL=\n")},
		"web/compose.yaml":   {Data: []byte("services:\n  web:\n    image: nginx\n")},
	}
	for dir, want := range map[string][]string{
		"api": {"docker-compose.yml starts postgres and redis,", "api/.env.example asks for a .env"},
		"web": {"docker-compose.yml starts postgres and redis,"},
		".":   {"docker-compose.yml starts postgres and redis,"},
	} {
		got := probe.UnmetNeeds(root, dir)
		if len(got) != len(want) {
			t.Fatalf("%s needs %q, want %d things", dir, got, len(want))
		}
		for i, text := range want {
			if !strings.HasPrefix(got[i], text) {
				t.Errorf("%s needs %q, want %q", dir, got[i], text)
			}
		}
	}
	if got := probe.UnmetNeeds(fstest.MapFS{"go.mod": {}}, "."); got != nil {
		t.Errorf("needs %q, want nothing", got)
	}
}
