package proc

// Tree runs programs so that nothing they start outlives them. The zero value
// is ready and uses the strongest method that this host allows.
type Tree struct {
	// Want insists on one method. Run refuses to start when the host does not
	// offer it. Empty: the strongest.
	Want Method

	// Stage is the hidden argument of a stage other than proc's own (see
	// stage.Serve), which gets Spec.Extra for itself, looks up program and
	// directory, and may confine what it starts. Empty: proc's own.
	Stage string

	// Cell puts the stage into new namespaces of every kind but time and control
	// groups, with all capabilities in them and nothing mounted anew. It needs
	// PIDNamespace and a Stage that makes something of it.
	Cell bool
}
