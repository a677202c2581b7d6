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

	"github.com/pawl-run/pawl/internal/durable"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
)

// block keeps replace from writing a file.
func block(t *testing.T, path string) {
	t.Helper()
	dir, base := filepath.Split(path)
	write(t, filepath.Join(dir, "."+base+".pawl", "x"), "")
}

// blockKept keeps a login from being kept.
func (b bench) blockKept(t *testing.T, login string) {
	t.Helper()
	id, err := b.lender.keepAside(note{Agent: "claude", File: b.file()}, []byte(login), "why")
	if err != nil {
		t.Fatal(err)
	}
	remove(t, b.lender.keptPath(id))
	block(t, b.lender.keptPath(id))
}

func TestNoUsersFileChangesWhereWhatItHeldCannotBeKept(t *testing.T) {
	for name, c := range map[string]struct {
		blocked string // what cannot be kept
		do      func(t *testing.T, b bench, loan *Loan) error
	}{
		"the login of a refused run": {renewedLogin, func(t *testing.T, b bench, loan *Loan) error {
			t.Helper()
			write(t, b.copied(), renewedLogin)
			_, err := loan.EndTurn(true)
			_, settled := loan.Settle(t.Context(), "the run was refused")
			return errors.Join(settled, unexpected(err))
		}},
		"the login that a good run replaces": {lentLogin, func(t *testing.T, b bench, loan *Loan) error {
			t.Helper()
			write(t, b.copied(), renewedLogin)
			_, err := loan.EndTurn(true)
			_, settled := loan.Settle(t.Context(), "")
			return errors.Join(settled, unexpected(err))
		}},
		"a login of an unknown form": {otherLogin, func(t *testing.T, b bench, loan *Loan) error {
			t.Helper()
			write(t, b.copied(), otherLogin)
			_, err := loan.EndTurn(true)
			return err
		}},
		"a login that a second turn spoiled": {renewedLogin, func(t *testing.T, b bench, loan *Loan) error {
			t.Helper()
			write(t, b.copied(), renewedLogin)
			_, err := loan.EndTurn(true)
			err = errors.Join(err, loan.LendAgain(t.Context(), b.inside))
			b.blockKept(t, newestLogin)
			write(t, b.copied(), newestLogin)
			_, spoiled := loan.EndTurn(false)
			return errors.Join(spoiled, unexpected(err))
		}},
		"the login that a swap replaces": {lentLogin, func(t *testing.T, b bench, loan *Loan) error {
			t.Helper()
			loan.Close()
			id, err := b.lender.keepAside(note{Agent: "claude", File: b.file()}, []byte(newestLogin), "why")
			_, swapped := b.lender.SwapLogin(t.Context(), "claude", "test")
			if b.kept(t, id) != newestLogin {
				t.Error("the login that was to be swapped is gone")
			}
			return errors.Join(swapped, unexpected(err))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, lentLogin)
			loan := b.lend(t)
			b.blockKept(t, c.blocked)
			err := c.do(t, b, loan)
			if err == nil || errors.Is(err, errUnexpected) {
				t.Errorf("%v, want that the login cannot be kept", err)
			}
			if got := read(t, b.file()); got != lentLogin {
				t.Errorf("the user's file is %s", got)
			}
		})
	}
}

var errUnexpected = errors.New("it failed too early")

func unexpected(err error) error {
	if err != nil {
		return errors.Join(errUnexpected, err)
	}
	return nil
}

