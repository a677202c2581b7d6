package invariant

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// evaluation is one evaluation of a program.
//
// Values are nil, bool, int, float64, string, []any and map[string]any.
type evaluation struct {
	ctx     context.Context
	in      Inputs
	program *Program
	steps   int // that are left
	cells   int // that may still be made
	asked   int // steps at which the context was asked
	known   map[source]any
	items   []any // what # is in the predicates around a part, the innermost last
	bytes   int   // of files that were read
}

var errAbsent = errors.New("absent") // ends a chain with ?.

// spend counts steps.
func (e *evaluation) spend(n int) error {
	if e.steps -= n; e.steps < 0 {
		return errors.New("it takes too many steps")
	}
	const often = 1 << 14
	if e.asked-e.steps > often || e.asked == 0 {
		e.asked = e.steps
		return e.ctx.Err()
	}
	return nil
}

// allot counts what is kept in memory.
func (e *evaluation) allot(n int) error {
	if e.cells -= n; e.cells < 0 {
		return errors.New("its values take too much memory")
	}
	return e.spend(n)
}

// truth evaluates a part that has to be true or false.
func (e *evaluation) truth(n node) (bool, error) {
	v, err := e.value(n)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, refuse(n, "this has to be true or false, and it is "+describe(v), "")
	}
	return b, nil
}

// value evaluates a part of the expression.
func (e *evaluation) value(n node) (any, error) {
	err := e.spend(1)
	var v any
	if err == nil {
		v, err = e.node(n)
	}
	if err == nil || errors.Is(err, errAbsent) {
		return v, err
	}
	if _, ok := errors.AsType[*placed](err); !ok {
		err = refuse(n, err.Error(), "")
	}
	return nil, err
}

func (e *evaluation) node(n node) (any, error) {
	switch n := n.(type) {
	case *literalNode:
		return n.value, nil
	case *nameNode:
		return e.name(n.word)
	case *currentNode:
		return e.items[len(e.items)-1], nil
	case *unaryNode:
		return e.unary(n)
	case *binaryNode:
		return e.binary(n)
	case *chainNode:
		v, err := e.value(n.of)
		if errors.Is(err, errAbsent) {
			return nil, nil
		}
		return v, err
	case *memberNode:
		return e.member(n)
	case *callNode:
		return e.call(n)
	case *choiceNode:
		yes, err := e.truth(n.condition)
		if err != nil {
			return nil, err
		}
		if yes {
			return e.value(n.yes)
		}
		return e.value(n.no)
	case *listNode:
		return e.values(n.values)
	}
	return nil, fmt.Errorf("%T has no value", n)
}

// values evaluates several parts.
func (e *evaluation) values(nodes []node) ([]any, error) {
	list := make([]any, 0, len(nodes))
	for _, n := range nodes {
		v, err := e.value(n)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, e.allot(len(list))
}

// name returns the value of a name.
func (e *evaluation) name(name string) (any, error) {
	switch name {
	case "files":
		return e.files(false)
	case "iteration":
		return e.in.Iteration, nil
	case "tokens":
		return int(e.in.Tokens), nil
	}
	paths, err := e.once(source{kind: "paths"}, func() (any, error) { return e.list(e.in.Diff.Paths) })
	d := e.in.Diff
	return map[string]any{"files": d.Files, "added": d.Added, "removed": d.Removed, "paths": paths}, err
}

// list makes a value of texts.
func (e *evaluation) list(texts []string) ([]any, error) {
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list, e.allot(len(list))
}

func (e *evaluation) unary(n *unaryNode) (any, error) {
	if n.operator == "not" {
		b, err := e.truth(n.of)
		return !b, err
	}
	v, err := e.value(n.of)
	if err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case int:
		if n.operator == "-" && x != math.MinInt {
			return -x, nil
		}
		return x, nil
	case float64:
		if n.operator == "-" {
			return -x, nil
		}
		return x, nil
	}
	return nil, fmt.Errorf("%s needs a number, and this is %s", n.operator, describe(v))
}

// member takes a value out of a map or a list. What is missing is an error, because
// a comparison of two missing values would always be true; ?. says that it may be.
func (e *evaluation) member(n *memberNode) (any, error) {
	if isBase(n.of) {
		return e.files(true)
	}
	from, err := e.value(n.of)
	if err != nil {
		return nil, err
	}
	key, err := e.value(n.key)
	if err != nil {
		return nil, err
	}
	v, ok := any(nil), false
	switch from := from.(type) {
	case map[string]any:
		name, named := key.(string)
		if !named {
			return nil, fmt.Errorf("a name in quotes belongs into the brackets, not %s", describe(key))
		}
		v, ok = from[name]
	case []any:
		at, numbered := key.(int)
		if !numbered {
			return nil, fmt.Errorf("%s is a list: its values have numbers, and %s is none", e.shown(n.of), show(key))
		}
		if at < 0 {
			at += len(from)
		}
		if ok = at >= 0 && at < len(from); ok {
			v = from[at]
		}
	case nil:
	default:
		return nil, fmt.Errorf("%s is %s, and has no values of its own", e.shown(n.of), describe(from))
	}
	switch {
	case ok:
		return v, nil
	case n.optional:
		return nil, errAbsent
	}
	return nil, refuse(n.key, fmt.Sprintf("%s has no value %s", e.shown(n.of), show(key)), "if it may be missing, write ?. instead of . and ?? with a value for this case")
}

// binary evaluates an operator with two sides.
func (e *evaluation) binary(n *binaryNode) (any, error) {
	switch n.operator {
	case "and", "&&", "or", "||":
		b, err := e.truth(n.left)
		if isOr := n.operator[0] == 'o' || n.operator[0] == '|'; err != nil || b == isOr {
			return b, err
		}
		return e.truth(n.right)
	case "??":
		v, err := e.value(n.left)
		if err != nil || v != nil {
			return v, err
		}
		return e.value(n.right)
	}
	left, err := e.value(n.left)
	if err != nil {
		return nil, err
	}
	right, err := e.value(n.right)
	if err != nil {
		return nil, err
	}
	switch n.operator {
	case "==":
		return e.equal(left, right)
	case "!=":
		same, err := e.equal(left, right)
		return !same, err
	case "in":
		return e.within(left, right)
	}
	a, isText := left.(string)
	b, areTexts := right.(string)
	areTexts = areTexts && isText
	if areTexts {
		if err := e.spend(len(a)/16 + len(b)/16); err != nil {
			return nil, err
		}
	}
	switch n.operator {
	case "matches", "contains", "startsWith", "endsWith":
		if !areTexts {
			return nil, fmt.Errorf("%s needs two texts, not %s and %s", n.operator, describe(left), describe(right))
		}
	}
	switch n.operator {
	case "matches":
		if err := e.spend(len(a) * n.pattern.cost); err != nil {
			return nil, err
		}
		return n.pattern.MatchString(a), nil
	case "contains":
		return strings.Contains(a, b), nil
	case "startsWith":
		return strings.HasPrefix(a, b), nil
	case "endsWith":
		return strings.HasSuffix(a, b), nil
	case "<", "<=", ">", ">=":
		c := strings.Compare(a, b)
		if !areTexts {
			if c, err = compareNumbers(n.operator, left, right); err != nil {
				return nil, err
			}
		}
		return ordered(n.operator, c), nil
	case "+":
		if areTexts {
			return a + b, e.allot(len(a) + len(b))
		}
	}
	return calculate(n.operator, left, right)
}
