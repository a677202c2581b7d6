// Package api is what can be asked of pawl from outside of its process: one table of
// verbs with their requests and results as data, carried out here or served as
// HTTP+JSON, with the store's feed as a stream of events.
//
// It decides nothing: each verb is one call of the package that has it. It knows nothing
// about sockets, terminals and who may connect.
package api

import "github.com/pawl-run/pawl/internal/verbs/verb"

// What those need who ask for the verbs of this package.
type (
	Caller   = verb.Caller
	None     = verb.None
	Progress = verb.Progress
)
