// Package meter is the only way out of a sandbox: a forward proxy that lets
// requests pass to the hosts that a definition lists, and to nothing else.
//
// A name is looked up once, its addresses are checked, and one of the checked
// addresses is dialled, so that no name leads to this machine, to its network
// or to a cloud's metadata. A tunnel passes only if it begins with TLS for the
// very host that was asked for. Everything has a cap: bytes, connections, time.
//
// It never opens TLS, never follows a redirect, never keeps a connection for a
// second request, and neither reads nor adds a credential. So within a tunnel
// it sees no method, no path and no second name: whoever may reach a host may
// ask it for anything that TLS hides, also for another site behind the same
// front, and only the caps hold. Methods and paths can be limited for plain
// HTTP alone.
//
// It looks up no name that is not listed; but below a listed "*.example.org"
// names themselves are messages to the name servers of example.org.
package meter
