package agent

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pieces remembers each write by itself.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

func TestLinesAreOnlyPartedWhereTheyAreTooLong(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOf(rapid.OneOf(rapid.StringMatching(`[a-c\n]{0,8}`), rapid.Just(strings.Repeat("x", maxPart/2)))).Draw(t, "chunks")
		var got pieces
		w := &wholeLines{to: &got}
		for _, chunk := range chunks {
			if n, err := w.Write([]byte(chunk)); n != len(chunk) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		w.flush()
		if strings.Join(got, "") != strings.Join(chunks, "") {
			t.Fatalf("%d bytes became %d", len(strings.Join(chunks, "")), len(strings.Join(got, "")))
		}
		last := len(got) - 1
		if i := slices.IndexFunc(got, func(s string) bool { return !strings.HasSuffix(s, "\n") && len(s) <= maxPart }); i >= 0 && i < last {
			t.Fatalf("a line was parted at %.40q", got[i])
		}
	})
}
