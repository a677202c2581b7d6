package credential

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// blockFile keeps replaceFile from writing a file.
func blockFile(t *testing.T, path string) {
	t.Helper()
	dir, base := filepath.Split(path)
	writeFile(t, filepath.Join(dir, "."+base+".pawl", "x"), "")
}

// blockKept keeps a login from being kept.
func (b loanTest) blockKept(t *testing.T, login string) {
	t.Helper()
	id, err := b.lender.keepAside(note{Agent: "claude", File: b.loginFile()}, []byte(login), "why")
	if err != nil {
		t.Fatal(err)
	}
	removeFile(t, b.lender.keptPath(id))
	blockFile(t, b.lender.keptPath(id))
}

func TestNoUsersFileChangesWhereWhatItHeldCannotBeKept(t *testing.T) {
	for name, c := range map[string]struct {
		blocked string // what cannot be kept
		do      func(t *testing.T, b loanTest, loan *Loan) error
	}{
		"the login of a refused run": {renewedLogin, func(t *testing.T, b loanTest, loan *Loan) error {
			t.Helper()
			writeFile(t, b.copiedFile(), renewedLogin)
			_, err := loan.EndTurn(true)
			_, settled := loan.Settle(t.Context(), "the run was refused")
			return errors.Join(settled, markUnexpected(err))
		}},
		"the login that a good run replaces": {lentLogin, func(t *testing.T, b loanTest, loan *Loan) error {
			t.Helper()
			writeFile(t, b.copiedFile(), renewedLogin)
			_, err := loan.EndTurn(true)
			_, settled := loan.Settle(t.Context(), "")
			return errors.Join(settled, markUnexpected(err))
		}},
		"a login of an unknown form": {otherLogin, func(t *testing.T, b loanTest, loan *Loan) error {
			t.Helper()
			writeFile(t, b.copiedFile(), otherLogin)
			_, err := loan.EndTurn(true)
			return err
		}},
		"a login that a second turn spoiled": {renewedLogin, func(t *testing.T, b loanTest, loan *Loan) error {
			t.Helper()
			writeFile(t, b.copiedFile(), renewedLogin)
			_, err := loan.EndTurn(true)
			err = errors.Join(err, loan.LendAgain(t.Context(), b.inside))
			b.blockKept(t, newestLogin)
			writeFile(t, b.copiedFile(), newestLogin)
			_, spoiled := loan.EndTurn(false)
			return errors.Join(spoiled, markUnexpected(err))
		}},
		"the login that a swap replaces": {lentLogin, func(t *testing.T, b loanTest, loan *Loan) error {
			t.Helper()
			loan.Close()
			id, err := b.lender.keepAside(note{Agent: "claude", File: b.loginFile()}, []byte(newestLogin), "why")
			_, swapped := b.lender.SwapLogin(t.Context(), "claude", "test")
			if b.keptText(t, id) != newestLogin {
				t.Error("the login that was to be swapped is gone")
			}
			return errors.Join(swapped, markUnexpected(err))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLoanTest(t, lentLogin)
			loan := b.lend(t)
			b.blockKept(t, c.blocked)
			err := c.do(t, b, loan)
			if err == nil || errors.Is(err, errUnexpected) {
				t.Errorf("%v, want that the login cannot be kept", err)
			}
			if got := readFile(t, b.loginFile()); got != lentLogin {
				t.Errorf("the user's file is %s", got)
			}
		})
	}
}

var errUnexpected = errors.New("it failed too early")

func markUnexpected(err error) error {
	if err != nil {
		return errors.Join(errUnexpected, err)
	}
	return nil
}

