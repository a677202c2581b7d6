package proc

import "context"

// Foreground runs a program that a person talks to, such as an editor: it keeps
// pawl's session, process group and terminal, so that it can read keys and gets
// the signals that the keyboard sends. The zero value is ready.
type Foreground struct{}

// Run is Plain.Run without a group of its own: only the program itself is
// killed, and what it started stays.
func (Foreground) Run(ctx context.Context, s Spec) (Result, error) {
	return runProgram(ctx, s, resolveProgram, startForeground)
}
