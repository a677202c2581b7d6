package filled

import (
	"fmt"
	"strings"
	"testing"
)

func TestAPointerIsWhatGitLFSWrites(t *testing.T) {
	oid := strings.Repeat("0a", 32)
	good := "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize 12345\n"
	if p, ok := parsePointer(good); !ok || p != (pointer{oid, 12345}) {
		t.Errorf("parsePointer = %+v, %v", p, ok)
	}
	for name, text := range map[string]string{
		"nothing":           "",
		"a beginning":       good[:len(good)-1],
		"an end":            good + "\n",
		"another version":   strings.Replace(good, "/v1", "/v2", 1),
		"another hash":      strings.Replace(good, "sha256", "sha512", 1),
		"a path for a hash": strings.Replace(good, oid, "../"+oid[3:], 1),
		"capital letters":   strings.Replace(good, oid, strings.ToUpper(oid), 1),
		"a negative size":   strings.Replace(good, "size ", "size -", 1),
		"a size too large":  strings.Replace(good, "12345", strings.Repeat("9", 19), 1),
		"an extension":      strings.Replace(good, "oid", "ext-0-foo sha256:"+oid+"\noid", 1),
		"CR LF":             strings.ReplaceAll(good, "\n", "\r\n"),
	} {
		if p, ok := parsePointer(text); ok {
			t.Errorf("%s is the pointer %+v", name, p)
		}
	}
}

func TestManyMissingFilesAreCountedAndTheCommandTakesAll(t *testing.T) {
	var e MissingError
	for i := range 20 {
		path := fmt.Sprintf("lib %d", i)
		e.addSubmodule(module{path: path, outer: path})
	}
	const text = "files of the base are not in this clone: 'lib 0' (submodule), 'lib 1' (submodule), 'lib 2' (submodule), 'lib 3' (submodule), 'lib 4' (submodule) and 15 more"
	if e.Error() != text {
		t.Errorf("%q", e.Error())
	}
	if got, want := e.Fix(), "git submodule update --init --recursive"; got != want {
		t.Errorf("fix %q, want %q", got, want)
	}
	e = MissingError{}
	for _, outer := range []string{"", "lib", "lib"} {
		e.addObject(lfsObject{path: "x", outer: outer})
	}
	if got, want := e.Fix(), "git lfs pull && git submodule foreach --recursive 'git lfs pull'"; got != want {
		t.Errorf("fix %q, want %q", got, want)
	}
}
