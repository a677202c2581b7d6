package loop

import (
	"fmt"
	"math"
	"time"
)

// Dimensions names the numbers of an Amount, in the order of AmountParts.
var Dimensions = [6]string{"tokens", "output", "micro_usd", "wall", "iterations", "items"}

// AmountParts are the numbers of an Amount in the order of Dimensions; wall is
// in nanoseconds.
type AmountParts [6]int64

// Parts returns the numbers of a, one for each of Dimensions.
func (a Amount) Parts() AmountParts {
	return AmountParts{a.Tokens, a.Output, a.MicroUSD, int64(a.Wall), a.Iterations, a.Items}
}

// Amount puts the numbers back together.
func (p AmountParts) Amount() Amount {
	return Amount{Tokens: p[0], Output: p[1], MicroUSD: p[2], Wall: time.Duration(p[3]), Iterations: p[4], Items: p[5]}
}

// Max returns the larger number in each dimension. It is charged if it is unknown
// which of both is right.
func (a Amount) Max(b Amount) Amount {
	p, q := a.Parts(), b.Parts()
	for i := range p {
		p[i] = max(p[i], q[i])
	}
	return p.Amount()
}

// Sub returns a minus b, and at least zero in each dimension.
func (a Amount) Sub(b Amount) Amount {
	p, q := a.Parts(), b.Parts()
	for i := range p {
		p[i] = max(0, max(p[i], 0)-max(q[i], 0))
	}
	return p.Amount()
}

// AmountError means that a number cannot be reserved, used or a cap.
type AmountError struct {
	What string // one of Dimensions
	N    int64
	Why  string
}

func (e *AmountError) Error() string { return fmt.Sprintf("%s: %d %s", e.What, e.N, e.Why) }

// Validate returns an *AmountError for the first number that is negative.
func (a Amount) Validate() error {
	for i, n := range a.Parts() {
		if n < 0 {
			return &AmountError{What: Dimensions[i], N: n, Why: "is negative"}
		}
	}
	return nil
}

// CheckRoom returns an *AmountError if the sum of a and b would overflow.
func (a Amount) CheckRoom(b Amount) error {
	p, q := a.Parts(), b.Parts()
	for i := range p {
		if p[i] > math.MaxInt64-q[i] {
			return &AmountError{What: Dimensions[i], N: q[i], Why: fmt.Sprintf("does not fit beside the %d that are counted already", p[i])}
		}
	}
	return nil
}

// CheckFunds reports whether a reservation may grow from held to want. Reserved of
// each standing contains held. If it may not, the Shortage names the cap with the
// smallest share left, the first such in the order of standing. A number that does
// not grow is always funded.
func CheckFunds(standing []Standing, held, want Amount) (Shortage, bool) {
	var worst Shortage
	tightest := 2.0
	for _, s := range standing {
		for i, limit := range s.Budget.Cap.Parts() {
			need := want.Parts()[i] - held.Parts()[i]
			taken := addCounts(s.Used.Parts()[i], s.Reserved.Parts()[i])
			left := max(0, limit-taken)
			if limit <= 0 || need <= 0 || need <= left {
				continue
			}
			if part := float64(left) / float64(limit); part < tightest {
				tightest = part
				worst = Shortage{Budget: s.Budget, What: Dimensions[i], Cap: limit, Left: left, Need: need, Opens: s.Opens}
			}
		}
	}
	return worst, tightest > 1
}