func TestALoanWhoseNoteCannotBeWrittenIsAFault(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, b bench, loan *Loan, note string) error{
		"at the end of a turn": func(t *testing.T, b bench, loan *Loan, note string) error {
			t.Helper()
			block(t, note)
			write(t, b.copied(), renewedLogin)
			_, err := loan.EndTurn(true)
			return err
		},
		"at the end of a turn that changed nothing": func(t *testing.T, _ bench, loan *Loan, note string) error {
			t.Helper()
			remove(t, note)
			write(t, filepath.Join(note, "x"), "")
			_, err := loan.EndTurn(true)
			return err
		},
		"at the begin of another turn": func(t *testing.T, b bench, loan *Loan, note string) error {
			t.Helper()
			block(t, note)
			return loan.LendAgain(t.Context(), home(t.TempDir()))
		},
		"when another turn has no home": func(t *testing.T, b bench, loan *Loan, _ string) error {
			t.Helper()
			return loan.LendAgain(t.Context(), home(b.file()))
		},
		"when the login is due": func(t *testing.T, b bench, loan *Loan, note string) error {
			t.Helper()
			write(t, b.copied(), renewedLogin)
			_, err := loan.EndTurn(true)
			block(t, note)
			_, settled := loan.Settle(t.Context(), "")
			return errors.Join(settled, unexpected(err))
		},
		"when it is to go": func(t *testing.T, _ bench, loan *Loan, note string) error {
			t.Helper()
			remove(t, note)
			write(t, filepath.Join(note, "x"), "")
			return loan.Forget()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, lentLogin)
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
			if got := read(t, b.file()); got != lentLogin {
				t.Errorf("the user's file is %s", got)
			}
		})
	}
	for _, point := range []string{"credential.copy.before", "credential.copy.after"} {
		plan, err := fault.Parse(point + "=EIO")
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, lentLogin)
		if _, err := b.lender.Lend(fault.With(t.Context(), plan), b.credential(t), b.inside); err == nil {
			t.Errorf("lent in spite of an error at %s", point)
		}
	}
}

func TestWhatADeadRunLeftIsFetchedOnce(t *testing.T) {
	b := newBench(t, lentLogin)
	c := b.credential(t)
	leave := func(login string) {
		t.Helper()
		text, err := json.Marshal(note{Run: "rn_dead", Agent: "claude", From: c.From, File: c.File, Name: c.Name, Copy: []byte(lentLogin), Renewed: []byte(login)})
		if err != nil {
			t.Fatal(err)
		}
		write(t, b.lender.pathFor(c.File, ".lent"), string(text))
	}
	leave(renewedLogin)
	write(t, filepath.Join(b.lender.Dir, "broken.lent"), "{")
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
	if err != nil || len(back) != 1 || back[0].Back != Kept || b.kept(t, back[0].Aside) != renewedLogin {
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
	remove(t, lock)
	write(t, filepath.Join(lock, "x"), "")
	if back, err := b.lender.FetchLeft(t.Context(), "rn_dead"); err == nil || len(back) > 0 {
		t.Errorf("Fetch = %+v, %v though nothing can be claimed", back, err)
	}
}

func TestANoteOfAnotherLoginIsForgotten(t *testing.T) {
	for name, text := range map[string]string{"half a note": "{", "a note of another": `{"file":"/elsewhere","run":"rn_2"}`} {
		b := newBench(t, lentLogin)
		c := b.credential(t)
		write(t, b.lender.pathFor(c.File, ".lent"), text)
		if r, err := b.lender.fetchNote(t.Context(), c.File, ""); err != nil || r != (Returned{}) {
			t.Errorf("%s: %+v, %v, want nothing", name, r, err)
		}
		nothingLeft(t, b)
		write(t, filepath.Join(b.lender.pathFor(c.File, ".lent"), "x"), "")
		if r, err := b.lender.fetchNote(t.Context(), c.File, ""); err == nil {
			t.Errorf("of a note that cannot be read came %+v", r)
		}
	}
}

func TestASwapLeavesEitherLoginInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, b *bench)
		name   string
		fails  bool
		file   string // afterwards
		kept   []string
	}{
		"of the login that is there":    {func(t *testing.T, b *bench) { t.Helper(); write(t, b.file(), renewedLogin) }, "claude", false, renewedLogin, nil},
		"where there is none":           {func(t *testing.T, b *bench) { t.Helper(); remove(t, b.file()) }, "claude", false, renewedLogin, nil},
		"of one that is not kept":       {func(*testing.T, *bench) {}, "gemini", true, lentLogin, []string{renewedLogin}},
		"with a user's file of no use":  {func(t *testing.T, b *bench) { t.Helper(); block(t, b.file()) }, "claude", true, lentLogin, []string{lentLogin, renewedLogin}},
		"that nothing is in the way of": {func(*testing.T, *bench) {}, "claude", false, renewedLogin, []string{lentLogin}},
		"by its id":                     {func(*testing.T, *bench) {}, "", false, renewedLogin, []string{lentLogin}},
		"from a folder that is not one": {func(t *testing.T, b *bench) { t.Helper(); b.lender.Dir = b.file() }, "claude", true, lentLogin, nil},
		"where nothing could be claimed": {func(t *testing.T, b *bench) {
			t.Helper()
			write(t, filepath.Join(b.lender.pathFor(b.file(), ".lock"), "x"), "")
		}, "claude", true, lentLogin, []string{renewedLogin}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, lentLogin)
			id, err := b.lender.keepAside(note{Agent: "claude", File: b.file()}, []byte(renewedLogin), "why")
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
			if (err != nil) != c.fails || read(t, b.file()) != c.file {
				t.Errorf("Swap = %+v, %v, and the file holds %s", s, err, read(t, b.file()))
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
	write(t, file, "")
	if k, err := (Lender{Dir: file}).FindKept("claude"); err == nil || errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Find = %+v, %v in a file, want why it cannot be read", k, err)
	}
}

