// Package agente2e takes every real agent program through a whole run in the
// full sandbox, against a scripted model on loopback, and writes down what it
// saw as docs/dev/agent-tests.md. Its tests have the build tag agents and need the
// programs that tools/agents.sh installs: make test-agents.
//
// It reaches no vendor, and nothing imports it.
package agente2e
