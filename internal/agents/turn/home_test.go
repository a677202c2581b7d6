package turn_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/turn"
)

func home(t *testing.T) (*turn.Home, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	h, err := turn.OpenHome(dir, "/home/agent", -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, dir
}

func TestAFileOfAHomeIsItsUsersAlone(t *testing.T) {
	h, dir := home(t)
	if err := h.Write(".agent/deep/settings.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{".agent": 0o700 | os.ModeDir, ".agent/deep/settings.json": 0o600} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info, err, want)
		}
	}
	got, err := h.Read(".agent/deep/settings.json")
	if err != nil || string(got) != "{}" || h.Path() != "/home/agent" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestNothingThatAProgramMakesOfItsHomeLeadsOut(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ link, to, file string }{
		"a linked file":           {"settings.json", secret, "settings.json"},
		"a linked folder":         {".agent", outside, ".agent/secret"},
		"a link that goes up":     {".agent", "../../..", ".agent/" + filepath.Base(outside)},
		"a link to nothing yet":   {"settings.json", filepath.Join(outside, "new"), "settings.json"},
		"a link through a folder": {"a", "..", "a/../../secret"},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := home(t)
			if err := os.Symlink(c.to, filepath.Join(dir, c.link)); err != nil {
				t.Fatal(err)
			}
			if got, err := h.Read(c.file); err == nil {
				t.Errorf("read %q", got)
			}
			_ = h.Write(c.file, []byte("written")) // It may replace the link; it must not follow it.
			entries, err := os.ReadDir(outside)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(secret); err != nil || string(got) != "of the host" || len(entries) != 1 {
				t.Errorf("outside there is %v, the secret is %q, %v", entries, got, err)
			}
		})
	}
}

func TestOnlyConversationsOutliveATurn(t *testing.T) {
	h, dir := home(t)
	for _, name := range []string{".agent/projects/a/1.jsonl", ".agent/settings.json", ".agent/projects2/x", ".profile", "bin/evil"} {
		if err := h.Write(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(dir, ".agent", "link")); err != nil {
		t.Fatal(err)
	}
	if err := h.KeepFolders([]string{".agent/projects"}); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, path[len(dir)+1:])
		}
		return err
	})
	if err != nil || !slices.Equal(left, []string{".agent/projects/a/1.jsonl"}) {
		t.Errorf("left are %q, %v", left, err)
	}
}

func TestAConversationsFolderThatIsALinkIsRemoved(t *testing.T) {
	h, dir := home(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "projects")); err != nil {
		t.Fatal(err)
	}
	if err := h.KeepFolders([]string{"projects"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "projects")); err == nil {
		t.Error("the link is still there")
	}
}