func TestALoanWhoseNoteCannotBeWrittenIsAFault(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, b loanTest, loan *Loan, note string) error{
		"at the end of a turn": func(t *testing.T, b loanTest, loan *Loan, note string) error {
			t.Helper()
			blockFile(t, note)
			writeFile(t, b.copiedFile(), renewedLogin)
			_, err := loan.EndTurn(true)
			return err
		},
		"at the end of a turn that changed nothing": func(t *testing.T, _ loanTest, loan *Loan, note string) error {
			t.Helper()
			removeFile(t, note)
			writeFile(t, filepath.Join(note, "x"), "")
			_, err := loan.EndTurn(true)
			return err
		},
		"at the begin of another turn": func(t *testing.T, b loanTest, loan *Loan, note string) error {
			t.Helper()
			blockFile(t, note)
			return loan.LendAgain(t.Context(), diskHome(t.TempDir()))
		},
		"when another turn has no home": func(t *testing.T, b loanTest, loan *Loan, _ string) error {
			t.Helper()
			return loan.LendAgain(t.Context(), diskHome(b.loginFile()))
		},
		"when the login is due": func(t *testing.T, b loanTest, loan *Loan, note string) error {
			t.Helper()
			writeFile(t, b.copiedFile(), renewedLogin)
			_, err := loan.EndTurn(true)
			blockFile(t, note)
			_, settled := loan.Settle(t.Context(), "")
			return errors.Join(settled, markUnexpected(err))
		},
		"when it is to go": func(t *testing.T, _ loanTest, loan *Loan, note string) error {
			t.Helper()
			removeFile(t, note)
			writeFile(t, filepath.Join(note, "x"), "")
			return loan.Forget()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLoanTest(t, lentLogin)
			c := b.credential(t)
			loan, err := b.lender.Lend(t.Context(), c, b.inside)
			if err != nil {
				t.Fatal(err)
			}
			defer loan.Close()
			err = do(t, b, loan, b.lender.pathFor(c.File, ".lent"))
			if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Fix == "" || errors.Is(err, errUnexpected) {
				t.Errorf("%v, want a fault with its fix", err)
			}
			if got := readFile(t, b.loginFile()); got != lentLogin {
				t.Errorf("the user's file is %s", got)
			}
		})
	}
	for _, point := range []string{"credential.copy.before", "credential.copy.after"} {
		plan, err := fault.Parse(point + "=EIO")
		if err != nil {
			t.Fatal(err)
		}
		b := newLoanTest(t, lentLogin)
		if _, err := b.lender.Lend(fault.With(t.Context(), plan), b.credential(t), b.inside); err == nil {
			t.Errorf("lent in spite of an error at %s", point)
		}
	}
}

func TestWhatADeadRunLeftIsFetchedOnce(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	c := b.credential(t)
	leave := func(login string) {
		t.Helper()
		text, err := json.Marshal(note{Run: "rn_dead", Agent: "claude", From: c.From, File: c.File, Name: c.Name, Copy: []byte(lentLogin), Renewed: []byte(login)})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, b.lender.pathFor(c.File, ".lent"), string(text))
	}
	leave(renewedLogin)
	writeFile(t, filepath.Join(b.lender.Dir, "broken.lent"), "{")
	claim, err := b.lender.claimLogin(c)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := b.lender.FetchLeft(t.Context(), "rn_dead"); err != nil || len(back) > 0 {
		t.Errorf("Fetch = %+v, %v while another run has it", back, err)
	}
	claim.Close()
	if back, err := b.lender.FetchLeft(t.Context(), "rn_other"); err != nil || len(back) > 0 {
		t.Errorf("Fetch = %+v, %v of another run", back, err)
	}
	back, err := b.lender.FetchLeft(t.Context(), "rn_dead")
	if err != nil || len(back) != 1 || back[0].Back != Kept || b.keptText(t, back[0].Aside) != renewedLogin {
		t.Errorf("Fetch = %+v, %v, want that it is kept", back, err)
	}
	if back, err := b.lender.FetchLeft(t.Context(), "rn_dead"); err != nil || len(back) > 0 {
		t.Errorf("and once more: %+v, %v", back, err)
	}
	leave(newestLogin)
	b.blockKept(t, newestLogin)
	if back, err := b.lender.FetchLeft(t.Context(), "rn_dead"); err == nil {
		t.Errorf("Fetch = %+v though nothing can be kept", back)
	}
	lock := b.lender.pathFor(c.File, ".lock")
	removeFile(t, lock)
	writeFile(t, filepath.Join(lock, "x"), "")
	if back, err := b.lender.FetchLeft(t.Context(), "rn_dead"); err == nil || len(back) > 0 {
		t.Errorf("Fetch = %+v, %v though nothing can be claimed", back, err)
	}
}

