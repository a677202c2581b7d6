package stage

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheMemoryOfAProcessIsSeen(t *testing.T) {
	const size = 64 << 20
	before := ResidentMemory(os.Getpid())
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
	for name, weigh := range map[string]func(int) int64{"resident": ResidentMemory, "proportional": ProportionalMemory} {
		if got := weigh(os.Getpid()); got < size || got > before+2*size {
			t.Errorf("%s: %d bytes, want %d and a little", name, got, size)
		}
	}
	if got := ProportionalMemory(1 << 30); got != 0 {
		t.Errorf("a process that is not there has %d bytes", got)
	}
}

func TestKilobytesAreReadByName(t *testing.T) {
	const text = "Name:\tRssAnon: 9 kB\nRssAnon:\t   12 kB\nRssShmem:\t0 kB\nPss: 7 kB\nPss_Anon:  5 kB\nCut: 4"
	for name, want := range map[string]int64{
		"RssAnon:": 12 << 10, "RssShmem:": 0, "Pss:": 7 << 10, "Pss_Anon:": 5 << 10, "Cut:": 4 << 10, "No:": 0,
	} {
		if got := findKilobytes([]byte(text), name); got != want {
			t.Errorf("%s got %d, want %d", name, got, want)
		}
	}
}

func TestNumbersAreRead(t *testing.T) {
	if got, want := parseNumbers([]byte("1 22 333 ")), []int{1, 22, 333}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := parseNumbers(nil); len(got) > 0 {
		t.Errorf("nothing reads as %v", got)
	}
}

func TestDescendantsAreFoundBelowTheirRoot(t *testing.T) {
	if !listsChildren() {
		t.Log("the kernel does not list children: found by a walk of all processes")
	}
	cmd := exec.Command("/bin/sh", "-c", `sleep 300 & (sleep 300 & sleep 300 & echo; wait) & wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, p := range ReadDescendants(cmd.Process.Pid) {
			_, _ = p.Signal(unix.SIGKILL)
		}
		_, _ = cmd.Process.Kill(), cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got := ReadDescendants(cmd.Process.Pid); len(got) != 4 {
		t.Errorf("got %+v, want three sleeps and a shell", got)
	}
	if got := ReadDescendants(os.Getpid()); len(got) < 5 {
		t.Errorf("%d below this process, want more", len(got))
	}
	if got := CountThreads(); got < 6 {
		t.Errorf("%d processes on the host", got)
	}
}
