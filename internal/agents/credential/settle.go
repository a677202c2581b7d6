package credential

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeBack = fault.New("credential.back.before")
	afterBack  = fault.New("credential.back.after")
)

// Back says what became of a login that was lent.
type Back string

// The ends of a loan.
const (
	Unchanged Back = "unchanged" // the program did not renew it
	Pending   Back = "pending"   // the program left another one; Settle decides when the run ends
	Renewed   Back = "renewed"   // the user's file has the renewed login
	Kept      Back = "kept"      // the user's file is unchanged, and the program's login is kept
	Refused   Back = "refused"   // the user's file is unchanged: what the program left is not a renewed login
)

// Returned is how a loan ended, for the run's record.
type Returned struct {
	Back  Back
	Why   string // empty: there is nothing to explain
	Agent string // the name of the login's driver
	From  string // the user's file, as people write it
	Aside string // the id of the login that was kept (see ListKept); empty: none was
}

func (n note) newReturned(b Back, why, aside string) Returned {
	return Returned{Back: b, Why: why, Agent: n.Agent, From: n.From, Aside: aside}
}

// EndTurn reads the login from the home of a program whose last process is dead.
// Answered means that a host that renews tokens has answered the program. If the
// result is Pending, the loan lasts until Settle; otherwise it has ended. A second
// EndTurn does nothing.
//
// An error means that the login could not be saved. The program's home must then not
// be removed, because it has the only copy.
func (l *Loan) EndTurn(answered bool) (Returned, error) {
	if l.claim == nil || l.into == nil {
		return Returned{Back: Unchanged}, nil
	}
	into := l.into
	l.into = nil
	before := l.note.Renewed
	r, err := l.lender.takeBack(&l.note, into)
	switch {
	case err != nil || r.Back != Pending:
	case !answered && l.note.Answered:
		// An earlier turn renewed it, and this one only changed it.
		r, err = l.lender.keepLogin(l.note, l.note.Renewed, whyUnanswered(l.from.Renews))
		l.note.Renewed = before
	default:
		l.note.Answered = answered
	}
	switch {
	case err != nil:
	case l.note.Renewed != nil:
		if r.Back == Unchanged {
			r.Back = Pending
		}
		return r, l.giveBackFault(l.lender.writeNote(l.note))
	default:
		err = l.lender.removeNote(l.note.File)
	}
	l.Close()
	return r, l.giveBackFault(err)
}

func whyUnanswered(renews []string) string {
	return "no answer of " + strings.Join(renews, " or ") + ", which renews it, was seen"
}

// HasRenewed reports whether a turn has left another login, so that Settle must be
// called.
func (l *Loan) HasRenewed() bool { return l.claim != nil && l.note.Renewed != nil }

// Close ends the claim to the login. A login that Settle did not store stays in the
// note, for FetchLeft or the next Lend. Close may be called more than once.
func (l *Loan) Close() {
	if l.claim != nil {
		l.claim.Close()
		l.claim = nil
	}
}

// Settle decides, once the run is over, what to do with a login that its turns have
// renewed. It is written to the user's file, unless refused says why not, or no host
// that renews tokens answered. If both the user and the run have renewed the login,
// the later one is used. The login that is not used is always kept. A file that the
// user has removed is not written again.
//
// Settle does not remove the note of the loan, so that a run that dies before its end
// is on record is settled again; Forget does.
func (l *Loan) Settle(ctx context.Context, refused string) (Returned, error) {
	why := refused
	switch {
	case l.note.Renewed == nil || refused != "":
	case len(l.from.Renews) == 0:
		why = "pawl does not know which host renews it"
	case !l.note.Answered:
		why = whyUnanswered(l.from.Renews)
	default:
		l.note.Deserved = true
		if err := l.lender.writeNote(l.note); err != nil {
			return Returned{}, l.giveBackFault(err)
		}
	}
	r, err := l.lender.settleNote(ctx, l.note, why)
	return r, l.giveBackFault(err)
}

// Forget ends the loan and removes its note.
func (l *Loan) Forget() error {
	defer l.Close()
	return l.giveBackFault(l.lender.removeNote(l.note.File))
}

func (l *Loan) giveBackFault(err error) error {
	if err == nil {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitError, What: "give back " + l.from.From, Why: err.Error(), Err: err,
		Fix: "see whether " + filepath.Dir(l.note.File) + " and " + l.lender.Dir + " can be written; the next run with this login tries again",
	}
}

// takeBack reads the login in a program's home, and sets n.Renewed if it can be a
// renewed one.
func (l Lender) takeBack(n *note, home agent.Home) (Returned, error) {
	ours, err := home.Read(n.Name)
	if err != nil {
		return n.newReturned(Refused, "the program's file cannot be read: "+errorText(err), ""), nil
	}
	if bytes.Equal(ours, n.Copy) {
		return n.newReturned(Unchanged, "", ""), nil
	}
	if err := checkRenewed(n.Copy, ours); err != nil {
		why := "the program left what is not a renewed login: " + err.Error()
		aside, err := l.keepSuspect(*n, ours, why)
		return n.newReturned(Refused, why, aside), err
	}
	n.Renewed = ours
	return n.newReturned(Pending, "", ""), nil
}

