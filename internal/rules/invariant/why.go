package invariant

import "fmt"

// why says why a part is not true: which values it compared.
func (e *evaluation) why(n node) (string, error) {
	switch n := n.(type) {
	case *binaryNode:
		switch n.operator {
		case "and", "&&":
			left, err := e.truth(n.left)
			if err != nil {
				return "", err
			}
			if left {
				return e.why(n.right)
			}
			return e.why(n.left)
		case "or", "||":
			left, err := e.why(n.left)
			if err != nil {
				return "", err
			}
			right, err := e.why(n.right)
			return left + "; and " + right, err
		case "??":
		default:
			return e.whyComparison(n, "must be "+n.operator)
		}
	case *unaryNode:
		if b, ok := n.of.(*binaryNode); ok && b.operator == "in" {
			return e.whyComparison(b, "must not be in")
		}
		return e.shown(n.of) + " is true, and must not be", nil
	case *choiceNode:
		yes, err := e.truth(n.condition)
		if err != nil {
			return "", err
		}
		chosen, because := n.no, " is false: "
		if yes {
			chosen, because = n.yes, " is true: "
		}
		words, err := e.why(chosen)
		return e.shown(n.condition) + because + words, err
	case *callNode:
		if n.function == "all" || n.function == "none" {
			return e.whyEach(n)
		}
	}
	return e.shown(n) + " is false", nil
}

// verbs are the operators that are read with another word than "be".
var verbs = map[string]string{
	"matches": "must match", "contains": "must contain", "startsWith": "must start with", "endsWith": "must end with", "in": "must be in",
}

// whyComparison says which values an operator got.
func (e *evaluation) whyComparison(n *binaryNode, must string) (string, error) {
	left, err := e.value(n.left)
	if err != nil {
		return "", err
	}
	right, err := e.value(n.right)
	if err != nil {
		return "", err
	}
	if verb, ok := verbs[n.operator]; ok && must == "must be "+n.operator {
		must = verb
	}
	words := e.shown(n.left)
	if !isConstant(n.left) {
		words += " is " + show(left)
	}
	if words += ", and " + must + " " + e.shown(n.right); !isConstant(n.right) {
		words += ", which is " + show(right)
	}
	return words, nil
}

// whyEach says for which value of a list a predicate was not as it has to be.
func (e *evaluation) whyEach(n *callNode) (words string, err error) {
	words = e.shown(n) + " is false"
	err = e.each(n, func(v, said any) (bool, error) {
		if said != (n.function == "none") {
			return true, nil
		}
		words += fmt.Sprintf(": # is %s", show(v))
		if n.function == "none" {
			return false, nil
		}
		e.items = append(e.items, v)
		defer func() { e.items = e.items[:len(e.items)-1] }()
		inner, err := e.why(n.arguments[1])
		words += ": " + inner
		return false, err
	})
	return words, err
}

func isConstant(n node) bool {
	_, ok := n.(*literalNode)
	return ok
}

// shown is a part of the expression as it is written.
func (e *evaluation) shown(n node) string {
	from, to := n.span()
	return shorten(e.program.text[from:to], 200)
}
