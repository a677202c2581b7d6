package modelapi

// Shape is one of the APIs: Messages, Chat, Responses or Generate.
type Shape struct {
	maxOutput   func(top fields) int64                       // output tokens that the request allows
	lowerOutput func(top fields, most int64) bool            // limits the output; false if the API cannot limit it so far
	readEvent   func(t *Tally, data []byte) (usageOnly bool) // reads an event of a stream
	readWhole   func(t *Tally, data []byte)                  // reads an answer that is not a stream
}

// usualOutput is how many tokens an answer may have if the request does not limit
// it.
const usualOutput = 32000

// outputCap returns the first of these fields that is set, or usualOutput.
func outputCap(top fields, names ...string) int64 {
	if n, name := top.count(names...); name != "" {
		return n
	}
	return usualOutput
}
