package definition

import (
	"os"
	"strings"
	"testing"
)

func TestThePageOfKeysNamesEveryKnownKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range knownKeys {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/config.md does not name the key %s", key)
		}
	}
}
