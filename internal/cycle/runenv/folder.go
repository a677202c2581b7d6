package runenv

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
)

const (
	promptName = "prompt.md"
	reportName = "report.json"
)

// TurnDir holds the prompt and the report of one turn while the run lives.
func (h Host) TurnDir(id string, n int) string {
	return filepath.Join(h.RunDir(id), "turn-"+strconv.Itoa(n))
}

// PromptFile is where the prompt of a turn is.
func (h Host) PromptFile(id string, n int) string { return filepath.Join(h.TurnDir(id, n), promptName) }

// ReportFile is where the report of a turn is, if its agent wrote one.
func (h Host) ReportFile(id string, n int) string { return filepath.Join(h.TurnDir(id, n), reportName) }

// TurnBegan reports whether the folder of a turn was made, which is before the
// agent starts.
func (h Host) TurnBegan(id string, n int) bool {
	_, err := os.Lstat(h.TurnDir(id, n))
	return err == nil
}

// OpenTurn makes the folder of a turn, for the user that programs run as.
func (s Env) OpenTurn(n int) (string, error) {
	dir := s.TurnDir(s.ID, n)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, s.giveToPrograms(dir)
}

// FreshTurn makes the folder of a turn anew: what an earlier try or a gate left
// there is no report of this one, and may be links.
func (s Env) FreshTurn(n int) (string, error) {
	if err := sandbox.RemoveTree(s.TurnDir(s.ID, n)); err != nil {
		return "", err
	}
	return s.OpenTurn(n)
}

// SeenTurn is where programs see the folder of a turn.
func (s Env) SeenTurn(dir string) string {
	return sandbox.Bind{From: dir, To: turnSeen}.At(s.Tier())
}

// WritePrompt puts the prompt into the folder of a turn.
func (s Env) WritePrompt(n int, prompt string) error {
	name := s.PromptFile(s.ID, n)
	if err := os.WriteFile(name, []byte(prompt), 0o600); err != nil {
		return err
	}
	return s.giveToPrograms(name)
}

// Owner is the user and the group that programs run as, -1 and -1 if it is pawl's
// own.
func (s Env) Owner() (uid, gid int) {
	if uid, gid := s.Tier().Owner(); uid != os.Geteuid() {
		return uid, gid
	}
	return -1, -1
}

// giveToPrograms makes a file or folder belong to the user that programs run as.
func (s Env) giveToPrograms(name string) error {
	uid, gid := s.Owner()
	if uid < 0 {
		return nil
	}
	return os.Lchown(name, uid, gid)
}
