package budgets

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// noCap removes a cap.
const noCap = "none"

// capFlags are the names under which people set a cap, in the order of
// loop.Dimensions.
var capFlags = [...]string{"tokens", "output", "usd", "wall", "iterations", "items"}

// parseCaps reads caps by the names of their flags, into numbers by their place
// in loop.Dimensions; 0 means no cap.
func parseCaps(texts map[string]string) (map[int]int64, error) {
	if len(texts) == 0 {
		return nil, &loop.Fault{
			Exit: loop.ExitUsage, What: "nothing is to be set", Fix: "name a cap: --usd, --tokens, --output, --wall, --iterations or --items",
		}
	}
	caps := map[int]int64{}
	for name, text := range texts {
		i := slices.Index(capFlags[:], name)
		if i < 0 {
			return nil, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("there is no cap %q", name), Fix: "write one of " + strings.Join(capFlags[:], ", ")}
		}
		n, why := parseCap(name, text)
		if why != "" {
			return nil, &loop.Fault{
				Exit: loop.ExitUsage, What: fmt.Sprintf("invalid --%s %q", name, text), Why: why,
				Fix: "write " + capExample[name] + ", or none to remove the cap",
			}
		}
		caps[i] = n
	}
	return caps, nil
}

var capExample = map[string]string{
	"usd": "US dollars like 5 or 2.50", "tokens": "a number like 500k or 2M", "output": "a number like 500k or 2M",
	"wall": "a time like 90s, 45m or 1h30m", "iterations": "a number like 50", "items": "a number like 10",
}

// parseCap reads one cap. Why says what is wrong with the text, and is empty if
// nothing is.
func parseCap(name, text string) (n int64, why string) {
	text = strings.TrimSpace(text)
	switch {
	case text == noCap:
		return 0, ""
	case name == "wall":
		n, why = parseWall(text)
	case name == "usd":
		n, why = parseDecimal(text, 1_000_000)
	case name == "tokens", name == "output":
		number, unit := cutUnit(text)
		n, why = parseDecimal(number, unit)
	default:
		n, why = parseDecimal(text, 1)
	}
	if why == "" && n == 0 {
		why = "a cap of 0 would be none"
	}
	return n, why
}

// cutUnit takes k, M or G from the end of a number.
func cutUnit(text string) (number string, unit int64) {
	for suffix, unit := range map[string]int64{"k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			return number, unit
		}
	}
	return text, 1
}

var decimal = lazyregexp.New(`^(-?)([0-9]+)(?:\.([0-9]+))?$`)

// parseDecimal reads a decimal number of units, exactly: what would have to be
// rounded is refused.
func parseDecimal(text string, unit int64) (n int64, why string) {
	part := decimal.FindStringSubmatch(text)
	switch {
	case part == nil:
		return 0, "it is not a number"
	case part[1] == "-":
		return 0, "it is negative"
	}
	whole, fraction := strings.TrimLeft(part[2], "0"), strings.TrimRight(part[3], "0")
	if len(whole) > 19 {
		return 0, "it is more than can be counted"
	}
	if len(fraction) > 18 {
		return 0, "it is finer than can be counted"
	}
	v, _ := new(big.Int).SetString("0"+whole+fraction, 10)
	v.Mul(v, big.NewInt(unit))
	v, rest := v.QuoRem(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil), new(big.Int))
	switch {
	case rest.Sign() != 0:
		return 0, "it is finer than can be counted"
	case !v.IsInt64():
		return 0, fmt.Sprintf("it is more than can be counted: %s, and the most is %d", v, int64(math.MaxInt64))
	}
	return v.Int64(), ""
}

func parseWall(text string) (n int64, why string) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, "it is not a time"
	case d < 0:
		return 0, "it is negative"
	}
	return int64(d), ""
}
