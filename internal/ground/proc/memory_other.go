//go:build !linux

package proc

// MachineMemory returns how many bytes of memory the machine has, 0 if unknown.
func MachineMemory() int64 { return 0 }
