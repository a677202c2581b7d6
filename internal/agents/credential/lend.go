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

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeCopy = fault.New("credential.copy.before")
	afterCopy  = fault.New("credential.copy.after")
)

// Lender lends logins to one run.
type Lender struct {
	Dir    string      // in pawl's home, for claims, notes and kept logins
	Holder loop.Holder // this process
	Run    string      // the id of the run
	Chain  string      // the audit chain of its loop
	// Reopen returns the home of a run that died with a login, so that a login that
	// its program renewed is not lost. Chain is the Chain of the run's lender. It
	// returns an error if the home is gone. If Reopen is nil, such a login is lost.
	Reopen func(run, chain string) (agent.Home, error)
}

// Loan is a login that is lent to a run. During a turn it is in the home of a program.
// Nobody else gets it until the run has ended, or until a turn has ended and no turn
// has renewed it.
type Loan struct {
	// Before is what became of the login in an earlier run that died with it. It is
	// zero if there was no such run.
	Before Returned

	lender Lender
	from   Credential
	into   agent.Home // nil between turns
	claim  *os.File
	note   note
}

// note is the record of a loan on the disk, in case its process dies.
type note struct {
	Run   string `json:"run"`
	Chain string `json:"chain"`
	Agent string `json:"agent"`
	From  string `json:"from"`
	File  string `json:"file"`
	Name  string `json:"name"`
	Host  []byte `json:"host"` // the content of File when it was lent
	Copy  []byte `json:"copy"` // what was lent in the last turn

	Renewed  []byte `json:"renewed,omitempty"` // the login that a turn of the run left in its place; nil: none did
	Answered bool   `json:"answered"`          // a host that renews tokens answered in such a turn
	Deserved bool   `json:"deserved"`          // the run is over, and Renewed may be written to File
}

// Lend copies a login into the home of a program. If somebody else has it, the error
// is a *loop.HeldError that names them; Lend does not wait. Any other error is a
// *loop.Fault. The caller ends the turn of the loan when the last process of the
// program is dead, and before it removes the home.
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

// pathFor returns the path of pawl's own file about the login in file.
func (l Lender) pathFor(file, suffix string) string {
	sum := sha256.Sum256([]byte(file))
	return filepath.Join(l.Dir, hex.EncodeToString(sum[:8])+suffix)
}

// claimLogin claims the login, and writes its holder into the claim.
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

// readHolder returns the holder of a claim. It is zero while the holder writes it.
func readHolder(path string) (h loop.Holder) {
	if text, err := readRegular(path); err == nil {
		_ = json.Unmarshal(text, &h)
	}
	return h
}

// fetchAndCopy settles the login of an earlier run that died, and copies the login.
// The note is written before the copy, so that every copy is on record.
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

// LendAgain copies the login that an earlier turn of the run renewed into the home of
// the next turn. The error is a *loop.Fault.
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

// FetchLeft saves what became of the logins of a run that died. It is called before
// the run's home is removed. It skips a login that another run has by now, because
// that run has saved it.
func (l Lender) FetchLeft(ctx context.Context, run string) (back []Returned, err error) {
	for _, path := range dirglob.Find(l.Dir, "*.lent") {
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

// fetchNote saves what became of the login of a run that died, by its note. If run is
// not empty, it ignores the notes of other runs.
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

// Secrets returns what must not be written anywhere while the run writes: the secrets
// that were lent, and those that are in the program's file by now.
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

// keyLine matches a member of a file that is not JSON: NAME=value, NAME: value.
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

// isWithheld reports whether a member of a login is not lent: logins for MCP servers
// are not for the program's vendor.
func isWithheld(name string) bool { return strings.HasPrefix(normalizeName(name), "mcp") }

// lendablePart returns the part of a file that is lent: the file itself, unless
// something in it is withheld.
func lendablePart(host []byte) []byte {
	f, _ := parseLogin(host) // From a file that is not JSON nothing is withheld.
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

// mergeWithheld returns a renewed login with what was withheld from the file.
func mergeWithheld(host, renewed []byte) ([]byte, error) {
	before, _ := parseLogin(host) // From a file that is not JSON nothing was withheld.
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
