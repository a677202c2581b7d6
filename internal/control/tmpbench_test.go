package control

import (
	"os"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

func BenchmarkTmpLs(b *testing.B) {
	st, err := store.Open(b.Context(), store.Options{Database: "/tmp/fcath2000/pawl.db", ReadOnly: true, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := New(b.Context(), Deps{Store: st, Now: time.Now, Environ: os.Environ(), HolderState: func(loop.Holder) loop.HolderState { return loop.HolderElsewhere }}, "/tmp/fcat2000")
		if err != nil {
			b.Fatal(err)
		}
		rows, err := s.Listing(b.Context())
		if err != nil || len(rows) < 2000 {
			b.Fatal(len(rows), err)
		}
	}
}
