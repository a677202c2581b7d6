package credential

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestALoginIsCopiedForTheProgramAlone(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	b.lend(t)
	if got := readFile(t, b.copiedFile()); got != lentLogin {
		t.Errorf("the copy is %s", got)
	}
	if info, err := os.Stat(b.copiedFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy is %v, %v", info.Mode(), err)
	}
}

func TestALoginIsLentToOneRunAtATime(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	other := b.lender
	other.Holder = loop.Holder{PID: 1, Host: "elsewhere"}
	_, err := other.Lend(t.Context(), b.credential(t), diskHome(t.TempDir()))
	held, ok := errors.AsType[*loop.HeldError](err)
	if !ok || held.Holder != b.lender.Holder || !strings.Contains(err.Error(), "the login ~/.claude/.credentials.json is held by process 4711 on here") {
		t.Fatalf("Lend = %v, want who holds it", err)
	}
	if _, err := loan.Return(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := other.Lend(t.Context(), b.credential(t), diskHome(t.TempDir()))
	if err != nil {
		t.Fatalf("Lend after Return = %v", err)
	}
	if _, err := again.Return(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAClaimNamesItsNewestHolderAlone(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	long := b.lender
	long.Holder = loop.Holder{PID: 1234567, Host: strings.Repeat("long", 20)}
	loan, err := long.Lend(t.Context(), b.credential(t), diskHome(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loan.Return(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.lend(t)
	_, err = long.Lend(t.Context(), b.credential(t), diskHome(t.TempDir()))
	if held, ok := errors.AsType[*loop.HeldError](err); !ok || held.Holder != b.lender.Holder {
		t.Errorf("Lend = %v, want that %+v holds it", err, b.lender.Holder)
	}
}

func TestALoginThatARunHasIsNotSwapped(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	if _, err := b.lender.keepAside(note{Agent: "claude", File: b.loginFile()}, []byte(renewedLogin), "why"); err != nil {
		t.Fatal(err)
	}
	b.lend(t)
	_, err := b.lender.SwapLogin(t.Context(), "claude", "test")
	if _, held := errors.AsType[*loop.HeldError](err); !held || readFile(t, b.loginFile()) != lentLogin {
		t.Errorf("Swap = %v, and the file holds %s; want that it is held", err, readFile(t, b.loginFile()))
	}
}

// If the note of a loan cannot be written, the login must not be lent: nobody would
// know of a run that died with it.
func TestALoginIsNotLentWithoutANoteOfIt(t *testing.T) {
	for name, block := range map[string]func(l Lender, file string) string{
		"the claim cannot be made":                func(l Lender, file string) string { return filepath.Join(l.pathFor(file, ".lock"), "x") },
		"what an earlier run left cannot be read": func(l Lender, file string) string { return filepath.Join(l.pathFor(file, ".lent"), "x") },
		"the note cannot be written": func(l Lender, file string) string {
			dir, base := filepath.Split(l.pathFor(file, ".lent"))
			return filepath.Join(dir, "."+base+".pawl", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLoanTest(t, lentLogin)
			c := b.credential(t)
			writeFile(t, block(b.lender, c.File), "")
			loan, err := b.lender.Lend(t.Context(), c, b.inside)
			if _, ok := errors.AsType[*loop.Fault](err); !ok {
				t.Errorf("Lend = %+v, %v, want a fault", loan, err)
			}
			if _, err := os.Lstat(b.copiedFile()); err == nil {
				t.Error("the login was copied")
			}
		})
	}
}

func TestTwoLoginsAreLentAtTheSameTime(t *testing.T) {
	b, other := newLoanTest(t, lentLogin), newLoanTest(t, lentLogin)
	other.lender.Dir = b.lender.Dir
	b.lend(t)
	other.lend(t)
}

func TestWhatIsNoLoginIsNotLent(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	c := b.credential(t)
	if err := os.Remove(b.loginFile()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Credential{"a key": {Auth: loop.AuthInject}, "a file that is gone": c, "none": {}, "a token": {Auth: loop.AuthLend}} {
		t.Run(name, func(t *testing.T) {
			_, err := b.lender.Lend(t.Context(), c, b.inside)
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || c.File == "" && f.Why != "it is not a login" {
				t.Errorf("Lend = %v, want a fault", err)
			}
		})
	}
	writeFile(t, b.loginFile(), lentLogin)
	b.lend(t)
}

func TestLoginsOfMCPServersAreNotLentAndNotLost(t *testing.T) {
	const servers = `"mcpOAuth":{"docs|1":{"accessToken":"mcp-secret-token","serverUrl":"https://docs.example.com"}},`
	b := newLoanTest(t, "{"+servers+lentLogin[1:])
	loan := b.lend(t)
	if got := readFile(t, b.copiedFile()); strings.Contains(got, "mcp") || !strings.Contains(got, "sk-ant-oat01-first-access") {
		t.Errorf("the copy is %s", got)
	}
	writeFile(t, b.copiedFile(), renewedLogin)
	if r, err := loan.Return(t.Context()); err != nil || r.Back != Renewed {
		t.Fatalf("Return = %+v, %v", r, err)
	}
	got := readFile(t, b.loginFile())
	for _, part := range []string{"mcp-secret-token", "https://docs.example.com", "sk-ant-oat01-second-access", "1795296000000"} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
}

func TestAttack077TokensOfALentLoginAreHidden(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	hide := redact.New(loan.Secrets()...)
	if refused := hide.Refused(); len(refused) != 0 {
		t.Errorf("the redactor refuses %v", refused)
	}
	for _, token := range []string{"sk-ant-oat01-first-access", "sk-ant-ort01-first-refresh", "sk-ant-oat01-second-access", "sk-ant-ort01-second-refresh"} {
		if got := hide.String("the token is " + token + "."); strings.Contains(got, token) {
			t.Errorf("%s is written", got)
		}
	}
	before := len(loan.Secrets())
	writeFile(t, b.copiedFile(), "token: sk-ant-oat01-in-a-file-that-is-no-login\n"+strings.Repeat("#", mostLogin))
	if after := loan.Secrets(); len(after) != before/2 {
		t.Errorf("%d secrets with a file that is too large to be a login, want the %d that were lent", len(after), before/2)
	}
	if got := hide.String("user:inference user:profile max 11111111-2222"); strings.Contains(got, "redacted") {
		t.Errorf("ordinary words are hidden: %s", got)
	}
}

func TestSecretsAreFoundInEveryFormOfALogin(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"codex":    {`{"OPENAI_API_KEY":null,"tokens":{"id_token":"header.claims.sign","access_token":"access-0123","refresh_token":"rt_0123456","account_id":"acc-1-2-3-4"},"last_refresh":"2026-11-20T12:00:00Z"}`, []string{"access-0123", "header.claims.sign", "rt_0123456"}},
		"opencode": {`{"anthropic":{"type":"oauth","refresh":"refresh-01","access":"access-01","expires":1795267200000},"groq":{"type":"api","key":"gsk_0123456"}}`, []string{"access-01", "refresh-01", "gsk_0123456"}},
		"goose":    {"OPENAI_API_KEY: sk-0123456\nOTHER: no-secret-1\n", []string{"sk-0123456"}},
		"a .env":   {"# key\nexport GEMINI_API_KEY=\"AIza0123456\"\nGEMINI_MODEL=gemini-2.5-pro\n", []string{"AIza0123456"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range secretsIn([]byte(c.text)) {
				got = append(got, s.Value)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("secrets = %q, want %q", got, c.want)
			}
		})
	}
}

// TestALoginOutlivesAProcessThatIsKilled kills a run with a login at every
// point, after its program renewed it, and checks what the next one finds.
func TestALoginOutlivesAProcessThatIsKilled(t *testing.T) {
	if user := os.Getenv("LEND_FROM"); user != "" {
		runAndDie(t, user)
		return
	}
	for point, c := range map[string]struct{ lost, deserved bool }{
		"credential.copy.before": {lost: true}, "credential.copy.after": {}, // there is nothing renewed yet
		"": {}, "credential.back.before": {deserved: true}, "credential.back.after": {deserved: true},
	} {
		t.Run("at "+point, func(t *testing.T) {
			b := newLoanTest(t, lentLogin)
			killAtPoint(t, b, point)
			next := b.lender
			next.Run, next.Reopen = "rn_2", func(run, chain string) (agent.Home, error) {
				if run != "rn_1" || chain != "lp_1" {
					t.Errorf("the home of run %s of %s is opened", run, chain)
				}
				return b.inside, nil
			}
			if !c.lost {
				// Killed right after the copy, the program was never started; that its
				// file is there lets it be renewed here.
				writeFile(t, b.copiedFile(), renewedLogin)
			}
			fresh := diskHome(t.TempDir())
			loan, err := next.Lend(t.Context(), b.credential(t), fresh)
			if err != nil {
				t.Fatal(err)
			}
			// Only if a run came to its end is it known whether it was refused.
			want, kept := lentLogin, renewedLogin
			switch {
			case c.deserved:
				want, kept = renewedLogin, lentLogin
			case c.lost:
				kept = ""
			}
			if got := readFile(t, b.loginFile()); got != want {
				t.Errorf("after %+v the user's file is %s", loan.Before, got)
			}
			if list, err := b.lender.readKept("claude"); err != nil || kept == "" != (len(list) == 0) || kept != "" && string(list[0].Login) != kept {
				t.Errorf("kept are %+v, %v, want %q", list, err, kept)
			}
			b.keptText(t, loan.Before.Aside) // It exists.
			if there := loan.Before.Back == Renewed && loan.Before.Why == "run rn_1 renewed it"; there != (point == "credential.back.after") {
				t.Errorf("of the dead run came back %+v", loan.Before)
			}
			if got, _ := fresh.Read(".claude/.credentials.json"); string(got) != want {
				t.Errorf("what is lent next is %s", got)
			}
			if r, err := loan.Return(t.Context()); err != nil || r.Back != Unchanged {
				t.Errorf("Return = %+v, %v", r, err)
			}
			wantNothingLeft(t, b)
		})
	}
}

// killAtPoint runs the test in a process that dies at a point, or with its loan.
func killAtPoint(t *testing.T, b loanTest, point string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestALoginOutlivesAProcessThatIsKilled$")
	cmd.Env = append(os.Environ(), "LEND_FROM="+b.user, "LEND_TO="+string(b.inside), "LEND_DIR="+b.lender.Dir)
	if point != "" {
		cmd.Env = append(cmd.Env, "PAWL_FAULTS=1", "PAWL_CRASH_AT="+point)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "renewed" {
			break
		}
		if strings.Contains(lines.Text(), "FAIL") {
			t.Error(lines.Text())
		}
	}
	if point == "" {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the process ended with %v, not by a signal", err)
	}
}

func runAndDie(t *testing.T, user string) {
	t.Helper()
	b := loanTest{user: user, inside: diskHome(os.Getenv("LEND_TO")), lender: Lender{Dir: os.Getenv("LEND_DIR"), Run: "rn_1", Chain: "lp_1"}}
	loan, err := b.lender.Lend(t.Context(), b.credential(t), b.inside)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, b.copiedFile(), renewedLogin)
	if os.Getenv("PAWL_CRASH_AT") == "" {
		os.Stdout.WriteString("renewed\n")
		time.Sleep(time.Minute) // A select without cases would be a deadlock, and end it.
	}
	_, err = loan.Return(t.Context())
	t.Fatalf("it lives, after %v", err)
}

// wantNothingLeft checks that there are no files that only a loan may have.
func wantNothingLeft(t *testing.T, b loanTest) {
	t.Helper()
	for _, dir := range []string{b.lender.Dir, filepath.Dir(b.loginFile())} {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if name := e.Name(); name != ".credentials.json" && !strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".kept") {
				t.Errorf("%s lies in %s", name, dir)
			}
		}
	}
}

func TestAHomeThatIsGoneEndsTheLoanOfADeadRun(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	killAtPoint(t, b, "")
	b.lender.Reopen = func(string, string) (agent.Home, error) { return nil, os.ErrNotExist }
	loan := b.lend(t)
	if loan.Before.Aside != "" || loan.Before.Back != Kept || !strings.Contains(loan.Before.Why, "rn_1") {
		t.Errorf("of the dead run came back %+v", loan.Before)
	}
	if got := readFile(t, b.copiedFile()); got != lentLogin {
		t.Errorf("the copy is %s", got)
	}
}

func TestALoginThatCannotBeStoredIsGivenBackByTheNextRun(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	plan, err := fault.Parse("credential.back.before=ENOSPC")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := loan.Return(fault.With(t.Context(), plan)); err == nil {
		t.Fatalf("Return = %+v on a full disk", r)
	}
	if got := readFile(t, b.loginFile()); got != lentLogin {
		t.Errorf("the user's file is %s", got)
	}
	b.lender.Reopen = func(string, string) (agent.Home, error) { return b.inside, nil }
	next, err := b.lender.Lend(t.Context(), b.credential(t), diskHome(t.TempDir()))
	if err != nil || next.Before.Back != Renewed {
		t.Fatalf("Lend = %+v, %v", next, err)
	}
	if got := readFile(t, b.loginFile()); got != renewedLogin {
		t.Errorf("the user's file is %s", got)
	}
	if _, err := next.Return(t.Context()); err != nil {
		t.Error(err)
	}
}
