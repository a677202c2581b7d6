package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// credential is a file in which an agent keeps a login.
type credential struct {
	env, home string // the variable with its directory; else the directory below the user's home
	name      string
	judge     func(data []byte, now time.Time) state
}

// state says whether a credential can be used. What its file contains is not kept.
type state int

const (
	absent  state = iota // the file holds no login
	valid                // its login has not expired, by the file's own times
	expired              // its login has expired and cannot be renewed
	unclear              // the format of the file is unknown
)

// findLogin looks for the agent's credentials, as the agents do: in variables first,
// then in files. The text says where they are, or why there are none.
func (p Prober) findLogin(k agentKind) (Login, string) {
	for _, name := range k.keys {
		if proc.LookupVariable(p.Environ, name) != "" {
			return LoginYes, name
		}
	}
	old := ""
	for _, c := range k.files {
		path := p.pathBelow(c.env, c.home, c.name)
		if path == "" {
			continue
		}
		data, err := readFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return LoginUnknown, fmt.Sprintf("%s: %s", p.tildePath(path), withoutPath(err))
		}
		switch c.judge(data, p.Now) {
		case valid:
			return LoginYes, p.tildePath(path)
		case unclear:
			return LoginUnknown, p.tildePath(path) + " has an unknown form"
		case expired:
			old = p.tildePath(path)
		case absent:
		}
	}
	if old != "" {
		return LoginNo, old + " has expired"
	}
	// A keychain is not a file, so only traces of a set-up are seen.
	if !k.darwin || runtime.GOOS == "darwin" {
		for _, name := range k.traces {
			if path := p.pathBelow("", "", name); path != "" && isThere(path) {
				return LoginUnknown, p.tildePath(path) + " says that it was set up; its login may be in the keychain"
			}
		}
	}
	return LoginNo, "neither a key nor a credential file"
}

// tildePath writes a path below the user's home with a tilde.
func (p Prober) tildePath(path string) string {
	if rel, err := filepath.Rel(p.Home, path); p.Home != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + filepath.ToSlash(rel)
	}
	return path
}

// judgeToken judges a login that ends at endsMS in Unix milliseconds, or never if
// that is zero.
func judgeToken(access, refresh string, endsMS int64, now time.Time) state {
	switch {
	case access == "" && refresh == "":
		return absent
	case refresh == "" && endsMS > 0 && !now.IsZero() && now.UnixMilli() >= endsMS:
		return expired
	}
	// With a refresh token, an agent gets a new access token by itself.
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
	return judgeToken(file.OAuth.Access, file.OAuth.Refresh, int64(file.OAuth.EndsMS), now)
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
	return judgeToken(file.Tokens.Access, file.Tokens.Refresh, 0, time.Time{})
}

// googleLogin reads the format of Google's libraries, which other agents use too.
func googleLogin(data []byte, now time.Time) state {
	var file struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		EndsMS  float64 `json:"expiry_date"`
	}
	if json.Unmarshal(data, &file) != nil {
		return unclear
	}
	return judgeToken(file.Access, file.Refresh, int64(file.EndsMS), now)
}

// anyProvider reads a JSON object with one entry per provider.
func anyProvider(data []byte, _ time.Time) state {
	var providers map[string]json.RawMessage
	if json.Unmarshal(data, &providers) != nil {
		return unclear
	}
	if len(providers) == 0 {
		return absent
	}
	return valid
}

var keyLine = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+)?[A-Z_]+_API_KEY[ \t]*=[ \t]*["']?[^\s"'#]`)

// keyFile looks for an API key among the variables of a .env file.
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
