package proc

import "context"

// Plain runs programs by fork and exec alone. The zero value is ready.
type Plain struct{}

// Run starts s and waits for its end. When it returns, the program and what is
// left of its process group are dead; a descendant that started a session of
// its own is not, and output that it holds open is read for a fifth of a second
// only. On Linux the program itself also dies with pawl.
//
// The error is nil for every program that started, however it ended. Otherwise
// the result is NotStarted, and the error matches exec.ErrNotFound,
// fs.ErrNotExist, fs.ErrPermission or the cause of ctx where one of them is the
// reason. A program in an uninterruptible system call delays the return until
// the kernel lets go of it.
func (Plain) Run(ctx context.Context, s Spec) (Result, error) {
	return runProgram(ctx, s, resolveProgram, startPlain)
}
