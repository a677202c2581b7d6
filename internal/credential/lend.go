package credential

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/dirglob"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/flock"
	"github.com/pawl-run/pawl/internal/lazyregexp"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/redact"
)

var (
	beforeCopy = fault.New("credential.copy.before")
	afterCopy  = fault.New("credential.copy.after")
)

// Lender lends logins to one run.
type Lender struct {
	Dir    string      // of pawl's home; claims, notes and logins that were put aside lie here
	Holder loop.Holder // this process
	Run    string      // the id of the run
	Chain  string      // the audit chain of its loop
	// Reopen finds the home of a run that died with a login, so that what its
	// program renewed is not lost. Its error is that the home is gone. Nil: such a
	// login is lost.
	Reopen func(run string) (agent.Home, error)
}

// Loan is a login that a run has, in the home of a program while a turn lasts.
// Nobody else gets it until the run has ended, or a turn has ended in which the
// program did not renew it.
type Loan struct {
	// Before is what came back from a run that died with this login. The zero
	// Returned is that there was none.
	Before Returned

	lender Lender
	from   Credential
	into   agent.Home // nil between turns
	claim  *os.File
	note   note
}

// note is what a loan leaves behind if its process dies.
type note struct {
	Run   string `json:"run"`
	Chain string `json:"chain"`
	Agent string `json:"agent"`
	From  string `json:"from"`
	File  string `json:"file"`
	Name  string `json:"name"`
	Host  []byte `json:"host"` // what lay in File
	Copy  []byte `json:"copy"` // what was lent in the last turn

	Renewed  []byte `json:"renewed,omitempty"` // what a turn of the run left in its place; nil: none did
	Answered bool   `json:"answered"`          // a host that renews tokens answered in such a turn
	Deserved bool   `json:"deserved"`          // the run is over, and the user's file may get it
}

// Lend copies a login into the home of a program. Somebody else's loan of it is
// a *loop.HeldError that names them: it does not wait. Any other error is a
// *loop.Fault. The caller ends the turn of the loan when the last process of the
// program is gone, and before the home is removed.
func (l Lender) Lend(ctx context.Context, c Credential, into agent.Home) (*Loan, error) {
	if c.Auth != loop.AuthLend || c.File == "" {
		return nil, lendFault(c, errors.New("it is not a login"), "write auth: lend")
	}
	claim, err := l.claimLogin(c)
	if err != nil {
		return nil, err
	}
	loan := &Loan{lender: l, from: c, into: into, claim: claim}
	if err := loan.fetchAndCopy(ctx); err != nil {
		claim.Close()
		return nil, lendFault(c, err, "see whether "+c.From+" and "+l.Dir+" can be read and written")
	}
	return loan, nil
}

func lendFault(c Credential, err error, fix string) error {
	return &loop.Fault{Exit: loop.ExitMissing, What: "lend " + c.From, Why: err.Error(), Fix: fix, Err: err}
}

// pathFor is a file of pawl's about a login.
func (l Lender) pathFor(file, suffix string) string {
	sum := sha256.Sum256([]byte(file))
	return filepath.Join(l.Dir, hex.EncodeToString(sum[:8])+suffix)
}

// claimLogin claims the login, and writes into the claim who has it.
func (l Lender) claimLogin(c Credential) (*os.File, error) {
	path := l.pathFor(c.File, ".lock")
	claim, err := flock.Try(path)
	switch {
	case errors.Is(err, flock.ErrHeld):
		return nil, &loop.HeldError{What: "the login " + c.From, Holder: readHolder(path)}
	case errors.Is(err, errors.ErrUnsupported):
		return nil, lendFault(c, errors.New("this platform has no locks that end with their process, and two runs must not renew one login"),
			"write auth: inject and set a key, or use Linux, macOS or WSL2")
	case err != nil:
		return nil, lendFault(c, err, "see whether "+l.Dir+" can be written")
	}
	text, err := json.Marshal(l.Holder)
	if err == nil {
		err = claim.Truncate(0)
	}
	if err == nil {
		_, err = claim.WriteAt(text, 0)
	}
	if err != nil {
		claim.Close()
		return nil, lendFault(c, err, "see whether "+l.Dir+" can be written")
	}
	return claim, nil
}

// readHolder is who has a claim. It is zero for the moment in which they write it.
func readHolder(path string) (h loop.Holder) {
	if text, err := readRegular(path); err == nil {
		_ = json.Unmarshal(text, &h)
	}
	return h
}

// fetchAndCopy fetches what a run that died left, and copies the login. The note is
// there before the copy, so that there is no copy that nobody knows of.
func (l *Loan) fetchAndCopy(ctx context.Context) error {
	var err error
	if l.Before, err = l.lender.fetchNote(ctx, l.from.File, ""); err != nil {
		return err
	}
	host, err := readRegular(l.from.File)
	if err != nil {
		return fmt.Errorf("read it: %s", errorText(err))
	}
	c := l.from
	l.note = note{Run: l.lender.Run, Chain: l.lender.Chain, Agent: c.Agent, From: c.From, File: c.File, Name: c.Name, Host: host, Copy: lendablePart(host)}
	return l.copyIn(ctx)
}