func TestANoteOfAnotherLoginIsForgotten(t *testing.T) {
	for name, text := range map[string]string{"half a note": "{", "a note of another": `{"file":"/elsewhere","run":"rn_2"}`} {
		b := newLoanTest(t, lentLogin)
		c := b.credential(t)
		writeFile(t, b.lender.pathFor(c.File, ".lent"), text)
		if r, err := b.lender.fetchNote(t.Context(), c.File, ""); err != nil || r != (Returned{}) {
			t.Errorf("%s: %+v, %v, want nothing", name, r, err)
		}
		wantNothingLeft(t, b)
		writeFile(t, filepath.Join(b.lender.pathFor(c.File, ".lent"), "x"), "")
		if r, err := b.lender.fetchNote(t.Context(), c.File, ""); err == nil {
			t.Errorf("of a note that cannot be read came %+v", r)
		}
	}
}

func TestASwapLeavesEitherLoginInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, b *loanTest)
		name   string
		fails  bool
		file   string // afterwards
		kept   []string
	}{
		"of the login that is there":    {func(t *testing.T, b *loanTest) { t.Helper(); writeFile(t, b.loginFile(), renewedLogin) }, "claude", false, renewedLogin, nil},
		"where there is none":           {func(t *testing.T, b *loanTest) { t.Helper(); removeFile(t, b.loginFile()) }, "claude", false, renewedLogin, nil},
		"of one that is not kept":       {func(*testing.T, *loanTest) {}, "gemini", true, lentLogin, []string{renewedLogin}},
		"with a user's file of no use":  {func(t *testing.T, b *loanTest) { t.Helper(); blockFile(t, b.loginFile()) }, "claude", true, lentLogin, []string{lentLogin, renewedLogin}},
		"that nothing is in the way of": {func(*testing.T, *loanTest) {}, "claude", false, renewedLogin, []string{lentLogin}},
		"by its id":                     {func(*testing.T, *loanTest) {}, "", false, renewedLogin, []string{lentLogin}},
		"from a folder that is not one": {func(t *testing.T, b *loanTest) { t.Helper(); b.lender.Dir = b.loginFile() }, "claude", true, lentLogin, nil},
		"where nothing could be claimed": {func(t *testing.T, b *loanTest) {
			t.Helper()
			writeFile(t, filepath.Join(b.lender.pathFor(b.loginFile(), ".lock"), "x"), "")
		}, "claude", true, lentLogin, []string{renewedLogin}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLoanTest(t, lentLogin)
			id, err := b.lender.keepAside(note{Agent: "claude", File: b.loginFile()}, []byte(renewedLogin), "why")
			if err != nil {
				t.Fatal(err)
			}
			c.before(t, &b)
			if c.name == "" {
				c.name = id
			}
			s, err := b.lender.SwapLogin(t.Context(), c.name, "test")
			if missing := errors.Is(err, loop.ErrNotFound); missing != (c.name == "gemini") {
				t.Errorf("Swap = %v, want that the login is not found: %v", err, !missing)
			}
			if (err != nil) != c.fails || readFile(t, b.loginFile()) != c.file {
				t.Errorf("Swap = %+v, %v, and the file holds %s", s, err, readFile(t, b.loginFile()))
			}
			all, _ := b.lender.readKept("")
			var kept []string
			for _, k := range all {
				kept = append(kept, string(k.Login))
			}
			slices.Sort(kept)
			if !slices.Equal(kept, c.kept) {
				t.Errorf("kept are %q, want %q", kept, c.kept)
			}
		})
	}
	if k, err := (Lender{Dir: filepath.Join(t.TempDir(), "none")}).FindKept("claude"); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Find = %+v, %v without a folder, want that it is not found", k, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	if k, err := (Lender{Dir: file}).FindKept("claude"); err == nil || errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Find = %+v, %v in a file, want why it cannot be read", k, err)
	}
}

