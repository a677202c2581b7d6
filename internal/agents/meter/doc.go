// Package meter is the only way out of a sandbox: a forward proxy that passes
// requests to the hosts that a definition lists, and to no others.
//
// A name is looked up once, its addresses are checked, and one of the checked
// addresses is dialed, so that no name leads to this machine, to its network or
// to a cloud's metadata service. A tunnel must begin with TLS for the very host
// that was requested. Bytes, connections and time are capped.
//
// It never decrypts TLS, never follows a redirect, never keeps a connection for a
// second request, and neither reads nor adds a credential. So within a tunnel it
// sees no method, no path and no second name: a program that may reach a host may
// ask it for anything that TLS hides, also for another site behind the same front
// end, and only the caps apply. Methods and paths can be limited for plain HTTP
// only.
//
// It looks up no name that is not listed. But below a listed "*.example.org", the
// names themselves are messages to the name servers of example.org.
package meter
