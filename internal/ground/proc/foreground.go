package proc

import "context"

// Foreground runs a program that a person uses interactively, such as an editor: it
// keeps pawl's session, process group and terminal, so that it can read keys and
// gets the signals of the keyboard. The zero value is ready.
type Foreground struct{}

// Run is Plain.Run without a process group: it kills only the program itself and not
// what the program started.
func (Foreground) Run(ctx context.Context, s Spec) (Result, error) {
	return runProgram(ctx, s, resolveProgram, startForeground)
}
