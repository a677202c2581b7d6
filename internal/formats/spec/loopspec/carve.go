package loopspec

import "fmt"

// Used is what a spec has used of the parts of its budget that are shared with children.
func Used(iterations int, tokens int64) Budget {
	return Budget{MaxIterations: int64(iterations), MaxTokens: tokens}
}

// Carve takes the budget of a child out of that of its parent. A part that is not asked for
// is all that the parent has left. The wall-clock is not shared: both may take their time
// at once. If the parent has less than is asked for, refused says so.
func Carve(parent, used, want Budget) (child, left Budget, refused string) {
	child, left = parent, parent
	if want.MaxWallClockMs > 0 {
		child.MaxWallClockMs = min(want.MaxWallClockMs, parent.MaxWallClockMs)
	}
	child.MaxItems = want.MaxItems
	for _, part := range []struct {
		name             string
		most, used, want int64
		child, left      *int64
	}{
		{"iterations", parent.MaxIterations, used.MaxIterations, want.MaxIterations, &child.MaxIterations, &left.MaxIterations},
		{"tokens", parent.MaxTokens, used.MaxTokens, want.MaxTokens, &child.MaxTokens, &left.MaxTokens},
	} {
		has := part.most - part.used - 1 // One stays: a budget of nothing is none.
		if part.want == 0 {
			part.want = has
		}
		if part.want < 1 || part.want > has {
			return Budget{}, Budget{}, fmt.Sprintf("it has %d %s left to give to children, and %d are asked for", max(0, has), part.name, max(1, part.want))
		}
		*part.child, *part.left = part.want, part.most-part.want
	}
	return child, left, ""
}

// GiveBack returns the budget of a parent with what a child has not used of its own.
func GiveBack(parent, child, used Budget) Budget {
	parent.MaxIterations += max(0, child.MaxIterations-used.MaxIterations)
	parent.MaxTokens += max(0, child.MaxTokens-used.MaxTokens)
	return parent
}
