package invariant

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// function evaluates the call of a function.
func (e *evaluation) function(n *callNode) (any, error) {
	switch n.function {
	case "all", "any", "none", "one", "filter", "find", "count":
		return e.selected(n)
	case "map":
		var all []any
		err := e.each(n, func(_, said any) (bool, error) {
			all = append(all, said)
			return true, e.allot(1)
		})
		return all, err
	case "sum":
		var sum any = 0
		err := e.each(n, func(_, said any) (_ bool, err error) {
			sum, err = calculate("+", sum, said)
			return true, err
		})
		return sum, err
	}
	args, err := e.values(n.arguments)
	if err != nil {
		return nil, err
	}
	if n.function == "min" || n.function == "max" {
		return e.extreme(n.function, args)
	}
	switch v := args[0].(type) {
	case string:
		return e.ofText(n.function, v, args[1:])
	case int, float64:
		return ofNumber(n.function, v)
	case []any:
		switch {
		case n.function == "len":
			return len(v), nil
		case n.function == "first" && len(v) > 0:
			return v[0], nil
		case n.function == "last" && len(v) > 0:
			return v[len(v)-1], nil
		case n.function == "first" || n.function == "last":
			return nil, nil
		}
	case map[string]any:
		if n.function == "len" {
			return len(v), nil
		}
		if n.function == "keys" || n.function == "values" {
			return e.ofObject(n.function, v)
		}
	}
	return nil, unsuited(n.function, args[0])
}

func unsuited(name string, v any) error { return fmt.Errorf("%s does not take %s", name, describe(v)) }

// selected evaluates the functions that ask something of every value of a list.
func (e *evaluation) selected(n *callNode) (any, error) {
	count, seen := 0, 0
	var kept []any
	err := e.each(n, func(v, said any) (more bool, err error) {
		yes, ok := said.(bool)
		if !ok {
			return false, fmt.Errorf("%s asks whether something is true, and got %s", n.function, describe(said))
		}
		if seen++; !yes {
			return n.function != "all", nil
		}
		if count++; n.function == "filter" || n.function == "find" {
			kept, err = append(kept, v), e.allot(1)
		}
		return n.function != "any" && n.function != "none" && n.function != "find", err
	})
	switch n.function {
	case "all":
		return count == seen, err
	case "any":
		return count > 0, err
	case "none":
		return count == 0, err
	case "one":
		return count == 1, err
	case "count":
		return count, err
	case "find":
		if len(kept) > 0 {
			return kept[0], err
		}
		return nil, err
	}
	return kept, err
}

// each calls do with every value of a list and what the predicate says of it, as long
// as do wants more. Without a predicate, the value says itself.
func (e *evaluation) each(n *callNode, do func(v, said any) (more bool, err error)) error {
	from, err := e.value(n.arguments[0])
	if err != nil {
		return err
	}
	list, ok := from.([]any)
	if !ok {
		return refuse(n.arguments[0], fmt.Sprintf("%s goes through a list, and this is %s", n.function, describe(from)), "values(…) makes a list of an object")
	}
	for _, v := range list {
		said := v
		if err := e.spend(1); err != nil {
			return err
		}
		if len(n.arguments) > 1 {
			if said, err = e.predicate(n, v); err != nil {
				return err
			}
		}
		if more, err := do(v, said); err != nil || !more {
			return err
		}
	}
	return nil
}

// predicate is what the predicate of a function says of one value.
func (e *evaluation) predicate(n *callNode, of any) (any, error) {
	e.items = append(e.items, of)
	defer func() { e.items = e.items[:len(e.items)-1] }()
	return e.value(n.arguments[1])
}

// extreme is the smallest or largest of some numbers, or of a list of them.
func (e *evaluation) extreme(name string, args []any) (any, error) {
	if list, ok := args[0].([]any); ok && len(args) == 1 {
		args = list
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("%s of an empty list", name)
	}
	operator := map[string]string{"min": "<", "max": ">"}[name]
	found := args[0]
	for _, v := range args {
		c, err := compareNumbers(name, v, found)
		if err != nil {
			return nil, err
		}
		if ordered(operator, c) {
			found = v
		}
	}
	return found, e.spend(len(args))
}

func ofNumber(name string, v any) (any, error) {
	x, _ := toFloat(v)
	whole, isWhole := v.(int)
	switch name {
	case "string":
		return show(v), nil
	case "float":
		return x, nil
	case "abs":
		if !isWhole || whole == math.MinInt {
			return math.Abs(x), nil
		}
		return max(whole, -whole), nil
	case "floor", "ceil", "round":
		return map[string]func(float64) float64{"floor": math.Floor, "ceil": math.Ceil, "round": math.Round}[name](x), nil
	case "int":
		const exact = 1 << 53
		if !isWhole && math.Abs(x) >= exact {
			return nil, errors.New("the number is too large")
		}
		if !isWhole {
			whole = int(x)
		}
		return whole, nil
	}
	return nil, unsuited(name, v)
}

func (e *evaluation) ofText(name, s string, rest []any) (any, error) {
	if err := e.spend(len(s) / 16); err != nil {
		return nil, err
	}
	switch name {
	case "string":
		return s, nil
	case "len":
		return len([]rune(s)), e.spend(len(s))
	case "lower":
		return strings.ToLower(s), e.allot(len(s))
	case "upper":
		return strings.ToUpper(s), e.allot(len(s))
	case "trim":
		return strings.TrimSpace(s), nil
	case "int":
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number", show(s))
		}
		return n, nil
	case "float":
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s is not a number", show(s))
		}
		return f, nil
	case "split":
		by, ok := rest[0].(string)
		if !ok || by == "" {
			return nil, errors.New("split needs the text between the parts, such as \"\\n\"")
		}
		if err := e.allot(strings.Count(s, by) + 1); err != nil {
			return nil, err
		}
		parts := []any{}
		for part := range strings.SplitSeq(s, by) {
			parts = append(parts, part)
		}
		return parts, nil
	}
	return nil, unsuited(name, s)
}

// ofObject lists the names of an object, or its values in the order of their names.
func (e *evaluation) ofObject(name string, v map[string]any) (any, error) {
	names := slices.Sorted(maps.Keys(v))
	if name == "keys" {
		return e.list(names)
	}
	all := make([]any, 0, len(names))
	for _, k := range names {
		all = append(all, v[k])
	}
	return all, e.allot(len(all))
}
