// Package shape holds what results have in common when they print as JSON:
// listings, times that may be missing, milliseconds.
//
// It knows nothing about what is listed, and never writes.
package shape

import "time"

// Listing is every listing: what is listed, and how much of which schema it is.
type Listing[T any] struct {
	Data []T  `json:"data"`
	Meta Meta `json:"meta"`
}

// Meta is about a Listing.
type Meta struct {
	Schema string `json:"schema"`
	Count  int    `json:"count"`
}

// ListingOf makes the listing of data, which may be nil.
func ListingOf[T any](schema string, data []T) Listing[T] {
	return Listing[T]{Data: List(data), Meta: Meta{schema, len(data)}}
}

// List is a list that prints as one, also when it is empty.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Time is a time that prints as null if it is zero.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Millis is a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
