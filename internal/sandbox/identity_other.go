//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// Test is made on Linux only so far: a tier of another system cannot be shown
// to hold, and is refused.
func Test(_ context.Context, tier Tier, _ string) (Result, error) {
	r := Result{Tier: tier, Kernel: runtime.GOOS}
	if tier == None || tier == External {
		return r, nil
	}
	return r, fmt.Errorf("test the sandbox: %w", Box{Tier: tier}.unsupportedTierError())
}

func testIdentity() string {
	_, id := binaryID()
	if id == "" {
		return ""
	}
	return runtime.GOOS + " " + strconv.Itoa(os.Geteuid()) + " " + id
}

func inodeNumber(any) uint64 { return 0 }

// readHostFacts describes this machine as far as advice depends on it.
func readHostFacts(dir string) hostFacts {
	path, _ := binaryID()
	return hostFacts{OS: runtime.GOOS, UID: os.Geteuid(), Exe: path, Home: dir}
}
