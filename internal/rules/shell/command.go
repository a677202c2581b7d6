package shell

import "mvdan.cc/sh/v3/syntax"

// Commands are the simple commands of a line in its order, each without its
// assignments: one list of words, of which those that only the shell knows are
// empty. A line that the shell cannot read has none.
func Commands(line string) [][]string {
	file, err := Parse(line)
	if err != nil {
		return nil
	}
	var all [][]string
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			var words []string
			for _, w := range call.Args {
				words = append(words, Literal(w))
			}
			all = append(all, words)
		}
		return true
	})
	return all
}
