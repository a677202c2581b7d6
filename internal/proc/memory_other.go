//go:build !linux

package proc

// Memory is how many bytes of memory the machine has, 0 where that is not known.
func Memory() int64 { return 0 }