func TestWhatIsNoLoginIsNeverGivenBack(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	n := note{Run: "rn_1", Agent: "claude", File: b.loginFile(), Host: []byte(lentLogin), Renewed: []byte("no JSON"), Deserved: true}
	if r, err := b.lender.settleNote(t.Context(), n, ""); err == nil {
		t.Errorf("settle = %+v in the place of the login that was lent", r)
	}
	n.Host = []byte(otherLogin)
	if r, err := b.lender.settleNote(t.Context(), n, ""); err == nil {
		t.Errorf("settle = %+v in the place of another login", r)
	}
	n.Renewed = []byte(lentLogin)
	if r, err := b.lender.settleNote(t.Context(), n, ""); err != nil || r.Back != Unchanged || r.Why != "" || r.Aside != "" {
		t.Errorf("settle = %+v, %v of what the user's file holds already", r, err)
	}
	n.Renewed = nil
	if r, err := b.lender.settleNote(t.Context(), n, "the run was refused"); err != nil || r.Back != Unchanged || r.Why != "" || r.Aside != "" {
		t.Errorf("settle = %+v, %v of what nobody renewed", r, err)
	}
	if got := readFile(t, b.loginFile()); got != lentLogin {
		t.Errorf("the user's file is %s", got)
	}
}

func TestAFileThatAProgramRemovedIsNoRenewedLogin(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	removeFile(t, b.copiedFile())
	r, err := loan.EndTurn(true)
	if err != nil || r.Back != Refused || r.Aside != "" || !strings.HasPrefix(r.Why, "the program's file cannot be read: ") {
		t.Errorf("EndTurn = %+v, %v, want that nothing can be read", r, err)
	}
	wantNothingLeft(t, b)
	b.inside = diskHome(t.TempDir())
	b.lend(t) // Another run can have it.
}

// A driver that does not say which host renews its login.
func TestALoginIsNotReplacedWhereNobodyKnowsWhoRenewsIt(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	c := b.credential(t)
	c.Renews = nil
	loan, err := b.lender.Lend(t.Context(), c, b.inside)
	if err != nil {
		t.Fatal(err)
	}
	if loan.HasRenewed() {
		t.Error("it is renewed before the first turn")
	}
	writeFile(t, b.copiedFile(), renewedLogin)
	if r, err := loan.EndTurn(true); err != nil || r.Back != Pending || !loan.HasRenewed() {
		t.Errorf("EndTurn = %+v, %v, renewed: %v", r, err, loan.HasRenewed())
	}
	r, err := loan.Settle(t.Context(), "")
	if err != nil || r.Back != Kept || r.Why != "pawl does not know which host renews it" || readFile(t, b.loginFile()) != lentLogin {
		t.Errorf("Settle = %+v, %v, and the file holds %s", r, err, readFile(t, b.loginFile()))
	}
	if loan.Close(); loan.HasRenewed() {
		t.Error("it is renewed behind its end")
	}
}

func TestAFileThatCannotBeReplacedStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	writeFile(t, file, "old")
	if err := replaceFile(filepath.Join(file, "below"), []byte("new"), nil); err == nil {
		t.Error("a file was made below a file")
	}
	writeFile(t, filepath.Join(dir, ".file.pawl"), "what a process that was killed has left")
	if err := replaceFile(file, []byte("old"), nil); err != nil || readFile(t, file) != "old" {
		t.Errorf("replace = %v beside what another one left, and the file holds %q", err, readFile(t, file))
	}
	nowhere := filepath.Join(dir, "nowhere")
	if err := os.Symlink("nothing", nowhere); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(nowhere, "file"), []byte("new"), nil); err == nil {
		t.Error("a file was made in a folder that is a link to nothing")
	}
	stop := durable.WatchSyncs(func(f *os.File) error {
		if f.Name() == filepath.Join(dir, ".file.pawl") {
			return syscall.EIO
		}
		return nil
	})
	err := replaceFile(file, []byte("new"), nil)
	stop()
	if _, left := os.Lstat(filepath.Join(dir, ".file.pawl")); !errors.Is(err, syscall.EIO) || readFile(t, file) != "old" || left == nil {
		t.Errorf("replace = %v on a disk that fails, and the file holds %q", err, readFile(t, file))
	}
	blockFile(t, file)
	if err := replaceFile(file, []byte("new"), nil); err == nil || readFile(t, file) != "old" {
		t.Errorf("replace = %v, and the file holds %q", err, readFile(t, file))
	}
}
