//go:build !linux

package mutant

func choose() (int, []byte) { return 0, nil }