func TestWhatIsNoLoginIsNeverGivenBack(t *testing.T) {
	b := newBench(t, lentLogin)
	n := note{Run: "rn_1", Agent: "claude", File: b.file(), Host: []byte(lentLogin), Renewed: []byte("no JSON"), Deserved: true}
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
	if got := read(t, b.file()); got != lentLogin {
		t.Errorf("the user's file is %s", got)
	}
}

func TestAFileThatAProgramRemovedIsNoRenewedLogin(t *testing.T) {
	b := newBench(t, lentLogin)
	loan := b.lend(t)
	remove(t, b.copied())
	r, err := loan.EndTurn(true)
	if err != nil || r.Back != Refused || r.Aside != "" || !strings.HasPrefix(r.Why, "the program's file cannot be read: ") {
		t.Errorf("EndTurn = %+v, %v, want that nothing can be read", r, err)
	}
	nothingLeft(t, b)
	b.inside = home(t.TempDir())
	b.lend(t) // Another run can have it.
}

// A driver that does not say which host renews its login.
func TestALoginIsNotReplacedWhereNobodyKnowsWhoRenewsIt(t *testing.T) {
	b := newBench(t, lentLogin)
	c := b.credential(t)
	c.Renews = nil
	loan, err := b.lender.Lend(t.Context(), c, b.inside)
	if err != nil {
		t.Fatal(err)
	}
	if loan.HasRenewed() {
		t.Error("it is renewed before the first turn")
	}
	write(t, b.copied(), renewedLogin)
	if r, err := loan.EndTurn(true); err != nil || r.Back != Pending || !loan.HasRenewed() {
		t.Errorf("EndTurn = %+v, %v, renewed: %v", r, err, loan.HasRenewed())
	}
	r, err := loan.Settle(t.Context(), "")
	if err != nil || r.Back != Kept || r.Why != "pawl does not know which host renews it" || read(t, b.file()) != lentLogin {
		t.Errorf("Settle = %+v, %v, and the file holds %s", r, err, read(t, b.file()))
	}
	if loan.Close(); loan.HasRenewed() {
		t.Error("it is renewed behind its end")
	}
}

func TestAFileThatCannotBeReplacedStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "old")
	if err := replaceFile(filepath.Join(file, "below"), []byte("new"), nil); err == nil {
		t.Error("a file was made below a file")
	}
	write(t, filepath.Join(dir, ".file.pawl"), "what a process that was killed has left")
	if err := replaceFile(file, []byte("old"), nil); err != nil || read(t, file) != "old" {
		t.Errorf("replace = %v beside what another one left, and the file holds %q", err, read(t, file))
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
	if _, left := os.Lstat(filepath.Join(dir, ".file.pawl")); !errors.Is(err, syscall.EIO) || read(t, file) != "old" || left == nil {
		t.Errorf("replace = %v on a disk that fails, and the file holds %q", err, read(t, file))
	}
	block(t, file)
	if err := replaceFile(file, []byte("new"), nil); err == nil || read(t, file) != "old" {
		t.Errorf("replace = %v, and the file holds %q", err, read(t, file))
	}
}
