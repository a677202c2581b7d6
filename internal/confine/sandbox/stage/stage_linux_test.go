package stage

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is an order that uses every field.
var sample = Order{
	Cell: true, Host: "pawl", Ports: []int{3128, 3129}, User: 65534, Group: -1, Local: true,
	Mounts: []Mount{
		{Kind: Bind, From: "/a b", To: "/c\n", ReadOnly: true, Devices: true},
		{Kind: Overlay, To: "/t", Layers: []string{"/l", ""}, Upper: "/u", Work: "/w"},
		{Kind: Memory, To: "/m", Size: 1 << 40, Mode: 0o1777},
	},
	Rules: Rules{List: []string{"/"}, Read: []string{"/usr"}, Write: []string{"/t", "/m"}, Connect: []int{1}, Network: true},
}

func TestAnOrderArrivesAsItWasSent(t *testing.T) {
	encoded := sample.Encode()
	got, ok := decodeOrder(encoded)
	if diff := cmp.Diff(sample, got); diff != "" || !ok {
		t.Errorf("%v, (-want +got):\n%s", ok, diff)
	}
	for cut := range encoded {
		if _, ok := decodeOrder(encoded[:cut]); ok {
			t.Fatalf("%d of %d bytes were taken for an order", cut, len(encoded))
		}
	}
	if _, ok := decodeOrder(append(encoded, 0)); ok {
		t.Error("an order with something behind it was taken")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(Order{}.Encode())
	f.Add(sample.Encode())
	f.Add(append([]byte{1, 1, 1}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, ok := decodeOrder(b)
		if !ok {
			return
		}
		again, ok := decodeOrder(o.Encode())
		if diff := cmp.Diff(o, again); diff != "" || !ok {
			t.Errorf("%q reads as something that is not read back: %v\n%s", b, ok, diff)
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte{})
	f.Add(Message{Port: 3128}.encode())
	f.Add(Message{Step: "mount /t", Errno: syscall.EPERM}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := ParseMessage(b); ok && string(m.encode()) != string(b) {
			t.Errorf("%q reads as %+v, which is %q", b, m, m.encode())
		}
	})
}

func TestAStageThatIsStartedByHandStartsNothing(t *testing.T) {
	err := exec.Command("/proc/self/exe", Arg).Run()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() == 0 { //nolint:errorlint // Run returns it bare.
		t.Errorf("it ended with %v", err)
	}
}
