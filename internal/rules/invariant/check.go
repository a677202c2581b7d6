package invariant

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// sort is what is known of a value before an expression is evaluated.
type sort string

const (
	anything  sort = "anything" // of a file, or different from case to case
	aBool     sort = "true or false"
	aNumber   sort = "a number"
	aText     sort = "a text"
	aList     sort = "a list"
	textsList sort = "a list of texts"
	anObject  sort = "an object"
)

func (s sort) mayBe(others ...sort) bool {
	return s == anything || slices.Contains(others, s) || s == textsList && slices.Contains(others, aList)
}

// signature is what a function takes and returns. Each is a function of the language;
// there are no others.
type signature struct {
	takes   []sort // a function with a predicate takes a list, and what the predicate has to be
	most    int    // arguments, if there may be more or fewer than in takes
	least   int
	looks   bool // at every value of a list
	returns sort
}

var functions = map[string]signature{
	"json": {takes: []sort{aText}, returns: anything}, "yaml": {takes: []sort{aText}, returns: anything}, "output": {takes: []sort{aText}, returns: aText},

	"all": {takes: []sort{aList, aBool}, looks: true, returns: aBool}, "any": {takes: []sort{aList, aBool}, looks: true, returns: aBool},
	"none": {takes: []sort{aList, aBool}, looks: true, returns: aBool}, "one": {takes: []sort{aList, aBool}, looks: true, returns: aBool},
	"filter": {takes: []sort{aList, aBool}, looks: true, returns: aList}, "find": {takes: []sort{aList, aBool}, looks: true, returns: anything},
	"map":   {takes: []sort{aList, anything}, looks: true, returns: aList},
	"count": {takes: []sort{aList, aBool}, looks: true, least: 1, returns: aNumber}, "sum": {takes: []sort{aList, aNumber}, looks: true, least: 1, returns: aNumber},

	"len": {takes: []sort{anything}, returns: aNumber}, "first": {takes: []sort{aList}, returns: anything}, "last": {takes: []sort{aList}, returns: anything},
	"keys": {takes: []sort{anObject}, returns: textsList}, "values": {takes: []sort{anObject}, returns: aList},
	"min": {takes: []sort{anything}, most: maxNodes, returns: aNumber}, "max": {takes: []sort{anything}, most: maxNodes, returns: aNumber},
	"abs": {takes: []sort{aNumber}, returns: aNumber}, "floor": {takes: []sort{aNumber}, returns: aNumber}, "ceil": {takes: []sort{aNumber}, returns: aNumber},
	"round": {takes: []sort{aNumber}, returns: aNumber}, "int": {takes: []sort{anything}, returns: aNumber}, "float": {takes: []sort{anything}, returns: aNumber},
	"string": {takes: []sort{anything}, returns: aText}, "lower": {takes: []sort{aText}, returns: aText}, "upper": {takes: []sort{aText}, returns: aText},
	"trim": {takes: []sort{aText}, returns: aText}, "split": {takes: []sort{aText, aText}, returns: textsList},
}

// checker finds what cannot be right whatever the values are.
type checker struct {
	items []sort // what # is in the predicates around a part, the innermost last
}

// refuse says that a part of an expression is not possible.
func refuse(n node, what, fix string) error {
	from, _ := n.span()
	return &placed{at: from, what: what, fix: fix}
}

func (c *checker) mustBeBool(n node, what, fix string) error {
	s, err := c.sortOf(n)
	if err == nil && !s.mayBe(aBool) {
		err = refuse(n, fmt.Sprintf("%s is true or false, and this is %s", what, s), fix)
	}
	return err
}

// sortOf checks a part, and says what it is.
func (c *checker) sortOf(n node) (sort, error) {
	switch n := n.(type) {
	case *literalNode:
		return sortOfValue(n.value), nil
	case *nameNode:
		return sortOfName(n)
	case *currentNode:
		if len(c.items) == 0 {
			return "", refuse(n, "# is the value that all, any, filter and the others look at", `write it there, as in all(diff.paths, # startsWith "src/")`)
		}
		return c.items[len(c.items)-1], nil
	case *unaryNode:
		if n.operator == "not" {
			return aBool, c.mustBeBool(n.of, "what follows not", "put what belongs together into brackets")
		}
		s, err := c.sortOf(n.of)
		if err == nil {
			err = mustBe(n.of, s, n.operator, aNumber)
		}
		return aNumber, err
	case *binaryNode:
		return c.operator(n)
	case *chainNode:
		_, err := c.sortOf(n.of)
		return anything, err
	case *memberNode:
		return c.member(n)
	case *callNode:
		return c.call(n)
	case *choiceNode:
		if err := c.mustBeBool(n.condition, "what is before ?", "compare it"); err != nil {
			return "", err
		}
		yes, err := c.sortOf(n.yes)
		if err != nil {
			return "", err
		}
		no, err := c.sortOf(n.no)
		if yes != no {
			yes = anything
		}
		return yes, err
	case *listNode:
		for _, v := range n.values {
			if _, err := c.sortOf(v); err != nil {
				return "", err
			}
		}
	}
	return aList, nil
}

func sortOfValue(v any) sort {
	switch v.(type) {
	case bool:
		return aBool
	case int, float64:
		return aNumber
	case string:
		return aText
	}
	return anything
}

// inDiff is what diff has.
var inDiff = map[string]sort{"files": aNumber, "added": aNumber, "removed": aNumber, "paths": textsList}

