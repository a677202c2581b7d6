package credential

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
)

var (
	beforeBack = fault.New("credential.back.before")
	afterBack  = fault.New("credential.back.after")
)

// Back is what became of a login that was lent.
type Back string

// The ends of a loan.
const (
	Unchanged Back = "unchanged" // the program did not renew it
	Renewed   Back = "renewed"   // the user's file holds what the program renewed
	Kept      Back = "kept"      // the user's file stays, though the program's is another
	Refused   Back = "refused"   // the user's file stays: the program's is not a renewed login
)

// Returned is how a loan ended, for the run's record.
type Returned struct {
	Back  Back
	Why   string // of Kept and Refused, and of Renewed where something was put aside
	Aside string // the file that holds the login that was not used, for a person to decide about; empty: there is none
}

// Return ends the loan. If the program renewed the login, the user's file gets
// it, provided that it has the form of what was lent. If the user's file was
// changed meanwhile, the one of the two that was renewed later wins, and the
// other one is put aside: neither is lost. A file that the user has removed
// stays so. A second Return does nothing.
//
// Its error means that a renewed login could not be stored; the program's home
// is to be left alone then, because only there it is.
func (l *Loan) Return(ctx context.Context) (Returned, error) {
	if l.claim == nil {
		return Returned{Back: Unchanged}, nil
	}
	defer func() { l.claim.Close(); l.claim = nil }()
	r, err := l.lender.settle(ctx, l.note, l.into)
	if err == nil {
		err = l.lender.forget(l.note.File)
	}
	if err != nil {
		return r, &loop.Fault{
			Exit: loop.ExitError, What: "give back " + l.from.From, Why: err.Error(), Err: err,
			Fix: "see whether " + filepath.Dir(l.note.File) + " and " + l.lender.Dir + " can be written; the next run with this login tries again",
		}
	}
	return r, nil
}

func (l Lender) settle(ctx context.Context, n note, home agent.Home) (Returned, error) {
	ours, err := home.Read(n.Name)
	if err != nil {
		return Returned{Refused, "the program's file cannot be read: " + reason(err), ""}, nil
	}
	if bytes.Equal(ours, n.Copy) {
		return Returned{Back: Unchanged}, nil
	}
	if err := renewed(n.Copy, ours); err != nil {
		aside, asideErr := l.suspect(n, ours)
		return Returned{Refused, "the program left what is no renewed login: " + err.Error(), aside}, asideErr
	}
	host, err := readRegular(n.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Returned{Kept, "the user's file was removed meanwhile", ""}, nil
	case err != nil:
		return l.keep(n, ours, "the user's file cannot be read now: "+reason(err))
	case bytes.Equal(host, n.Host):
		return l.put(ctx, n, host, ours, Returned{Back: Renewed})
	}
	return l.choose(ctx, n, host, ours)
}

// choose is for a login that was renewed on both sides. Whoever renews a login
// later was accepted by the vendor later, and vendors that let an old token be
// used twice void the earlier of the two.
func (l Lender) choose(ctx context.Context, n note, host, ours []byte) (Returned, error) {
	now := lent(host)
	if bytes.Equal(now, ours) {
		return Returned{Back: Unchanged}, nil
	}
	theirs, err := parse(now)
	if err != nil {
		return l.keep(n, ours, "the user's file was changed meanwhile, to a form that pawl does not know")
	}
	mine, err := parse(ours)
	if err != nil {
		return Returned{}, err
	}
	if err := sameForm(theirs, mine); err != nil {
		return l.keep(n, ours, "the user's file was changed meanwhile, to another login: "+err.Error())
	}
	if !ends(mine).After(ends(theirs)) {
		return l.keep(n, ours, "the user's file was renewed meanwhile, and not earlier")
	}
	aside, err := l.aside(n, host)
	if err != nil {
		return Returned{}, err
	}
	return l.put(ctx, n, host, ours, Returned{Renewed, "both were renewed, and the program's later", aside})
}

func (l Lender) keep(n note, ours []byte, why string) (Returned, error) {
	aside, err := l.aside(n, ours)
	return Returned{Kept, why, aside}, err
}

// suspect puts a login aside that has an unexpected form, because a newer
// version of the program may have written it. What is no JSON is no login.
func (l Lender) suspect(n note, ours []byte) (string, error) {
	if f, err := parse(ours); err == nil && len(secrets(f)) > 0 {
		return l.aside(n, ours)
	}
	return "", nil
}

// put replaces the user's file, unless it was changed since it was read.
func (l Lender) put(ctx context.Context, n note, host, ours []byte, r Returned) (Returned, error) {
	text, err := whole(host, ours)
	if err != nil {
		return Returned{}, err
	}
	if err := beforeBack.Hit(ctx); err != nil {
		return Returned{}, err
	}
	unchanged := func() error {
		if now, err := readRegular(n.File); err != nil || !bytes.Equal(now, host) {
			return errors.New("it is being changed by somebody else")
		}
		return nil
	}
	if err := replace(n.File, text, unchanged); err != nil {
		return Returned{}, err
	}
	return r, afterBack.Hit(ctx)
}

// mostNews is how much later than the one before a renewed login may end. A time
// beyond that is made up, so that it wins against every other.
const mostNews = 400 * 24 * time.Hour

// renewed returns why after cannot be what a vendor makes of before, or nil.
func renewed(before, after []byte) error {
	b, err := parse(before)
	if err != nil {
		return errors.New("only logins in JSON are given back")
	}
	a, err := parse(after)
	if err != nil {
		return err
	}
	if err := sameForm(b, a); err != nil {
		return err
	}
	was, is := ends(b), ends(a)
	switch {
	case was.IsZero():
		return nil
	case is.Before(was):
		return fmt.Errorf("it ends at %s, before the one that was lent", is.UTC().Format(time.RFC3339))
	case is.After(was.Add(mostNews)):
		return fmt.Errorf("it claims to end at %s", is.UTC().Format(time.RFC3339))
	}
	return nil
}

// mostAside is how many logins are kept aside of one file.
const mostAside = 8

// aside keeps a login for a person to decide about, and returns where.
func (l Lender) aside(n note, login []byte) (string, error) {
	sum := sha256.Sum256(login)
	path := l.at(n.File, ".aside-"+hex.EncodeToString(sum[:4])+".json")
	if err := replace(path, login, nil); err != nil {
		return "", fmt.Errorf("put a login aside: %w", err)
	}
	all, err := filepath.Glob(l.at(n.File, ".aside-*.json"))
	if err != nil || len(all) <= mostAside {
		return path, err
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(age(b), age(a)) })
	for _, old := range all[mostAside:] {
		if old != path {
			_ = os.Remove(old)
		}
	}
	return path, nil
}

func age(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}
