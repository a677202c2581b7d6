package credential

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// KeptLogin is a login that is not in use: one that was replaced, or that a program
// left and pawl did not trust.
type KeptLogin struct {
	ID    string    `json:"id"`    // claude-1f2e3d4c
	Agent string    `json:"agent"` // its driver
	From  string    `json:"from"`  // the user's file for it, as people write it
	Run   string    `json:"run"`   // the run in which it was replaced or left
	Why   string    `json:"why"`
	At    time.Time `json:"at"`
}

// keptFile is the content of the file of a kept login.
type keptFile struct {
	KeptLogin

	Chain string `json:"chain"`
	File  string `json:"file"`
	Login []byte `json:"login"`
}

// mostKept is how many logins are kept per driver. The oldest are removed first.
const mostKept = 8

func (l Lender) keptPath(id string) string { return filepath.Join(l.Dir, id+".kept") }

// keepAside stores a login, so that a person can decide what to do with it, and
// returns its id.
func (l Lender) keepAside(n note, login []byte, why string) (string, error) {
	sum := sha256.Sum256(append([]byte(n.File+"\x00"), login...))
	k := keptFile{
		KeptLogin: KeptLogin{ID: n.Agent + "-" + hex.EncodeToString(sum[:4]), Agent: n.Agent, From: n.From, Run: n.Run, Why: why},
		Chain:     n.Chain, File: n.File, Login: login,
	}
	text, err := json.Marshal(k)
	if err == nil {
		err = replaceFile(l.keptPath(k.ID), text, nil)
	}
	if err != nil {
		return "", fmt.Errorf("keep a login: %w", err)
	}
	all, _ := l.readKept(n.Agent) // The login is stored; old ones that cannot be listed are not removed.
	for _, old := range all[min(mostKept, len(all)):] {
		if old.ID != k.ID {
			_ = os.Remove(l.keptPath(old.ID))
		}
	}
	return k.ID, nil
}

// readKept returns the kept logins of a driver, or of all drivers if agent is empty,
// the newest first.
func (l Lender) readKept(agent string) ([]keptFile, error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []keptFile
	for _, entry := range entries {
		path := filepath.Join(l.Dir, entry.Name())
		var k keptFile
		info, err := entry.Info()
		text, unread := os.ReadFile(path)
		if err != nil || unread != nil || json.Unmarshal(text, &k) != nil || filepath.Base(path) != k.ID+".kept" {
			continue // It is another file, or was removed meanwhile.
		}
		if k.At = info.ModTime(); agent == "" || k.Agent == agent {
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, func(a, b keptFile) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// ListKept returns the kept logins, the newest first.
func (l Lender) ListKept() ([]KeptLogin, error) {
	all, err := l.readKept("")
	list := make([]KeptLogin, 0, len(all))
	for _, k := range all {
		list = append(list, k.KeptLogin)
	}
	return list, err
}

// FindKept returns the newest kept login of the driver name, or the one with the id
// name. If there is none, the error is a *loop.Fault.
func (l Lender) FindKept(name string) (KeptLogin, error) {
	k, err := l.findKeptFile(name)
	return k.KeptLogin, err
}

func (l Lender) findKeptFile(name string) (keptFile, error) {
	all, err := l.readKept("")
	if err != nil {
		return keptFile{}, err
	}
	if i := slices.IndexFunc(all, func(k keptFile) bool { return k.ID == name || k.Agent == name }); i >= 0 {
		return all[i], nil
	}
	return keptFile{}, &loop.Fault{
		Exit: loop.ExitNotFound, What: "login " + name, Why: "no login of this name is kept", Err: loop.ErrNotFound,
		Fix: "{1} shows those that are", Actions: []loop.Command{loop.PawlCommand("agent login list")},
	}
}

// Swapped is the result of SwapLogin.
type Swapped struct {
	Taken KeptLogin `json:"taken"` // the login that is in the user's file now
	Kept  string    `json:"kept"`  // the id of the login that was there; empty: there was none
	Chain string    `json:"-"`     // the audit chain of the loop whose run left Taken
}

// SwapLogin writes a kept login into the user's file, and keeps what was there. If a
// run has the login, the error is a *loop.HeldError.
func (l Lender) SwapLogin(ctx context.Context, name, why string) (Swapped, error) {
	k, err := l.findKeptFile(name)
	if err != nil {
		return Swapped{}, err
	}
	n := note{Run: k.Run, Chain: k.Chain, Agent: k.Agent, From: k.From, File: k.File}
	claim, err := l.claimLogin(Credential{Auth: loop.AuthLend, From: k.From, File: k.File})
	if err != nil {
		return Swapped{}, err
	}
	defer claim.Close()
	s := Swapped{Taken: k.KeptLogin, Chain: k.Chain}
	host, err := readRegular(k.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return s, lendFault(Credential{From: k.From}, err, "correct that file")
	case bytes.Equal(host, k.Login):
		return s, os.Remove(l.keptPath(k.ID))
	default:
		if s.Kept, err = l.keepAside(n, host, why); err != nil {
			return s, err
		}
	}
	text, err := mergeWithheld(host, k.Login)
	if err != nil {
		text = k.Login // It is not JSON: there is nothing to merge.
	}
	if err := overwriteFile(ctx, k.File, host, text); err != nil {
		return s, err
	}
	return s, os.Remove(l.keptPath(k.ID))
}
