package definition

import "testing"

func TestASizeIsANumberWithItsUnit(t *testing.T) {
	for text, want := range map[string]int64{
		"500MB": 500_000_000, "8GiB": 8 << 30, "20 GiB": 20 << 30, "1TB": 1e12, "999999TiB": 999999 << 40, "512MiB": 512 << 20,
		"": 0, "8": 0, "8G": 0, "-1GiB": 0, "1.5GiB": 0, "0GiB": 0, "1KiB": 0, "8gib": 0, "1000000TiB": 0,
	} {
		if got, err := parseSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("size(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}
