// Package model is the way of a sandbox to its model: an endpoint that takes the
// calls that an agent program makes, puts the real credential in and forwards them
// to the provider. What a call may spend is funded by a spend.Account before it is
// forwarded; what it used is read from the answer while it passes, and a stream
// that outgrows its funds is cut.
//
// It forwards only model calls, counts of tokens and lists of models, never what a
// program sent as a credential, and nothing that modeltool denies. It follows no
// redirect, and never shows the real credential to the sandbox, not even when the
// provider repeats it.
package model
