//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// Test fails here: the self-test exists on Linux only, so that no tier of another
// system is known to confine.
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

// readHostFacts returns the facts about this host on which advice depends.
func readHostFacts(dir string) hostFacts {
	path, _ := binaryID()
	return hostFacts{OS: runtime.GOOS, UID: os.Geteuid(), Exe: path, Home: dir}
}
