// Package stage is what stands between pawl and a confined program: it builds
// the root that the program sees, and gives up on the thread that forks it
// everything that the program must not do. Package sandbox re-executes the
// running binary with [Arg]; the init of this package takes over and never
// returns. What it is beyond that, PID 1 of the program's tree, is package
// proc's stage.
//
// It is a leaf that imports only os, syscall, golang.org/x/sys/unix and that
// stage, so that its init runs before the expensive ones of the libraries
// linked beside it. Without the hidden argument the init does nothing. It
// decides nothing: what to mount, to permit and to limit arrives on an
// inherited descriptor, and a step that cannot be done ends it before the
// program runs.
package stage
