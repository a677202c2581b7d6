//go:build unix

package object

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func openThroughGit(t *testing.T, dir string) Store {
	t.Helper()
	return open(t, dir).throughGit()
}

func TestAHeldRepositoryStartsOneProcessForItsReaders(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "one"})
	count := &gittest.Counting{}
	r := openWith(t, count, dir).throughGit()
	held, release := r.Hold()
	id := r.Format.HashBytes([]byte("one"))
	for range 3 {
		b := base(t, held)
		_, err := held.Candidate(t.Context(), Draft{Base: b.Commit, When: when, Changes: []FileChange{{Path: "b", Mode: ModeFile, ID: id}}})
		must(t, err)
		wantContent(t, held, id, "one")
	}
	want := []string{"cat-file", "unpack-objects", "unpack-objects", "unpack-objects"}
	if d := cmp.Diff(want, count.Verbs); d != "" {
		t.Error(d)
	}
	release()
	wantContent(t, held, id, "one")
	if n := len(count.Verbs); n != len(want)+1 || held.sessions.idle != nil {
		t.Errorf("%d processes after the release, want one more and none that is kept", n-len(want))
	}
}

func wantContent(t *testing.T, r Store, id, content string) {
	t.Helper()
	blobs, err := r.Blobs(t.Context())
	must(t, err)
	if got, err := blobs.Read(id); err != nil || string(got) != content {
		t.Errorf("Read = %q, %v, want %q", got, err, content)
	}
	must(t, blobs.Close())
}

func TestReadersAtTheSameTimeDoNotShareAProcess(t *testing.T) {
	r := openThroughGit(t, gittest.Repo(t, map[string]string{"a": "one"}))
	held, release := r.Hold()
	first, err := held.Blobs(t.Context())
	must(t, err)
	second, err := held.Blobs(t.Context())
	must(t, err)
	for _, b := range []*Blobs{first, second} {
		_, err := b.Read(r.Format.HashBytes([]byte("one")))
		must(t, err)
	}
	if first.session == second.session {
		t.Error("two readers have the same process")
	}
	must(t, first.Close())
	must(t, second.Close())
	if _, err := first.Read(r.Format.HashBytes([]byte("one"))); err == nil {
		t.Error("a closed reader reads on through the process of the next one")
	}
	release()
}

func TestTheProcessOfAReaderThatWasCanceledIsNotReused(t *testing.T) {
	r := openThroughGit(t, gittest.Repo(t, map[string]string{"a": "one"}))
	held, release := r.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	blobs, err := held.Blobs(ctx)
	must(t, err)
	cancel()
	_ = blobs.Close()
	if held.sessions.idle != nil {
		t.Error("the process is kept")
	}
	wantContent(t, held, r.Format.HashBytes([]byte("one")), "one")
	release()
}

func TestARepositoryAtRestHasNoProcess(t *testing.T) {
	r := openThroughGit(t, gittest.Repo(t, map[string]string{"a": "one"}))
	r.Rest()
	held, release := r.Hold()
	id := r.Format.HashBytes([]byte("one"))
	for range 2 {
		wantContent(t, held, id, "one")
		kept := held.sessions.idle
		held.Rest()
		if _, err := kept.In.WriteString("flush\n"); err == nil || held.sessions.idle != nil {
			t.Errorf("the process is still spoken to: %v", err)
		}
	}
	release()
}

func TestAProcessThatDiedBetweenTwoReadersIsReplaced(t *testing.T) {
	r := openThroughGit(t, gittest.Repo(t, map[string]string{"a": "one"}))
	held, release := r.Hold()
	id := r.Format.HashBytes([]byte("one"))
	wantContent(t, held, id, "one")
	kept := held.sessions.idle
	kept.cancel(errClosed)
	err := <-kept.Ended
	kept.Ended <- err
	wantContent(t, held, id, "one")
	release()
}

func TestReadReportsWhatIsMissingAndStaysUsable(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "one", "b": ""})
	r := openThroughGit(t, dir)
	blobs, err := r.Blobs(t.Context())
	must(t, err)
	missing := strings.Repeat("0", 40)
	if _, err := blobs.Read(missing); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Read = %v, want not found", err)
	}
	if _, err := blobs.Read("HEAD"); err == nil {
		t.Error("an expression was read")
	}
	for content := range map[string]bool{"one": true, "": true} {
		if got, err := blobs.Read(r.Format.HashBytes([]byte(content))); err != nil || string(got) != content {
			t.Errorf("Read = %q, %v, want %q", got, err, content)
		}
	}
	must(t, blobs.Close())
	must(t, blobs.Close())
	if _, err := blobs.Read(missing); err == nil {
		t.Error("a closed session was read")
	}
}

func TestASessionWhoseProcessDiedSaysSo(t *testing.T) {
	r := openThroughGit(t, gittest.Repo(t, map[string]string{"a": "one"}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	blobs, err := r.Blobs(ctx)
	must(t, err)
	cancel()
	<-ctx.Done()
	for err == nil { // The process may answer before its end.
		_, err = blobs.Read(r.Format.HashBytes([]byte("one")))
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %v, want the reason for the end", err)
	}
	must(t, blobs.Close())
	if _, err := blobs.Read(r.Format.HashBytes([]byte("one"))); err == nil {
		t.Error("a dead session was read")
	}
}

// slow is a machine on which git needs long to end.
type slow struct{ gittest.Counting }

func (s *slow) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	res, err := s.Counting.Run(ctx, spec)
	if err != nil || res.Ended != proc.Exited {
		return res, err
	}
	<-ctx.Done()
	return proc.Result{Ended: proc.Canceled}, nil
}

func TestAProcessThatIsSlowToEndIsNoError(t *testing.T) {
	r := openWith(t, &slow{}, gittest.Repo(t, map[string]string{"a": "one"})).throughGit()
	wantContent(t, r, r.Format.HashBytes([]byte("one")), "one")
}
