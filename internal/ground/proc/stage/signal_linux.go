package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigIgn is SIG_IGN in the kernel's sigaction.
const sigIgn = 1

// action is the kernel's struct sigaction, handler first, with room to spare.
type action [8]uintptr

// setSigaction makes the system call itself, because importing os/signal would delay
// the init of this package. A nil set only reads into old.
func setSigaction(sig syscall.Signal, set, old *action) {
	const maskSize = 8
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), maskSize, 0, 0)
}

// defaultSignals resets ignored and blocked signals, which survive exec: a shell or
// nohup may have made pawl ignore some.
func defaultSignals() {
	const last = 64
	for sig := syscall.Signal(1); sig <= last; sig++ {
		var old action
		setSigaction(sig, nil, &old)
		if old[0] == sigIgn {
			setSigaction(sig, &action{}, nil)
		}
	}
	var none unix.Sigset_t
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil)
}

// IgnoreSignals makes this process, and what it executes, ignore signals.
func IgnoreSignals(signals ...syscall.Signal) {
	for _, sig := range signals {
		setSigaction(sig, &action{sigIgn}, nil)
	}
}

// sealFrom marks every descriptor from first on close-on-exec. Go does that for those
// that it opens, but not for those that the process inherited.
func sealFrom(first int) {
	const highest = 1<<31 - 1
	if unix.CloseRange(uint(first), highest, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Linux before 5.11 has no such call.
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	for fd := first; uint64(fd) < min(limit.Cur, 1<<16); fd++ {
		unix.CloseOnExec(fd)
	}
}

// SealDescriptors marks every descriptor beyond standard error close-on-exec. It is
// for a process that starts programs without a stage.
func SealDescriptors() { sealFrom(OrderFD) }
