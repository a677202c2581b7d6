package stage

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_X86_64
	otherNumbers = 0x40000000 // x32: the same calls under other numbers
)
