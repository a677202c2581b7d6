// Package api is what can be asked of pawl from outside of its process. It lists all verbs, those of the
// formats included, declares those of no format, and serves them as HTTP+JSON, with the store's feed as a
// stream of events.
//
// Apart from who may ask for what, it decides nothing: each verb is one call of the package that carries it
// out. It knows nothing about sockets, terminals and who may connect.
package api
