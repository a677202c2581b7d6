package report

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestThePageOfTheReportNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	for f := range reflect.TypeFor[Report]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/report.md does not name the field %s", name)
		}
	}
}
