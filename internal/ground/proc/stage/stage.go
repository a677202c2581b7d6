// Package stage is a small supervisor process between pawl and a program whose
// whole process tree must be killable. Package proc re-executes the running binary
// with [Arg]; the init of this package then takes over and never returns. It is
// PID 1 of a new PID namespace, or a child subreaper if the host refuses
// namespaces. It starts the program, reaps orphans, and ends with the program's
// status.
//
// It is a leaf that imports only os, runtime, syscall and golang.org/x/sys/unix, so
// that its init runs before the slow ones of the other packages in the binary.
// Without the hidden argument the init does nothing. It never confines anything and
// never reads the environment: its order arrives on an inherited descriptor. The
// functions that read /proc and kill processes are exported for proc, and the
// encoding of orders for the stage of package sandbox.
package stage
