//go:build unix

package fault

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// stopDelay is how long the signal may take to reach the calling thread.
const stopDelay = 50 * time.Millisecond

// stopSelf suspends the process as a closed lid or a Ctrl-Z would. It returns when
// somebody continues the process.
func stopSelf(context.Context) error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop this process: %w", err)
	}
	// The signal may reach another thread first. Nothing may run meanwhile.
	time.Sleep(stopDelay)
	return nil
}
