package invariant

// node is a part of an expression.
type node interface {
	span() (from, to int) // in bytes, with the brackets around it
	widen(from, to int)
}

// place is where a part is in its expression.
type place struct{ from, to int }

func (p *place) span() (from, to int) { return p.from, p.to }
func (p *place) widen(from, to int)   { p.from, p.to = from, to }

type (
	// literalNode is a constant: nil, bool, int, float64 or string.
	literalNode struct {
		place
		value any
	}
	// nameNode is diff, files, iteration, tokens or base.
	nameNode struct {
		place
		word string
	}
	// currentNode is #, the value that a predicate is about.
	currentNode struct{ place }
	// unaryNode is not, - or +.
	unaryNode struct {
		place
		operator string
		of       node
	}
	binaryNode struct {
		place
		operator    string
		left, right node
		pattern     *pattern // of the operator matches, once it is checked
	}
	// memberNode is a value of an object or a list: of.key or of[key].
	memberNode struct {
		place
		of, key  node
		optional bool // written with ?.
	}
	// chainNode is what ?. ends early.
	chainNode struct {
		place
		of node
	}
	// callNode is a function with its arguments, json, yaml and output also of the base.
	callNode struct {
		place
		function  string
		ofBase    bool
		arguments []node
	}
	// choiceNode is a ? b : c.
	choiceNode struct {
		place
		condition, yes, no node
	}
	listNode struct {
		place
		values []node
	}
)
