package proc

import "context"

// Plain runs programs with fork and exec only. The zero value is ready.
type Plain struct{}

// Run starts s and waits for its end. When it returns, the program and its process
// group are dead. A descendant that started a session of its own may live, and
// output that it holds open is read for a fifth of a second only. On Linux the
// program itself also dies with pawl.
//
// The error is nil for every program that started, however it ended. Otherwise
// the result is NotStarted, and the error matches exec.ErrNotFound,
// fs.ErrNotExist, fs.ErrPermission or the cause of ctx if one of them is the
// reason. A program in an uninterruptible system call delays the return until that
// call ends.
func (Plain) Run(ctx context.Context, s Spec) (Result, error) {
	return runProgram(ctx, s, resolveProgram, startPlain)
}
