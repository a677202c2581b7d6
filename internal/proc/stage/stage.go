// Package stage is the small supervisor that stands between pawl and a program
// whose whole process tree must be killable. Package proc re-executes the
// running binary with [Arg]; the init of this package then takes over and never
// returns: it is PID 1 of a new PID namespace, or a child subreaper where the
// host refuses namespaces, starts the program, reaps, and ends with its status.
//
// It is a leaf that imports only os, runtime, syscall and golang.org/x/sys/unix, so that
// its init runs before the expensive ones of the libraries linked beside it.
// Without the hidden argument the init does nothing. It confines nothing and
// reads no environment: what it has to do arrives on an inherited descriptor.
// The walk of /proc that the subreaper needs is exported for proc, and the form
// of orders for the other stage.
package stage
