package node_test

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/node"
)

func TestASkewIsSaidInWords(t *testing.T) {
	for skew, want := range map[time.Duration]string{
		0: "as the database", 49 * time.Millisecond: "as the database", -49 * time.Millisecond: "as the database",
		5*time.Minute + 20*time.Millisecond: "5m0s ahead of the database", -1234 * time.Millisecond: "1.2s behind the database",
	} {
		if got := node.DescribeSkew(skew); got != want {
			t.Errorf("%s is %q, want %q", skew, got, want)
		}
	}
}
