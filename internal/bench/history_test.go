package bench

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const (
	historyFolder = "../../bench"       // the recorded tables: KIND-DATE-TIME.md
	recordEnv     = "PAWL_BENCH_RECORD" // the version of pawl, to record the table as that of this version
)

// row is one line of a table.
type row struct{ measure, value, target, baseline, ratio string }

// report prints the rows beside the newest recorded table of the kind, and records them
// if that is asked for.
func report(b *testing.B, kind string, rows []row) {
	b.Helper()
	before, recorded, err := newestTable(historyFolder, kind)
	if err != nil {
		b.Errorf("the tables recorded before: %v", err)
	}
	fmt.Println()
	printTable(os.Stdout, rows, before, recorded)
	fmt.Println()
	version := os.Getenv(recordEnv)
	if version == "" {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n", strings.Join([]string{
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), "pawl " + version, runtime.Version(),
		runtime.GOOS + "/" + runtime.GOARCH, fmt.Sprintf("%d cores, %s", runtime.NumCPU(), processor()), "load before " + loadBefore,
	}, ", "))
	printTable(&text, rows, nil, "")
	name := filepath.Join(historyFolder, kind+"-"+time.Now().UTC().Format("20060102-1504")+".md")
	if err := os.MkdirAll(historyFolder, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("recorded in %s\n\n", strings.TrimPrefix(name, "../../"))
}

// printTable writes the rows, with a last column of what was recorded before, if anything was.
func printTable(w io.Writer, rows []row, before map[string][]string, recorded string) {
	lines := [][]string{{"measure", "measured", "target", "baseline", "ratio"}}
	for _, r := range rows {
		lines = append(lines, []string{r.measure, r.value, r.target, r.baseline, r.ratio})
	}
	if recorded != "" {
		lines[0] = append(lines[0], recorded)
		seen := map[string]int{} // Two stores may have rows of one name, always in the same order.
		for i, r := range rows {
			name := strings.TrimSpace(r.measure)
			value := ""
			if n := seen[name]; n < len(before[name]) {
				value = before[name][n]
			}
			seen[name]++
			lines[i+1] = append(lines[i+1], value)
		}
	}
	widths := make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for i, cells := range lines {
		for j, c := range cells {
			fmt.Fprintf(w, "| %s%s ", c, strings.Repeat(" ", widths[j]-utf8.RuneCountInString(c)))
		}
		fmt.Fprintln(w, "|")
		if i == 0 {
			for _, n := range widths {
				fmt.Fprint(w, "|", strings.Repeat("-", n+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
}

// newestTable is what the newest recorded table of the kind has, by measure and in the
// table's order, and when it was recorded: "" if there is no such table.
func newestTable(folder, kind string) (before map[string][]string, recorded string, err error) {
	names, err := filepath.Glob(filepath.Join(folder, kind+"-*.md"))
	if err != nil || len(names) == 0 {
		return nil, "", err
	}
	file, err := os.Open(slices.Max(names))
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	before = map[string][]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if head, ok := strings.CutPrefix(line, "# "); ok {
			recorded, _, _ = strings.Cut(head, ",")
		}
		cells := strings.Split(line, "|")
		if len(cells) > 2 {
			measure := strings.TrimSpace(cells[1])
			before[measure] = append(before[measure], strings.TrimSpace(cells[2]))
		}
	}
	return before, recorded, lines.Err()
}

// loadBefore is what the machine did when the benchmark began.
var loadBefore = func() string {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg", ""), " ")
	return cmp.Or(load, "unknown")
}()

func processor() string {
	_, name, _ := strings.Cut(firstLine("/proc/cpuinfo", "model name"), ": ")
	return cmp.Or(name, "unknown processor")
}

// firstLine is the file's first line that begins so: "" if it cannot be read.
func firstLine(name, prefix string) string {
	text, _ := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestATableShowsWhatWasRecordedBefore(t *testing.T) {
	folder := t.TempDir()
	rows := []row{{"start", "7.4 ms", "< 20 ms", "0.6 ms", "12.33"}, {"  commits", "6.0", "≤ 6", "", ""}, {"  commits", "7.0", "≤ 6", "", ""}}
	for name, first := range map[string]string{"table-20261125-0900.md": "9.0 ms", "table-20261126-0900.md": "7.4 ms", "million-20261127-0900.md": "1 ms"} {
		var text strings.Builder
		fmt.Fprintf(&text, "# 2026-11-26 09:00 UTC, pawl v1\n\n")
		printTable(&text, append([]row{{"start", first, "", "", ""}}, rows[1:]...), nil, "")
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, recorded, err := newestTable(folder, "table")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printTable(&out, append(rows, row{"new", "1", "", "", ""}), before, recorded)
	want := `| measure   | measured | target  | baseline | ratio | 2026-11-26 09:00 UTC |
|-----------|----------|---------|----------|-------|----------------------|
| start     | 7.4 ms   | < 20 ms | 0.6 ms   | 12.33 | 7.4 ms               |
|   commits | 6.0      | ≤ 6     |          |       | 6.0                  |
|   commits | 7.0      | ≤ 6     |          |       | 7.0                  |
| new       | 1        |         |          |       |                      |
`
	if out.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", &out, want)
	}
}
