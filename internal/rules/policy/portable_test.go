package policy

import (
	"slices"
	"testing"
)

func TestAttack011NewNamesThatWindowsCannotHoldAreRefused(t *testing.T) {
	s := scopeOf(t, "src/**")
	file := File{Mode: modeFile}
	for _, name := range []string{
		"aux", "AUX", "aux.h", "NUL.txt", "nul.tar.gz", "con", "prn.md", "COM1", "com9.c", "LPT1.log", "COM¹", "conin$", "CONOUT$", "aux .txt",
		"a:b", "a<b", "a>b", `a"b`, "a|b", "a?b", "a*b", "aux/a.txt", "deep/Nul/x/a.txt",
	} {
		path := "src/" + name
		wantRefused(t, s.Check([]Change{{Path: path, New: file}}, nil, Limits{}), CodeUnportable, path)
		if got := s.Check([]Change{{Path: path, New: file}}, nil, Limits{AnyNames: true}); len(got) > 0 {
			t.Errorf("%s, which the definition allows: %+v", path, got)
		}
		for what, change := range map[string]Change{"changed": {Path: path, Old: file, New: file}, "deleted": {Path: path, Old: file}} {
			if got := s.Check([]Change{change}, nil, Limits{}); len(got) > 0 {
				t.Errorf("%s is %s: %+v", path, what, got)
			}
		}
	}
	for _, name := range []string{"auxiliary", "com", "com10", "com0", "lpt", "null", "console.go", "icon", "a.aux", "COMA", "nul-1", "[id].ts", "a'b", "ä", "a b"} {
		if got := s.Check([]Change{{Path: "src/" + name, New: file}}, nil, Limits{}); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAFolderOfTheBaseMayGetFilesWhateverItsName(t *testing.T) {
	s := scopeOf(t, "src/**")
	file := File{Mode: modeFile}
	renamed := []Change{{Path: "src/aux/a", Old: file}, {Path: "src/aux/b", New: file}}
	if got := s.Check(renamed, nil, Limits{}); len(got) > 0 {
		t.Errorf("a file is renamed in it: %+v", got)
	}
	if got := s.Check([]Change{{Path: "src/aux/b", New: file}}, []string{"src/aux/a"}, Limits{}); len(got) > 0 {
		t.Errorf("a file is added: %+v", got)
	}
	got := s.Check([]Change{{Path: "src/aux/nul", New: file}}, []string{"src/aux"}, Limits{})
	if !slices.ContainsFunc(got, func(v Verdict) bool { return v.Code == CodeUnportable }) {
		t.Errorf("a file with such a name is added: %+v", got)
	}
}
