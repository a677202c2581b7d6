// Package stage is the process between pawl and a confined program. It builds the
// root that the program sees, and drops everything that the program must not have
// from the thread that forks it. Package sandbox re-executes the running binary
// with [Arg]; the init of this package takes over and never returns. The stage of
// package proc does the rest: being PID 1 of the program's tree.
//
// It is a leaf that imports only os, syscall, golang.org/x/sys/unix and that
// stage, so that its init runs before the slow ones of the other packages in the
// binary. Without the hidden argument the init does nothing. It never decides what
// to mount, to permit and to limit: that arrives on an inherited descriptor. If a
// step fails, it ends before the program runs.
package stage
