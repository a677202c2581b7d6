package boot_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boot"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
)

// An empty path would stand for the whole workspace.
func TestAWorkspaceWithoutALinkHasNoFilesOfItsMemory(t *testing.T) {
	if paths := boot.Format(bootrepo.Cache{}).Memory(t.TempDir()); paths != nil {
		t.Errorf("Memory = %q, want none", paths)
	}
}