func sortOfName(n *nameNode) (sort, error) {
	switch n.word {
	case "diff":
		return anObject, nil
	case "files":
		return textsList, nil
	case "iteration", "tokens":
		return aNumber, nil
	case "base":
		return "", refuse(n, "base has no value by itself", "write base.files, base.json(…), base.yaml(…) or base.output(…)")
	}
	if _, ok := functions[n.word]; ok {
		return "", refuse(n, n.word+" is a function", "write "+n.word+"(…)")
	}
	return "", refuse(n, "unknown name "+n.word, seeNames)
}

func (c *checker) member(n *memberNode) (sort, error) {
	key, isConstant := n.key.(*literalNode)
	if isBase(n.of) {
		if !isConstant || key.value != "files" || n.optional {
			return "", refuse(n.key, "base has no value of this name", "write base.files, base.json(…), base.yaml(…) or base.output(…)")
		}
		return textsList, nil
	}
	of, err := c.sortOf(n.of)
	if err != nil {
		return "", err
	}
	if !of.mayBe(anObject, aList) {
		return "", refuse(n.key, fmt.Sprintf("%s has no values of its own", of), seeNames)
	}
	if diff, ok := n.of.(*nameNode); ok && diff.word == "diff" && isConstant {
		word, _ := key.value.(string)
		s, ok := inDiff[word]
		if !ok {
			return "", refuse(n.key, "diff has no value "+show(key.value), "it has files, added, removed and paths")
		}
		return s, nil
	}
	_, err = c.sortOf(n.key)
	if of == textsList {
		return aText, err
	}
	return anything, err
}

func (c *checker) call(n *callNode) (sort, error) {
	f, ok := functions[n.function]
	ofTree := n.function == "json" || n.function == "yaml" || n.function == "output"
	most, least := max(f.most, len(f.takes)), len(f.takes)
	if f.least > 0 {
		least = f.least
	}
	switch {
	case n.ofBase && !ofTree:
		return "", refuse(n, "base has no function "+n.function, "write base.json(…), base.yaml(…) or base.output(…)")
	case !ok:
		return "", refuse(n, "there is no function "+n.function, seeNames)
	case len(n.arguments) < least || len(n.arguments) > most:
		return "", refuse(n, n.function+" takes another number of arguments", seeNames)
	}
	item := anything
	for i, arg := range n.arguments {
		if f.looks && i == 1 {
			c.items = append(c.items, item)
		}
		s, err := c.sortOf(arg)
		if f.looks && i == 1 {
			c.items = c.items[:len(c.items)-1]
		}
		if err == nil {
			err = mustBe(arg, s, n.function, f.takes[min(i, len(f.takes)-1)])
		}
		if err != nil {
			return "", err
		}
		if s == textsList {
			item = aText
		}
	}
	if n.function == "filter" && item == aText {
		return textsList, nil
	}
	return f.returns, nil
}

// mustBe checks what an operator or a function is given.
func mustBe(n node, s sort, by string, want ...sort) error {
	if slices.Contains(want, anything) || s.mayBe(want...) {
		return nil
	}
	words := make([]string, len(want))
	for i, w := range want {
		words[i] = string(w)
	}
	return refuse(n, fmt.Sprintf("%s needs %s, and this is %s", by, strings.Join(words, " or "), s), seeNames)
}

func (c *checker) operator(n *binaryNode) (sort, error) {
	switch n.operator {
	case "and", "&&", "or", "||":
		for _, side := range []node{n.left, n.right} {
			if err := c.mustBeBool(side, "what "+n.operator+" joins", "compare it"); err != nil {
				return "", err
			}
		}
		return aBool, nil
	case "matches":
		if err := n.readPattern(); err != nil {
			return "", err
		}
	}
	left, err := c.sortOf(n.left)
	if err != nil {
		return "", err
	}
	right, err := c.sortOf(n.right)
	if err != nil {
		return "", err
	}
	var both []sort
	returns := aBool
	switch n.operator {
	case "??":
		return anything, nil
	case "==", "!=":
		if !left.mayBe(right) && !right.mayBe(left) {
			return "", refuse(n.right, fmt.Sprintf("%s is never equal to %s", left, right), "compare values of the same kind")
		}
		return aBool, nil
	case "in":
		return aBool, mustBe(n.right, right, "in", aList, anObject)
	case "matches", "contains", "startsWith", "endsWith":
		both = []sort{aText}
	case "<", "<=", ">", ">=":
		both = []sort{aNumber, aText}
	case "+":
		both, returns = []sort{aNumber, aText}, left
	default:
		both, returns = []sort{aNumber}, aNumber
	}
	if err := mustBe(n.left, left, n.operator, both...); err != nil {
		return "", err
	}
	if err := mustBe(n.right, right, n.operator, both...); err != nil {
		return "", err
	}
	if !left.mayBe(right) && right != anything {
		return "", refuse(n.right, fmt.Sprintf("%s has %s on its left and %s on its right", n.operator, left, right), "compare values of the same kind")
	}
	return returns, nil
}

// pattern is the regular expression of an operator matches.
type pattern struct {
	*regexp.Regexp
	cost int // steps for each byte of a text
}

// readPattern compiles the regular expression. How many instructions a byte may meet
// decides what matching costs.
func (n *binaryNode) readPattern() error {
	text, ok := n.right.(*literalNode)
	s, isText := "", false
	if ok {
		s, isText = text.value.(string)
	}
	if !isText || len(s) > maxPattern {
		return refuse(n.right, fmt.Sprintf("what a text matches is a constant of at most %d bytes", maxPattern), "write it in quotes")
	}
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return refuse(n.right, err.Error(), "write a regular expression of Go")
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return refuse(n.right, err.Error(), "write a regular expression of Go")
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return refuse(n.right, err.Error(), "write a regular expression of Go")
	}
	n.pattern = &pattern{re, 1 + len(compiled.Inst)/16}
	return nil
}
