package proc

// Tree runs programs so that nothing they start outlives them. The zero value
// is ready and uses the strongest method that this host allows.
type Tree struct {
	// Want insists on one method. Run refuses to start when the host does not
	// offer it. Empty: the strongest.
	Want Method
}
