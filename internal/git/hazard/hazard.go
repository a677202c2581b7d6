// Package hazard lists what a repository holds that could start a program or
// lead elsewhere if git were used on it without protection: its configuration,
// hooks, attributes, object stores and replaced objects.
//
// It starts no process, changes nothing, and opens nothing of the work tree but
// the .git file.
package hazard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// Kinds of hazards.
const (
	Executes   = "executes"   // names a program that some git command would start
	Leads      = "leads"      // leads to another place, host or file
	Include    = "include"    // more configuration in another file
	Extension  = "extension"  // changes what the repository format means
	Hook       = "hook"       // a program in the hooks directory
	Attributes = "attributes" // names a filter, diff or merge driver
	Alternates = "alternates" // objects in another object store
	Graft      = "graft"      // history that the commits do not tell
	Replace    = "replace"    // one object shown in place of another
	GitFile    = "gitfile"    // the git directory is elsewhere
	Unreadable = "unreadable" // cannot be judged
)

// maxText is the longest key or value of a hazard in bytes, without the
// digest of a longer one.
const maxText = 240

// Hazard is one thing in a repository that could start a program, or lead
// elsewhere, if git were used on it without protection. Nothing that a git.Repo
// does acts on any of them.
type Hazard struct {
	Kind   string `json:"kind"`
	Key    string `json:"key"`              // as git names it, or the file's name
	Where  string `json:"where"`            // file, with .git for the git directory
	Value  string `json:"value"`            // printable, bounded, without passwords; a cut one ends with its digest
	Refuse bool   `json:"refuse,omitempty"` // never accepted, not even by a person
	Why    string `json:"why"`
}

// Scan lists what the repository's own configuration, hooks, attributes and
// object store hold that could act, sorted. Everything is read as data and no
// process is started; only files of the git directory, the .git file and what
// include.path names are opened. What cannot be read is a hazard, not an
// error: an error means only that ctx ended.
func Scan(ctx context.Context, dirs gitdir.Dirs) ([]Hazard, error) {
	s := &scan{dirs: dirs, seen: map[string]bool{}}
	for _, look := range []func(){s.scanGitFile, s.scanConfigs, s.scanHooks, s.scanAttributes, s.scanLinks, s.scanAlternates, s.scanGrafts, s.scanReplaceRefs} {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("scan %s: %w", dirs.Root, context.Cause(ctx))
		}
		look()
	}
	slices.SortFunc(s.found, compareHazards)
	return slices.Compact(s.found), nil
}

func compareHazards(a, b Hazard) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
}

// identity is all of a hazard that a fingerprint holds: the explanation may be
// worded anew.
func (h Hazard) identity() string {
	return fmt.Sprintf("%q %q %q %q %t\n", h.Kind, h.Where, h.Key, h.Value, h.Refuse)
}

// Fingerprint is a digest of all hazards, in hexadecimal and whatever their
// order. The same hazards have the same one on every machine and in every
// version, as long as their files lie in the git directory.
func Fingerprint(hazards []Hazard) string {
	lines := make([]string, len(hazards))
	for i, h := range hazards {
		lines[i] = h.identity()
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte("pawl hazards 1\n" + strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

// Changed returns the hazards of now that before does not hold, in order: new
// ones and those with another value. A hazard that is gone is not named.
func Changed(before, now []Hazard) []Hazard {
	known := map[string]bool{}
	for _, h := range before {
		known[h.identity()] = true
	}
	var changed []Hazard
	for _, h := range now {
		if !known[h.identity()] {
			changed = append(changed, h)
		}
	}
	return changed
}

// Printable makes any text one line of bounded length. Two texts stay two,
// apart from the passwords in addresses.
func Printable(s string) string {
	s = withoutPassword(s)
	var b strings.Builder
	for rest := s; rest != ""; {
		c, size := utf8.DecodeRuneInString(rest)
		first := rest[0]
		rest = rest[size:]
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, first)
		case c == '\\':
			b.WriteString(`\\`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
	}
	if b.Len() <= maxText {
		return b.String()
	}
	text, cut := b.String(), maxText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "… sha256:" + digest([]byte(s))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

var address = lazyregexp.New(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s@]*@`)

// withoutPassword drops what stands before the host of every address in s,
// apart from a plain user name over ssh, which is not a secret.
func withoutPassword(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	return address.ReplaceAllStringFunc(s, func(m string) string {
		u, err := url.Parse(m + "host")
		if err == nil && u.Scheme == "ssh" {
			if _, secret := u.User.Password(); !secret {
				return m
			}
		}
		scheme, _, _ := strings.Cut(m, "://")
		return scheme + "://***@"
	})
}
