package proc

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/proc/stage"
)

// hostStage remembers the strongest kind of stage that worked here.
var hostStage struct {
	mu   sync.Mutex
	kind stage.Kind
}

// strongestKind tries the kinds in order until one works. Only an answer that will
// not change is remembered: a host that was short of memory or descriptors for
// a moment must not lose its namespaces for the life of the daemon.
func strongestKind() (stage.Kind, error) {
	hostStage.mu.Lock()
	defer hostStage.mu.Unlock()
	if hostStage.kind != 0 {
		return hostStage.kind, nil
	}
	kinds := []stage.Kind{stage.KindUser, stage.KindSubreaper}
	if os.Geteuid() == 0 {
		kinds = append([]stage.Kind{stage.KindPID}, kinds...)
	}
	var refused error
	for _, kind := range kinds {
		err := probe(kind)
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		if !isTemporary(refused) {
			hostStage.kind = kind
		}
		return kind, nil
	}
	return 0, refused
}

// probe starts a stage that sets itself up and exits.
func probe(kind stage.Kind) error { return tryStage(kind, program{argv: []string{"a probe"}}) }

// tryStage starts a stage with a program that ends by itself, and waits for it.
func tryStage(kind stage.Kind, p program) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := startStage(ctx, kind, p, [3]*os.File{null, null, null})
	if err != nil {
		return err
	}
	<-c.done()
	c.reap()
	return nil
}

// isTemporary reports whether err says something about this moment, not the host.
func isTemporary(err error) bool {
	for _, e := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