// settleLeft settles the login of a run that died. Unless the run had come to its end,
// it is unknown whether the login would have been refused, so that the user's file is
// not changed.
func (l Lender) settleLeft(ctx context.Context, n note) (Returned, error) {
	if n.Deserved {
		if host, err := readRegular(n.File); err == nil && bytes.Equal(lendablePart(host), n.Renewed) {
			return n.newReturned(Renewed, "run "+n.Run+" renewed it", ""), nil
		}
		return l.settleNote(ctx, n, "")
	}
	r := n.newReturned(Kept, "run "+n.Run+" died, and its home is gone", "")
	if l.Reopen != nil {
		if home, err := l.Reopen(n.Run, n.Chain); err == nil {
			if r, err = l.takeBack(&n, home); err != nil {
				return r, err
			}
		}
	}
	if n.Renewed == nil || r.Back == Refused {
		return r, nil
	}
	return l.keepLogin(n, n.Renewed, "run "+n.Run+" died before it was known whether it would be refused")
}

// settleNote writes the renewed login to the user's file, unless why says why not.
func (l Lender) settleNote(ctx context.Context, n note, why string) (Returned, error) {
	ours := n.Renewed
	switch {
	case ours == nil:
		return n.newReturned(Unchanged, "", ""), nil
	case why != "":
		return l.keepLogin(n, ours, why)
	}
	host, err := readRegular(n.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.keepLogin(n, ours, "the user's file was removed meanwhile")
	case err != nil:
		return l.keepLogin(n, ours, "the user's file cannot be read now: "+errorText(err))
	case bytes.Equal(host, n.Host):
		return l.storeRenewed(ctx, n, host, ours, "the program renewed it")
	}
	return l.settleConflict(ctx, n, host, ours)
}

// settleConflict decides about a login that both the user and the program renewed.
// The one that was renewed later is used: vendors that accept an old token twice
// invalidate the earlier result.
func (l Lender) settleConflict(ctx context.Context, n note, host, ours []byte) (Returned, error) {
	now := lendablePart(host)
	if bytes.Equal(now, ours) {
		return n.newReturned(Unchanged, "", ""), nil
	}
	theirs, err := parseLogin(now)
	if err != nil {
		return l.keepLogin(n, ours, "the user's file was changed meanwhile, to a form that pawl does not know")
	}
	mine, err := parseLogin(ours)
	if err != nil {
		return Returned{}, err
	}
	if err := cmp.Or(sameForm(theirs, mine), sameAccount(theirs, mine)); err != nil {
		return l.keepLogin(n, ours, "the user's file was changed meanwhile, to another login: "+err.Error())
	}
	if !latestTime(mine).After(latestTime(theirs)) {
		return l.keepLogin(n, ours, "the user's file was renewed meanwhile, and not earlier")
	}
	return l.storeRenewed(ctx, n, host, ours, "both were renewed, and the program's later")
}

func (l Lender) keepLogin(n note, ours []byte, why string) (Returned, error) {
	aside, err := l.keepAside(n, ours, why)
	return n.newReturned(Kept, why, aside), err
}

// keepSuspect keeps a login of an unexpected form, which a newer version of the
// program may have written. A file that is not JSON is not a login.
func (l Lender) keepSuspect(n note, ours []byte, why string) (string, error) {
	if f, err := parseLogin(ours); err == nil && len(secretMembers(f)) > 0 {
		return l.keepAside(n, ours, why)
	}
	return "", nil
}

// storeRenewed writes the renewed login to the user's file, unless that has changed
// since it was read, and keeps what was in it.
func (l Lender) storeRenewed(ctx context.Context, n note, host, ours []byte, why string) (Returned, error) {
	text, err := mergeWithheld(host, ours)
	if err != nil {
		return Returned{}, err
	}
	aside, err := l.keepAside(n, host, "run "+n.Run+" renewed it")
	if err != nil {
		return Returned{}, err
	}
	return n.newReturned(Renewed, why, aside), overwriteFile(ctx, n.File, host, text)
}

// overwriteFile replaces the content of a user's file, if it is still was.
func overwriteFile(ctx context.Context, path string, was, text []byte) error {
	if err := beforeBack.Hit(ctx); err != nil {
		return err
	}
	unchanged := func() error {
		if now, err := readRegular(path); !errors.Is(err, fs.ErrNotExist) && (err != nil || !bytes.Equal(now, was)) {
			return errors.New("it is being changed by somebody else")
		}
		return nil
	}
	if err := replaceFile(path, text, unchanged); err != nil {
		return err
	}
	return afterBack.Hit(ctx)
}

// mostNews is how much later than the login before a renewed one may end. A later
// time is not a vendor's: it would win against every other login.
const mostNews = 400 * 24 * time.Hour

// checkRenewed returns nil if after can be the result of renewing before, and
// otherwise why not.
func checkRenewed(before, after []byte) error {
	b, err := parseLogin(before)
	if err != nil {
		return errors.New("only logins in JSON are given back")
	}
	a, err := parseLogin(after)
	if err != nil {
		return err
	}
	if err := cmp.Or(sameForm(b, a), sameAccount(b, a)); err != nil {
		return err
	}
	was, is := latestTime(b), latestTime(a)
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
