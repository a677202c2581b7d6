package proc

import "testing"

func TestBytesOverTheLimitAreDropped(t *testing.T) {
	b := &Bounded{Limit: 3}
	for _, text := range []string{"ab", "cd", "e"} {
		if n, err := b.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write = %d, %v, want all of it taken", n, err)
		}
	}
	if b.String() != "abc" || !b.Cut {
		t.Errorf("kept %q, cut: %v", b.String(), b.Cut)
	}
}
