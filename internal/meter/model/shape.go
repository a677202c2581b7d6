package model

// shape is one way of calling a model: what a request asks for, and where an
// answer says what it used.
type shape struct {
	most  func(top fields) int64                       // output tokens that the request allows
	lower func(top fields, most int64) bool            // allows no more than so many; false if it cannot be
	event func(t *tally, data []byte) (usageOnly bool) // reads an event of a stream
	whole func(t *tally, data []byte)                  // reads an answer that is no stream
}

// named is the field that caps the output, with its value, or what is usual.
func named(top fields, names ...string) int64 {
	if n, name := top.count(names...); name != "" {
		return n
	}
	return usualOutput
}
