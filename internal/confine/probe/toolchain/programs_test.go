package toolchain

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProgramsAreThoseThatALineStarts(t *testing.T) {
	for line, want := range map[string][]string{
		"go test ./...":                                        {"go"},
		"npm ci && npm test":                                   {"npm"},
		"CI=true npx tsc --noEmit | tee out":                   {"npx", "tee"},
		"(cd web && ./run.sh) && ./run.sh":                     {"web/run.sh", "./run.sh"},
		"cd sub; tools/check":                                  {"sub/tools/check"},
		"cd \"$X\"; tools/check; make":                         {"make"},
		"cd /srv/x && ./y":                                     {"/srv/x/y"},
		"env -u A B=1 python3 -m pytest":                       {"env", "python3"},
		"timeout -k 5 60 cargo test":                           {"timeout", "cargo"},
		"find . -name x | xargs -n 1 gofmt -l":                 {"find", "xargs", "gofmt"},
		"sh -c 'ruby -e 1 && node x'":                          {"sh", "ruby", "node"},
		"bash -ec 'cd a && ./b'":                               {"bash", "a/b"},
		"eval \"make lint\"":                                   {"make"},
		"test -z \"$(gofmt -l .)\"":                            {"gofmt"},
		"if command -v jq; then jq . x; fi":                    {"jq"},
		"check() { shellcheck x; }; check && echo ok":          {"shellcheck"},
		"[[ -f x ]] && diff <(sort a) <(uniq b)":               {"diff", "sort", "uniq"},
		"\"$TOOL\" x; ~/bin/y; *.sh; exec deno test":           {"deno"},
		"/usr/bin/env FOO=1":                                   {"/usr/bin/env"},
		"/usr/bin/env FOO=1 make -n":                           {"/usr/bin/env", "make"},
		"exit 0":                                               nil,
		"if":                                                   nil,
		"":                                                     nil,
		strings.Repeat("x", maxLine+1):                         nil,
		"sh -c \"sh -c 'sh -c \\\"sh -c make\\\"'\" ; timeout": {"sh", "make", "timeout"},
	} {
		if diff := cmp.Diff(want, Programs(line)); diff != "" {
			t.Errorf("programs of %.60q (-want +got)\n%s", line, diff)
		}
	}
}

func FuzzProgramsAreNamesThatCanBeLookedUp(f *testing.F) {
	for _, seed := range []string{"go test ./...", "(cd a && ./b)", "sh -c 'x y'", "env -u", "timeout -k", "cd --; cd", "eval", "xargs -n", "a() { b; }; a", "$(x)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, word := range Programs(line) {
			if word == "" || strings.ContainsAny(word, "$`*\n\x00") || strings.HasPrefix(word, "-") {
				t.Errorf("%q starts %q", line, word)
			}
			if strings.Contains(word, "/") && !path.IsAbs(word) && strings.TrimPrefix(word, "./") != path.Clean(word) {
				t.Errorf("%q starts %q, which is not clean", line, word)
			}
		}
	})
}
