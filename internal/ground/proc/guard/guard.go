// Package guard is the process that ends programs when the pawl that runs them has
// stopped. Package proc re-executes the running binary with [Arg]; the init of this
// package then takes over and never returns.
//
// A pawl that is stopped, or gets no processor time, cannot see that it may have lost a
// run to another host. The guard can: it is told until when the programs of each run may
// live, and kills those that are over that time, by a clock that goes on while the machine
// sleeps. When the link to pawl ends, it kills what is left and ends.
//
// It is a leaf that imports only os, syscall, golang.org/x/sys/unix and the stage of
// package proc, so that its init runs before the slow ones of the other packages in the
// binary. Without the hidden argument the init does nothing. It knows nothing about leases
// and stores, and never extends a time by itself, except once for a pawl that was
// suspended together with it.
package guard
