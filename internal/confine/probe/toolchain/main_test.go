package toolchain

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("PAWL_TEST_DISK"); dir != "" { // The new roots of these tests have a /dev of their own.
		os.Setenv("TMPDIR", dir)
	}
	os.Exit(m.Run())
}
