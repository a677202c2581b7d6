package modelapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

var noon = modelcalls.Noon

func TestErrorsOfVendorsAreUnderstood(t *testing.T) {
	for name, c := range modelcalls.ErrorAnswers() {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for field := range strings.SplitSeq(c.Header, "\n") {
				if name, value, ok := strings.Cut(field, ": "); ok {
					header.Set(name, value)
				}
			}
			c.Want.Status = c.Status
			got := FailureOf(c.Status, header, ReadError([]byte(c.Body)), noon)
			got.Reset = got.Reset.UTC()
			if diff := cmp.Diff(c.Want, got); diff != "" {
				t.Errorf("failure (-want +got)\n%s", diff)
			}
		})
	}
}

// A number is read by its size: nobody waits for thirty years.
func TestAMomentIsADateOrANumberOfSecondsOrMilliseconds(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-11-20T12:09:00Z": noon.Add(9 * time.Minute), "6m0s": noon.Add(6 * time.Minute), "90": noon.Add(90 * time.Second),
		"1000000000": {}, "1000000001": time.Unix(1e9+1, 0), "1000000000000": time.Unix(1e12, 0), "1000000000001": time.UnixMilli(1e12 + 1),
		"soon": {}, "": {},
	} {
		if got := readTime(text, noon); !got.Equal(want) {
			t.Errorf("moment(%q) = %v, want %v", text, got, want)
		}
	}
}