// LendAgain puts the login that an earlier turn of the run renewed into the home of
// the next one. The error is a *loop.Fault.
func (l *Loan) LendAgain(ctx context.Context, into agent.Home) error {
	l.into, l.Before = into, Returned{}
	l.note.Copy = l.note.Renewed
	if err := l.copyIn(ctx); err != nil {
		return lendFault(l.from, err, "see whether "+l.lender.Dir+" can be written")
	}
	return nil
}

func (l *Loan) copyIn(ctx context.Context) error {
	if err := l.lender.writeNote(l.note); err != nil {
		return err
	}
	if err := beforeCopy.Hit(ctx); err != nil {
		return err
	}
	if err := l.into.Write(l.note.Name, l.note.Copy); err != nil {
		return fmt.Errorf("copy it: %w", err)
	}
	return afterCopy.Hit(ctx)
}

// FetchLeft keeps what a run that died made of the logins that it was lent, for
// whoever removes its home. A login that another run has by now was fetched by
// that one.
func (l Lender) FetchLeft(ctx context.Context, run string) (back []Returned, err error) {
	notes, err := dirglob.Find(l.Dir, "*.lent")
	if err != nil {
		return nil, err
	}
	for _, path := range notes {
		var n note
		if text, readErr := os.ReadFile(path); readErr != nil || json.Unmarshal(text, &n) != nil || n.Run != run {
			continue
		}
		claim, claimErr := l.claimLogin(Credential{From: n.File, File: n.File})
		if _, held := errors.AsType[*loop.HeldError](claimErr); held {
			continue
		}
		if claimErr != nil {
			err = errors.Join(err, claimErr)
			continue
		}
		r, fetchErr := l.fetchNote(ctx, n.File, run)
		claim.Close()
		back, err = append(back, r), errors.Join(err, fetchErr)
	}
	return back, err
}

// fetchNote keeps what a run that died with this login made of it. With
// the id of a run it leaves alone what any other left.
func (l Lender) fetchNote(ctx context.Context, file, run string) (r Returned, err error) {
	text, err := os.ReadFile(l.pathFor(file, ".lent"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	var n note
	if json.Unmarshal(text, &n) != nil || n.File != file {
		return r, l.removeNote(file)
	}
	if run != "" && n.Run != run {
		return r, nil
	}
	if r, err = l.settleLeft(ctx, n); err != nil {
		return r, err
	}
	return r, l.removeNote(file)
}

func (l Lender) writeNote(n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return replaceFile(l.pathFor(n.File, ".lent"), text, nil)
}

func (l Lender) removeNote(file string) error {
	if err := os.Remove(l.pathFor(file, ".lent")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Secrets are what must not be written anywhere as long as anything of the run
// is: those that were lent, and those that the program's file holds by now.
func (l *Loan) Secrets() []redact.Secret {
	out := append(secretsIn(l.note.Host), secretsIn(l.note.Renewed)...)
	if l.into == nil {
		return out
	}
	if now, err := l.into.Read(l.note.Name); err == nil && len(now) <= mostLogin && !bytes.Equal(now, l.note.Copy) {
		out = append(out, secretsIn(now)...)
	}
	return out
}

// keyLine is a member of what is not JSON: NAME=value, NAME: value.
var keyLine = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+)?["']?([A-Za-z_][\w.-]*)["']?[ \t]*[=:][ \t]*["']?([^\s"'#]+)`)

func secretsIn(data []byte) []redact.Secret {
	if f, err := parseLogin(data); err == nil {
		return secretMembers(f)
	}
	var out []redact.Secret
	for _, m := range keyLine.FindAllSubmatch(data, -1) {
		if name, text := string(m[1]), string(m[2]); isSecret(normalizeName(name), text) {
			out = append(out, redact.Secret{Name: name, Value: text})
		}
	}
	return out
}

// isWithheld reports whether a member of a login is none of the program's vendor:
// what the user has for MCP servers is for those alone.
func isWithheld(name string) bool { return strings.HasPrefix(normalizeName(name), "mcp") }

// lendablePart is what of a file is lent: all, byte for byte, unless something is
// withheld.
func lendablePart(host []byte) []byte {
	f, _ := parseLogin(host) // Of what is not JSON nothing is withheld.
	all := len(f)
	for name := range f {
		if isWithheld(name) {
			delete(f, name)
		}
	}
	if len(f) == all {
		return host
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil
	}
	return text
}

// mergeWithheld is a renewed login with what was withheld of the file.
func mergeWithheld(host, renewed []byte) ([]byte, error) {
	before, _ := parseLogin(host) // Of what is not JSON nothing was withheld.
	after, err := parseLogin(renewed)
	if err != nil {
		return nil, err
	}
	kept := false
	for name, v := range before {
		if isWithheld(name) {
			after[name], kept = v, true
		}
	}
	if !kept {
		return renewed, nil
	}
	return json.MarshalIndent(after, "", "  ")
}
