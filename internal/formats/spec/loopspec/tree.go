package loopspec

import (
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

// pathText is a path as findings have it, like gates[1].check.
func pathText(path jsontree.Path) string {
	var b strings.Builder
	for _, step := range path {
		switch s := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
