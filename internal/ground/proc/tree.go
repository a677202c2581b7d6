package proc

// Tree runs programs so that nothing they start outlives them. The zero value
// is ready and uses the strongest method that this host allows.
type Tree struct {
	// Want requires a method. Run fails if the host does not offer it. Empty means
	// the strongest that the host offers.
	Want Method

	// Stage is the hidden argument of a stage other than proc's own (see
	// stage.Serve). It gets Spec.Extra, looks up the program and the directory, and
	// may confine what it starts. Empty means proc's own stage.
	Stage string

	// Cell starts the stage in new namespaces of all kinds except time and control
	// groups, with all capabilities in them. Nothing is mounted there: the Stage
	// must do that. It needs PIDNamespace.
	Cell bool
}
