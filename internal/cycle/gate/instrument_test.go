package gate_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/gate"
)

func TestCallsOfGoTestAreMadeToPrintEvents(t *testing.T) {
	for line, want := range map[string]string{
		"go test ./...":                             "go test -json ./...",
		"go test":                                   "go test -json",
		"  go  test  ./... ":                        "  go  test -json  ./... ",
		"go test;":                                  "go test -json;",
		"go test&&echo ok":                          "go test -json&&echo ok",
		"go vet ./... && go test -race ./...":       "go vet ./... && go test -json -race ./...",
		"go test ./a || go test ./b":                "go test -json ./a || go test -json ./b",
		"CGO_ENABLED=0 X='a b' go test ./...":       "CGO_ENABLED=0 X='a b' go test -json ./...",
		"cd sub && go test ./...":                   "cd sub && go test -json ./...",
		"(cd sub && go test ./...)":                 "(cd sub && go test -json ./...)",
		"{ go test ./...; }":                        "{ go test -json ./...; }",
		"! go test ./...":                           "! go test -json ./...",
		"if go test ./...; then echo yes; fi":       "if go test -json ./...; then echo yes; fi",
		"for d in a b; do go test ./$d; done":       "for d in a b; do go test -json ./$d; done",
		"go test $(go list ./... | grep -v gen)":    "go test -json $(go list ./... | grep -v gen)",
		"go test ./... 2>&1":                        "go test -json ./... 2>&1",
		"go test ./... 2>/dev/null </dev/null":      "go test -json ./... 2>/dev/null </dev/null",
		"go test -v -run 'TestA|TestB' ./...":       "go test -json -v -run 'TestA|TestB' ./...",
		"go test ./... -args -json -c":              "go test -json ./... -args -json -c",
		"go test ./... # -json":                     "go test -json ./... # -json",
		"go test \\\n  ./...":                       "go test -json \\\n  ./...",
		"set -e\ngo test ./...\r\n":                 "set -e\ngo test -json ./...\r\n",
		"go test ./... | tee log":                   "",
		"cat x | go test ./...":                     "",
		"(go test ./...) | tail":                    "",
		"{ go test ./...; } > log":                  "",
		"go test ./... > log":                       "",
		"go test ./... 1> log":                      "",
		"go test ./... >> log":                      "",
		"go test ./... >&2":                         "",
		"x=$(go test ./...)":                        "",
		"echo `go test ./...`":                      "",
		"cat <<E\n$(go test ./...)\nE\n":            "",
		"f() { go test ./...; }; f":                 "",
		"go() { :; }; go test ./...":                "",
		"alias go=gotip; go test ./...":             "",
		"exec >log; go test ./...":                  "",
		"eval 'go() { :; }'; go test ./...":         "",
		". ./env.sh; go test ./...":                 "",
		"go test -json ./...":                       "",
		"go test --json ./...":                      "",
		"go test ./... -json=false":                 "",
		"go test -c ./x":                            "",
		"go test -n ./...":                          "",
		"go test -exec 'qemu-arm' ./...":            "",
		"go test -list . ./...":                     "",
		"go test -run '^$' -bench . ./...":          "",
		"go test -run=^$ ./...":                     "",
		"go test -h":                                "",
		"'go' test ./...":                           "",
		"go \"test\" ./...":                         "",
		"$GO test ./...":                            "",
		"go vet ./...":                              "",
		"go tests":                                  "",
		"go -C sub test":                            "",
		"env A=b go test ./...":                     "",
		"echo go test":                              "",
		"# go test":                                 "",
		"sh -c 'go test ./...'":                     "",
		"go test -x=-json ./...":                    "go test -json -x=-json ./...",
		"go test -test.v ./...":                     "go test -json -test.v ./...",
		"go test -run ^$x ./...":                    "go test -json -run ^$x ./...",
		"go test -run":                              "go test -json -run",
		"go test json c n":                          "go test -json json c n",
		"go test ./... args -json":                  "",
		"go test ./... --args -json":                "go test -json ./... --args -json",
		"go test ./... 3>&1":                        "go test -json ./... 3>&1",
		"go test ./... <<E\nx\nE\n":                 "go test -json ./... <<E\nx\nE\n",
		"go test ./... <<-E\nx\nE\n":                "go test -json ./... <<-E\nx\nE\n",
		"go test ./... <&3":                         "go test -json ./... <&3",
		"go test ./... &>log":                       "",
		"source ./env.sh; go test ./...":            "",
		"go test -test.json ./...":                  "",
		"go test -help":                             "",
		"go test -run '$^' ./...":                   "",
		"go test -run=\"^$\" ./...":                 "",
		"(go test ./...) |& tail":                   "",
		strings.Repeat("#", 16<<10-8) + "\ngo test": strings.Repeat("#", 16<<10-8) + "\ngo test -json",
		strings.Repeat("#", 16<<10-7) + "\ngo test": "",
		"make test":                                 "",
		"go test ./... && (":                        "",
		"":                                          "",
		strings.Repeat(":;", 40_000) + " go test .": "",
	} {
		got, ok := gate.Instrument(line)
		if want == "" && (ok || got != line) {
			t.Errorf("%.60q became %.60q, want it untouched", line, got)
		}
		if want != "" && (!ok || got != want) {
			t.Errorf("%q became %q, %v, want %q", line, got, ok, want)
		}
		if again, ok := gate.Instrument(got); ok {
			t.Errorf("%q became %q when asked again", got, again)
		}
	}
}

