package loop

// ListedTask is a task as a file of one format lists it, for another that takes it over.
type ListedTask struct {
	Key       string // unique in the file
	Line      int    // of the file, from 1
	Title     string
	Text      string
	State     StepState // empty: pawl does not know Status, or the task cannot be read
	Status    string    // as written
	Priority  string    // critical, high, medium, low or empty
	Tags      []string
	Number    int    // its place among the others; may be negative
	From      string // who asks for it; may be empty
	DependsOn []string

	BlockedReason, Result string // may be empty
}
