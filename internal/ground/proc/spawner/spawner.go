// Package spawner is a small process that starts processes in new user namespaces for a
// large one. Package proc re-executes the running binary with [Arg]; the init of this
// package then takes over and never returns.
//
// Go cannot start such a process without a copy of the page tables of its parent, which
// takes a pawl of 100 MB some 20 ms, and makes each page that it writes afterwards a
// fault. What the spawner starts are children of the process that started the spawner:
// pawl waits for them and dies with them as if it had started them itself.
//
// It is a leaf that imports only os, syscall, golang.org/x/sys/unix and the stage of
// package proc, so that its init runs before the slow ones of the other packages in the
// binary. Without the hidden argument the init does nothing. It decides nothing.
package spawner
