package policy

import (
	"fmt"
	"testing"
)

// BenchmarkCheck is the largest change that is allowed in a large repository.
func BenchmarkCheck(b *testing.B) {
	s, err := NewScope([]string{"internal/**", "**/*.go"}, []string{"**/*.sql"})
	if err != nil {
		b.Fatal(err)
	}
	var tree []string
	for i := range 50_000 {
		tree = append(tree, fmt.Sprintf("internal/pkg%d/sub%d/File%d.go", i%200, i%7, i))
	}
	var changes []Change
	for i := range MaxFiles {
		changes = append(changes, edit(tree[i*400]))
	}
	for b.Loop() {
		if got := s.Check(changes, tree, Limits{}); len(got) > 0 {
			b.Fatal(got)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	s, err := NewScope([]string{"internal/**", "**/*.go"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v := s.Judge("internal/pkg/sub/file.go"); !v.Allowed {
			b.Fatal(v)
		}
	}
}
