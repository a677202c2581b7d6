package sandbox

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// NoLayers says why the host cannot mount layers in the directory for trees, and what
// a person can do about it. Programs in tier full are confined all the same, but
// each tree has to be a complete copy, and caches that programs may add to start
// empty.
type NoLayers struct {
	Why string `json:"why"`
	Fix string `json:"fix"`
}

// WhyNoLayers returns nil if trees and caches below home can be layered, as far as
// Check has found out for this host, user and binary.
func WhyNoLayers(home string) *NoLayers {
	if found, ok := knownLayerless.Load(home); ok {
		return found.(*NoLayers) //nolint:forcetypeassert // Nothing else is stored.
	}
	passed := readPassed(filepath.Join(home, "sandbox.json"))
	if !isPassed(passed, Full, testIdentity()) {
		return nil
	}
	found := passed[Full].Result.NoLayers
	knownLayerless.Store(home, found)
	return found
}

// knownLayerless remembers the answers of WhyNoLayers, so that an answer does not
// change in a process whose binary is replaced.
var knownLayerless sync.Map // home → *NoLayers

// RefuseLayers makes this process believe that no layers can be mounted below home,
// until a self-test finds otherwise. Tests use it.
func RefuseLayers(home string) {
	knownLayerless.Store(home, &NoLayers{Why: "layers are refused in " + home, Fix: "do not refuse them"})
}

// explainNoLayers explains an error of Box.Run by which the kernel refused to mount
// an overlay with its upper directory below m.Home. It returns nil for any other
// error, including temporary ones such as a lack of memory.
func (m hostFacts) explainNoLayers(err error) *NoLayers {
	refused, ok := errors.AsType[*SetupError](err)
	if !ok || !strings.HasSuffix(refused.Step, " overlay") && !strings.HasSuffix(refused.Step, " of overlay") {
		return nil
	}
	switch {
	case errors.Is(err, syscall.ENODEV):
		return &NoLayers{
			Why: "this kernel has no overlay file system, or may not load the module for it",
			Fix: "sudo modprobe overlay && echo overlay | sudo tee /etc/modules-load.d/pawl.conf; in a container, on its host; then remove " + filepath.Join(m.Home, "sandbox.json"),
		}
	case errors.Is(err, syscall.ENOSPC), !isRefusal(err) && !errors.Is(err, syscall.EOPNOTSUPP):
		return nil
	}
	return &NoLayers{
		Why: "the file system of " + m.Home + " takes no layers (" + refused.Error() + ")",
		Fix: "set PAWL_HOME to a directory on ext4, xfs or btrfs, in a container to a volume",
	}
}