func FuzzInstrument(f *testing.F) {
	for _, line := range []string{
		"go test ./...", "a=b go test -v 2>&1 && (cd x; go test)", "go test | tee x", "go test $(go test) `go test`",
		"cat <<'E'\ngo test\nE\ngo test", "for i in 1; do go test; done >x", "go test -args -json", "go te\\\nst",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := gate.Instrument(line)
		if ok != (got != line) {
			t.Fatalf("%q became %q, said %v", line, got, ok)
		}
		if !ok {
			return
		}
		if !onlyInserted(line, got) {
			t.Fatalf("%q became %q", line, got)
		}
		if again, more := gate.Instrument(got); more {
			t.Fatalf("%q became %q when asked again", got, again)
		}
	})
}

// onlyInserted reports whether after is before with -json in more places.
func onlyInserted(before, after string) bool {
	const inserted = " -json"
	return len(after) > len(before) && strings.ReplaceAll(after, inserted, "") == strings.ReplaceAll(before, inserted, "")
}

func TestCallsOfPytestAreMadeToNameWhatPassed(t *testing.T) {
	for line, want := range map[string]string{
		"pytest":                              "pytest -rfEp",
		"pytest -q tests/":                    "pytest -rfEp -q tests/",
		"python -m pytest -x":                 "python -m pytest -rfEp -x",
		"uv run pytest":                       "uv run pytest -rfEp",
		"poetry run python3 -m pytest":        "poetry run python3 -m pytest -rfEp",
		"cd sub && PYTHONPATH=. pytest 2>&1":  "cd sub && PYTHONPATH=. pytest -rfEp 2>&1",
		"go test ./... && pytest && go vet .": "go test -json ./... && pytest -rfEp && go vet .",
		"pdm run pytest":                      "pdm run pytest -rfEp",
		"pipenv run pytest -x":                "pipenv run pytest -rfEp -x",
		"hatch run pytest":                    "hatch run pytest -rfEp",
		"rye run pytest":                      "rye run pytest -rfEp",
		"uv run python -m pytest":             "uv run python -m pytest -rfEp",
		"pytest && go test && pytest":         "pytest -rfEp && go test -json && pytest -rfEp",
		"pytest tests -k 'a or b'":            "pytest -rfEp tests -k 'a or b'",
		"pytest \"-ra\"":                      "",
		"pytest --co":                         "",
		"pytest --help":                       "",
		"pytest -h":                           "",
		"pytest --version":                    "",
		"pytest -V":                           "",
		"pytest --fixtures":                   "",
		"pytest --markers":                    "",
		"node -m pytest":                      "",
		"python -c pytest":                    "",
		"python -m":                           "",
		"uv run":                              "",
		"npm run pytest":                      "",
		"uv sync pytest":                      "",
		"pytest -ra":                          "",
		"pytest -q -rA tests":                 "",
		"pytest --no-summary":                 "",
		"pytest --collect-only -q":            "",
		"pytest | tee log":                    "",
		"pytest > log":                        "",
		". .venv/bin/activate && pytest":      "",
		"pip install pytest":                  "",
		"grep pytest setup.cfg":               "",
		"python -m pytest_cov":                "",
		"uv add pytest":                       "",
		"echo pytest":                         "",
		"x=$(pytest)":                         "",
		"python -c 'import pytest'":           "",
		"coverage run -m pytest":              "",
	} {
		got, ok := gate.Instrument(line)
		if want == "" {
			want = line
		}
		if got != want || ok != (want != line) {
			t.Errorf("%q becomes %q, want %q", line, got, want)
		}
	}
}
