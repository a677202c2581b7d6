// Package model is a sandbox's way to its model: an endpoint that takes the calls
// that an agent's program makes, adds the real credential and forwards them to
// the provider. A spend.Account funds each call before it is forwarded. What the
// call used is read from the answer while it passes, and a stream that exceeds
// its funds is cut.
//
// It forwards only model calls, token counts and lists of models, never a
// program's own credential, and nothing that modeltool denies. It follows no
// redirect, and never shows the real credential to the sandbox, not even when the
// provider repeats it.
package model
