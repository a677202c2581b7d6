package invariant

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// describe says what kind of value v is.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return show(v)
	case int, float64:
		return "the number " + show(v)
	case string:
		return "the text " + show(v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return fmt.Sprintf("an object with %d names", len(v))
	}
	return fmt.Sprintf("a %T", v)
}

// show writes a value as it would be written in an expression, if it is short.
func show(v any) string {
	const most = 120
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		if len(v) > most {
			return strconv.Quote(shorten(v, most)) + fmt.Sprintf(" (%d bytes)", len(v))
		}
		return strconv.Quote(v)
	}
	return describe(v)
}

// compareNumbers is cmp.Compare of two numbers.
func compareNumbers(operator string, left, right any) (int, error) {
	a, aWhole := left.(int)
	b, bWhole := right.(int)
	if aWhole && bWhole {
		return cmp.Compare(a, b), nil
	}
	x, ok := toFloat(left)
	y, both := toFloat(right)
	if !ok || !both {
		return 0, fmt.Errorf("%s compares two numbers or two texts, not %s and %s", operator, describe(left), describe(right))
	}
	return cmp.Compare(x, y), nil
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// ordered reports whether an operator is true of the result of a comparison.
func ordered(operator string, c int) bool {
	switch operator {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// calculate evaluates + - * / % of two numbers. A number that is too large for whole
// numbers is not cut off.
func calculate(operator string, left, right any) (any, error) {
	a, aWhole := left.(int)
	b, bWhole := right.(int)
	x, ok := toFloat(left)
	y, both := toFloat(right)
	if !ok || !both {
		return nil, fmt.Errorf("%s needs two numbers, not %s and %s", operator, describe(left), describe(right))
	}
	whole := aWhole && bWhole
	var f float64
	switch {
	case y == 0 && (operator == "/" || operator == "%"):
		return nil, errors.New("division by zero")
	case operator == "%" && !whole:
		return nil, errors.New("% needs two whole numbers")
	case operator == "%" && b == -1:
		return 0, nil
	case operator == "%":
		return a % b, nil
	case operator == "/":
		f = x / y
	case operator == "*":
		f = x * y
	case operator == "+":
		f = x + y
	default:
		f = x - y
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errors.New("the number is too large")
	}
	const exact = 1 << 53
	if whole && operator != "/" && math.Abs(f) < exact {
		switch operator {
		case "*":
			return a * b, nil
		case "+":
			return a + b, nil
		}
		return a - b, nil
	}
	return f, nil
}

// equal compares two values, whatever they hold.
func (e *evaluation) equal(left, right any) (bool, error) {
	if err := e.spend(1); err != nil {
		return false, err
	}
	switch a := left.(type) {
	case int, float64:
		if _, ok := toFloat(right); !ok {
			return false, nil
		}
		c, err := compareNumbers("==", left, right)
		return c == 0, err
	case string:
		b, ok := right.(string)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		return a == b, e.spend(len(a) / 16)
	case []any:
		b, ok := right.([]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for i := range a {
			if same, err := e.equal(a[i], b[i]); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case map[string]any:
		b, ok := right.(map[string]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for k, v := range a {
			other, ok := b[k]
			if !ok {
				return false, nil
			}
			if same, err := e.equal(v, other); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	}
	return left == right, nil // nil and bool
}

// within reports whether a value is in a list, or a name in an object.
func (e *evaluation) within(v, in any) (bool, error) {
	switch in := in.(type) {
	case []any:
		for _, other := range in {
			if same, err := e.equal(v, other); err != nil || same {
				return same, err
			}
		}
		return false, nil
	case map[string]any:
		name, ok := v.(string)
		if !ok {
			return false, fmt.Errorf("the names of an object are texts, not %s", describe(v))
		}
		_, ok = in[name]
		return ok, nil
	}
	return false, fmt.Errorf("in looks into a list or an object, not into %s", describe(in))
}
