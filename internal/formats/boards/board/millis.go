package board

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Millis is a time in Unix milliseconds, the form of documents. Zero: it was not said.
type Millis int64

// At returns a time in milliseconds. The zero time is zero.
func At(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Time returns the time in UTC, which is the zero time for zero.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// UnmarshalJSON reads a number of milliseconds, whose fraction is dropped, or a time of
// RFC 3339.
func (m *Millis) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	if len(text) > 0 && text[0] == '"' {
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		if s == "" {
			*m = 0
			return nil
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return fmt.Errorf("%.40q is not a time: write Unix milliseconds, or a time like 2026-05-04T10:00:00Z", s)
		}
		*m = At(t)
		return nil
	}
	var n float64
	if err := json.Unmarshal(text, &n); err != nil || math.Abs(n) > 1<<53 {
		return fmt.Errorf("%.40s is not a time: write Unix milliseconds, or a time like 2026-05-04T10:00:00Z", text)
	}
	*m = Millis(n)
	return nil
}
