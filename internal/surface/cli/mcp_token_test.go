package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAttack115ATokenThatCanBeGuessedIsRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	var some [16]byte
	_, _ = rand.Read(some[:])
	file := filepath.Join(t.TempDir(), "agent.key")
	for name, c := range map[string]struct{ text, why string }{
		"short":                {"secret", "it has 6 characters"},
		"empty":                {"\n", "it has 0 characters"},
		"one letter":           {strings.Repeat("a", 64), "repeats itself"},
		"a word over and over": {strings.Repeat("password", 8), "repeats itself"},
		"digits in turn":       {strings.Repeat("01", 40), "repeats itself"},
		"two lines":            {strings.Repeat("abcdefgh", 4) + "\n" + strings.Repeat("abcdefgh", 4), "characters that are no header's"},
		"random bytes":         {hex.EncodeToString(some[:]) + "\n", ""},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := readKey(file)
		token := k.token
		f, _ := errors.AsType[*loop.Fault](err)
		good := err == nil && token == strings.TrimSpace(c.text)
		if c.why != "" {
			good = f != nil && strings.Contains(f.Why, c.why) && f.Exit == loop.ExitUnreadable && f.Fix != ""
		}
		if !good {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
	for range 1000 {
		var some [16]byte
		_, _ = rand.Read(some[:])
		for _, token := range []string{rand.Text() + rand.Text(), hex.EncodeToString(some[:])} {
			if why := weakness(token); why != "" {
				t.Fatalf("the random token %s: %s", token, why)
			}
		}
	}
}
