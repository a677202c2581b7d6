// Package bench measures what the runtime costs, against the targets that
// docs/dev/architecture.md promises and beside a bare baseline of the same run.
//
// It holds no code of the product, asserts no time, and is run by `make bench`.
package bench
