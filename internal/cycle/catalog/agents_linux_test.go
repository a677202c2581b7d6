package catalog_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openedIn returns which files in the folders are opened while fn is called.
func openedIn(t *testing.T, folders []string, fn func()) (names []string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, folder := range folders {
		if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
	}
	fn()
	buf := make([]byte, 1<<20)
	n, err := unix.Read(fd, buf)
	if err != nil && err != unix.EAGAIN {
		t.Fatal(err)
	}
	for at := 0; at < n; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
		at += unix.SizeofInotifyEvent
		names = append(names, strings.TrimRight(string(buf[at:at+int(e.Len)]), "\x00"))
		at += int(e.Len)
	}
	slices.Sort(names)
	return names
}

func TestFindingOneAgentOpensItsFilesAndNoOthersHoweverManyThereAre(t *testing.T) {
	for _, count := range []int{1, 2000} {
		r := newRig(t, "")
		ids := manyAgents(count)
		r.agents(ids...)
		r.write("org.yaml", "chief: "+ids[0]+"\ndepartments:\n  all:\n    members:\n    - "+strings.Join(ids, "\n    - ")+"\n")
		folders := []string{r.ws.Root, filepath.Join(r.ws.Root, "agents")}
		for _, id := range ids {
			folders = append(folders, filepath.Join(r.ws.Root, "agents", id))
		}
		opened := openedIn(t, folders, func() {
			if e, err := r.Lookup(t.Context(), ids[count/2]); err != nil || e.Problem != nil {
				t.Fatalf("lookup: %v, %v", e.Problem, err)
			}
		})
		if want := []string{"LOOP.md", "org.yaml"}; !slices.Equal(opened, want) {
			t.Errorf("of %d agents: %q are opened, want %q", count, opened, want)
		}
		opened = openedIn(t, folders, func() {
			if _, err := r.Lookup(t.Context(), ids[count/2]); err != nil {
				t.Fatal(err)
			}
		})
		if len(opened) > 0 {
			t.Errorf("of %d agents: %q are opened again", count, opened)
		}
	}
}
