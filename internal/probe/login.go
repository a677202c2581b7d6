package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/proc"
)

// credential is a file in which an agent keeps a login.
type credential struct {
	env, home string // the directory: named by a variable, or below that of the user
	name      string
	judge     func(data []byte, now time.Time) state
}

// state is what a credential is worth. The contents of the file go no further.
type state int

const (
	absent  state = iota // the file holds no login
	valid                // it holds one that has not expired as far as it says
	expired              // it holds one that nothing can renew
	unclear              // it has a form that this version of pawl does not know
)

// login looks for something that the agent identifies itself with. The order is
// that of the agents: a variable goes before a file.
func (p Prober) login(k kind) (Login, string) {
	for _, name := range k.keys {
		if proc.Variable(p.Environ, name) != "" {
			return LoginYes, name
		}
	}
	old := ""
	for _, c := range k.files {
		path := p.in(c.env, c.home, c.name)
		if path == "" {
			continue
		}
		data, err := readFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return LoginUnknown, fmt.Sprintf("%s: %s", p.short(path), reason(err))
		}
		switch c.judge(data, p.Now) {
		case valid:
			return LoginYes, p.short(path)
		case unclear:
			return LoginUnknown, p.short(path) + " has an unknown form"
		case expired:
			old = p.short(path)
		case absent:
		}
	}
	if old != "" {
		return LoginNo, old + " has expired"
	}
	// A keychain is not a file, so only traces of a set-up are seen.
	if !k.darwin || runtime.GOOS == "darwin" {
		for _, name := range k.traces {
			if path := p.in("", "", name); path != "" && isThere(path) {
				return LoginUnknown, p.short(path) + " says that it was set up; its login may be in the keychain"
			}
		}
	}
	return LoginNo, "neither a key nor a credential file"
}

// short writes a path below the home of the user as people do.
func (p Prober) short(path string) string {
	if rel, err := filepath.Rel(p.Home, path); p.Home != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + filepath.ToSlash(rel)
	}
	return path
}

// token is a login that may end. The times are Unix milliseconds.
func token(access, refresh string, endsMS int64, now time.Time) state {
	switch {
	case access == "" && refresh == "":
		return absent
	case refresh == "" && endsMS > 0 && !now.IsZero() && now.UnixMilli() >= endsMS:
		return expired
	}
	// Whoever has a refresh token gets a new access token by itself.
	return valid
}

func claudeLogin(data []byte, now time.Time) state {
	var file struct {
		OAuth struct {
			Access  string  `json:"accessToken"`
			Refresh string  `json:"refreshToken"`
			EndsMS  float64 `json:"expiresAt"`
		} `json:"claudeAiOauth"`
	}
	if json.Unmarshal(data, &file) != nil {
		return unclear
	}
	return token(file.OAuth.Access, file.OAuth.Refresh, int64(file.OAuth.EndsMS), now)
}

func codexLogin(data []byte, _ time.Time) state {
	var file struct {
		Key    string `json:"OPENAI_API_KEY"`
		Tokens struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
		} `json:"tokens"`
	}
	if json.Unmarshal(data, &file) != nil {
		return unclear
	}
	if file.Key != "" {
		return valid
	}
	return token(file.Tokens.Access, file.Tokens.Refresh, 0, time.Time{})
}

// googleLogin is the form of Google's libraries, which others have taken over.
func googleLogin(data []byte, now time.Time) state {
	var file struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		EndsMS  float64 `json:"expiry_date"`
	}
	if json.Unmarshal(data, &file) != nil {
		return unclear
	}
	return token(file.Access, file.Refresh, int64(file.EndsMS), now)
}

// anyEntry is a JSON object with one entry per provider.
func anyEntry(data []byte, _ time.Time) state {
	var providers map[string]json.RawMessage
	if json.Unmarshal(data, &providers) != nil {
		return unclear
	}
	if len(providers) == 0 {
		return absent
	}
	return valid
}

var keyLine = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?[A-Z_]+_API_KEY[ \t]*=[ \t]*["']?[^\s"'#]`)

// keyFile is a list of variables, one of which is a key.
func keyFile(data []byte, _ time.Time) state {
	if keyLine.Match(data) {
		return valid
	}
	return absent
}

func notEmpty(data []byte, _ time.Time) state {
	if strings.TrimSpace(string(data)) == "" {
		return absent
	}
	return valid
}
