//go:build unix

package bootrepo

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/stopline"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAContractHasAllThatABootRepositorySays(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(map[string]string{
		StopLineName: "| Metric | Warning | Critical |\n|---|---|---|\n| Time (minutes) | 5 | 7 |\n| Tokens | 1 | 2 |\n",
	}))
	c := r.load(linkTo(dir, "main"))
	if c.Repository != dir || c.Commit != head(t, dir) || c.Folder != "" || c.Offline != "" || !c.Fetched.Equal(when) {
		t.Errorf("the contract is of %s at %s in %q, offline %q, fetched %s", c.Repository, c.Commit, c.Folder, c.Offline, c.Fetched)
	}
	if c.Version.Version != (bootlink.Version{Major: 1}) || !strings.HasPrefix(c.Rules, "# Agent rules") || c.StopLineFile != StopLineName {
		t.Errorf("version %s, stop lines %q, rules %q", c.Version.Version, c.StopLineFile, c.Rules)
	}
	if minutes := c.StopLines[2]; minutes.Metric != stopline.Minutes || *minutes.Warning != 5 || *minutes.Critical != 7 || *c.StopLines[0].Critical != 100 {
		t.Errorf("stop lines %v", c.StopLines)
	}
	if want := []Warning{{loop.ReasonStopLine, "STOP_LINES.md:4:3: 'Tokens' is not counted by pawl, and is not enforced"}}; !slices.Equal(want, c.Warnings) {
		t.Error(cmp.Diff(want, c.Warnings))
	}
	if _, findings := c.Schemas.ReadState([]byte(`{"version": "1.0.0"}`)); len(findings) != 3 {
		t.Errorf("an incomplete state has the findings %v, want three", findings)
	}
	if _, findings := c.Schemas.ReadTodo([]byte(`{"version": "1.0.0", "tasks": []}`)); len(findings) != 0 {
		t.Errorf("an empty list of tasks has the findings %v", findings)
	}
}

// The rows of the table of failures of the second step, and what else can be wrong with
// a boot repository.
func TestEachFailureOfLoadBootHasItsReasonAndStatus(t *testing.T) {
	const schema = bootlink.StateSchemaFile
	large := strings.Repeat("x", bootlink.MaxBytes+1)
	for name, c := range map[string]struct {
		files  map[string]string
		link   func(*bootlink.Link)
		reason loop.Reason
		exit   int
		words  string
	}{
		"boot repo inaccessible: no such path":       {link: func(l *bootlink.Link) { l.Repository = "/nowhere" }, reason: loop.ReasonBootAway, exit: 5, words: "the boot repository /nowhere cannot be read: no git repository is there"},
		"boot repo inaccessible: no such branch":     {link: func(l *bootlink.Link) { l.Reference = "none" }, reason: loop.ReasonBootAway, exit: 5, words: `has no "none"`},
		"boot repo inaccessible: no such commit":     {link: func(l *bootlink.Link) { l.Reference = strings.Repeat("a", 40) }, reason: loop.ReasonBootAway, exit: 5, words: "it has no such commit"},
		"boot repo inaccessible: a name too long":    {link: func(l *bootlink.Link) { l.Reference = strings.Repeat("a", 64) }, reason: loop.ReasonBootAway, exit: 5, words: "another length"},
		"boot repo inaccessible: a short commit":     {link: func(l *bootlink.Link) { l.Reference = "abcdef0" }, reason: loop.ReasonBootAway, exit: 5, words: "it has no such branch or tag"},
		"version mismatch: another major":            {files: version("2.0.0", "1.0.x"), reason: loop.ReasonVersionMajor, exit: 10, words: "expects the boot version 1.0.0, and the boot repository has 2.0.0"},
		"version mismatch although a schema is gone": {files: map[string]string{"VERSION.json": version("2.0.0", "1.0.x")["VERSION.json"], schema: ""}, reason: loop.ReasonVersionMajor, exit: 10},
		"missing schemas: that of the state":         {files: map[string]string{schema: ""}, reason: loop.ReasonBootIncomplete, exit: 5, words: "schemas/state-schema.json missing"},
		"missing schemas: that of the tasks":         {files: map[string]string{bootlink.TasksSchemaFile: ""}, reason: loop.ReasonBootIncomplete, exit: 5, words: "schemas/todo-schema.json missing"},
		"missing schemas: both":                      {files: map[string]string{schema: "", bootlink.TasksSchemaFile: ""}, reason: loop.ReasonBootIncomplete, exit: 5, words: "schemas/state-schema.json, schemas/todo-schema.json missing"},
		"missing version file":                       {files: map[string]string{"VERSION.json": ""}, reason: loop.ReasonBootIncomplete, exit: 5, words: "VERSION.json missing"},
		"missing rules":                              {files: map[string]string{bootlink.RulesFile: ""}, reason: loop.ReasonBootIncomplete, exit: 5, words: "contract/AGENT_RULES.md missing"},
		"missing boot path":                          {link: func(l *bootlink.Link) { l.BootPath = "main/boot" }, reason: loop.ReasonBootIncomplete, exit: 5, words: "main/boot/VERSION.json"},
		"no contract at all": {
			files:  map[string]string{"VERSION.json": "", bootlink.RulesFile: "", schema: "", bootlink.TasksSchemaFile: ""},
			reason: loop.ReasonBootIncomplete, exit: 5, words: "no folder has a VERSION.json with contract/ and schemas/ beside it",
		},
		"a version file that is not JSON": {files: map[string]string{"VERSION.json": "{"}, reason: loop.ReasonBootMalformed, exit: 4, words: "VERSION.json:1:1: not JSON"},
		"a version file that is too long": {files: map[string]string{"VERSION.json": large}, reason: loop.ReasonBootMalformed, exit: 4, words: "at most 1048576 are read"},
		"rules that are too long":         {files: map[string]string{bootlink.RulesFile: large}, reason: loop.ReasonBootMalformed, exit: 4, words: "contract/AGENT_RULES.md:1:1: has 1048577 bytes"},
		"rules that are not UTF-8":        {files: map[string]string{bootlink.RulesFile: "\xff"}, reason: loop.ReasonBootMalformed, exit: 4, words: "not UTF-8"},
		"stop lines without a number":     {files: map[string]string{StopLineName: "| Metric | Warning | Critical |\n|---|---|---|\n| errors | few | 5 |\n"}, reason: loop.ReasonBootMalformed, exit: 4, words: "STOP_LINES.md:3:12: errors: 'few' is not a limit"},
		"a schema that is not JSON":       {files: map[string]string{schema: "{"}, reason: loop.ReasonBootSchema, exit: 4, words: "schemas/state-schema.json:1:1: not JSON"},
		"a schema of another draft":       {files: map[string]string{schema: `{"$schema": "https://json-schema.org/draft/2020-12/schema"}`}, reason: loop.ReasonBootSchema, exit: 4, words: "not of the draft 07"},
		"a schema with a wrong type":      {files: map[string]string{"schemas/more.json": "{\n\"type\": 5}"}, reason: loop.ReasonBootSchema, exit: 4, words: "schemas/more.json:2:9: /type"},
		"a $ref out of the repository":    {files: map[string]string{schema: `{"$ref": "../../../etc/passwd"}`}, reason: loop.ReasonBootSchema, exit: 4, words: "schemas/state-schema.json:1:10"},
		"a $ref to another host":          {files: map[string]string{schema: `{"$ref": "https://example.com/x.json"}`}, reason: loop.ReasonBootSchema, exit: 4, words: "schemas/state-schema.json:1:10"},
		"a $ref to a file of this host":   {files: map[string]string{schema: `{"$ref": "file:///etc/passwd"}`}, reason: loop.ReasonBootSchema, exit: 4, words: "schemas/state-schema.json:1:10"},
		"a schema that is too long":       {files: map[string]string{"schemas/more.json": strings.Repeat(" ", bootstate.MaxBytes+1)}, reason: loop.ReasonBootMalformed, exit: 4, words: "schemas/more.json:1:1: has 10485761 bytes"},
		"schemas that are too much": {
			files:  map[string]string{"schemas/a.json": "{}" + strings.Repeat(" ", 10<<20-2), "schemas/b.json": "{}" + strings.Repeat(" ", 10<<20-3)},
			reason: loop.ReasonBootMalformed, exit: 4, words: "more than 20971520 bytes together",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := linkTo(gittest.Repo(t, standard(c.files)), "main")
			if c.link != nil {
				c.link(&link)
			}
			for range 2 { // The second time it is in the cache.
				_, err := r.cache.Load(t.Context(), link, r.root)
				wantError(t, err, c.reason, c.exit, c.words)
			}
		})
	}
}

func version(has string, compatible ...string) map[string]string {
	return map[string]string{"VERSION.json": `{"bootVersion": "` + has + `", "compatibleWorkspaces": ["` + strings.Join(compatible, `", "`) + `"]}`}
}

func TestVersionsFitTogetherByTheTable(t *testing.T) {
	for name, c := range map[string]struct {
		expected bootlink.Version
		files    map[string]string
		reason   loop.Reason
		warning  bool
		exit     int
	}{
		"the same":              {bootlink.Version{Major: 1}, version("1.0.0", "1.0.x"), loop.ReasonVersionEqual, false, 0},
		"another patch":         {bootlink.Version{Major: 1, Patch: 3}, version("1.0.9", "1.0.x"), loop.ReasonVersionPatch, false, 0},
		"a lower minor":         {bootlink.Version{Major: 1}, version("1.4.0", "1.x"), loop.ReasonVersionBehind, true, 0},
		"a higher minor":        {bootlink.Version{Major: 1, Minor: 5}, version("1.4.0", "1.x"), loop.ReasonVersionAhead, false, 10},
		"another major":         {bootlink.Version{Major: 1}, version("2.0.0", "1.0.x", "2.0.x"), loop.ReasonVersionMajor, false, 10},
		"not listed as working": {bootlink.Version{Major: 1}, version("1.1.0", "1.1.x"), loop.ReasonVersionUnlisted, false, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := linkTo(gittest.Repo(t, standard(c.files)), "main")
			link.Version = c.expected
			got, err := r.cache.Load(t.Context(), link, r.root)
			if c.exit != 0 {
				wantError(t, err, c.reason, c.exit, "the boot version does not fit")
				return
			}
			warned := slices.ContainsFunc(got.Warnings, func(w Warning) bool { return w.Reason == c.reason })
			if err != nil || got.Compatibility.Reason != c.reason || warned != c.warning {
				t.Errorf("compatibility %s, warnings %v, error %v", got.Compatibility.Reason, got.Warnings, err)
			}
		})
	}
}

func TestTheContractMayBeBelowTheTop(t *testing.T) {
	below := func(folder string, files map[string]string) map[string]string {
		moved := map[string]string{"README.md": "x"}
		for name, text := range files {
			moved[folder+"/"+name] = text
		}
		return moved
	}
	nested := below("main/agent-boot", standard(nil))
	twice := below("other", standard(map[string]string{bootlink.RulesFile: "# Others\n"}))
	maps.Copy(twice, nested)
	for name, c := range map[string]struct {
		files    map[string]string
		bootPath string
		folder   string
		words    string // of the error
	}{
		"it is found":           {files: nested, folder: "main/agent-boot"},
		"it is named":           {files: nested, bootPath: "main/agent-boot", folder: "main/agent-boot"},
		"one of two is named":   {files: twice, bootPath: "other", folder: "other"},
		"none of two is named":  {files: twice, words: "several folders have a contract: main/agent-boot/VERSION.json, other/VERSION.json"},
		"another one is named":  {files: nested, bootPath: "main", words: "main/VERSION.json"},
		"a file is named":       {files: nested, bootPath: "README.md", words: "README.md/VERSION.json"},
		"a path out is named":   {files: nested, bootPath: "../main/agent-boot", words: "VERSION.json"},
		"the top goes before":   {files: standard(nested), folder: ""},
		"its stop lines, there": {files: below("x", standard(map[string]string{StopLineName: "", "contract/STOP_LINES.md": "| M | Warning | Critical |\n|---|---|---|\n| errors | 1 | 2 |\n"})), folder: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := linkTo(gittest.Repo(t, c.files), "main")
			link.BootPath = c.bootPath
			got, err := r.cache.Load(t.Context(), link, r.root)
			if c.words != "" {
				wantError(t, err, loop.ReasonBootIncomplete, loop.ExitMissing, c.words)
				return
			}
			if err != nil || got.Folder != c.folder || !strings.HasPrefix(got.StopLineFile, c.folder) || got.StopLineFile == "" {
				t.Errorf("folder %q, stop lines %q, %v, want the folder %q", got.Folder, got.StopLineFile, err, c.folder)
			}
		})
	}
}

func TestStopLinesAreTakenFromOneFile(t *testing.T) {
	const table = "| M | Warning | Critical |\n|---|---|---|\n| errors | 1 | 2 |\n"
	for name, c := range map[string]struct {
		files  map[string]string
		file   string
		errors float64 // the critical number
		warned bool
	}{
		"at the top":           {map[string]string{StopLineName: table, "profiles/STOP_LINES.md": "x"}, StopLineName, 2, false},
		"beside the rules":     {map[string]string{StopLineName: "", "contract/STOP_LINES.md": table}, "contract/STOP_LINES.md", 2, false},
		"in the only profile":  {map[string]string{StopLineName: "", "profiles/a/STOP_LINES.md": table}, "profiles/a/STOP_LINES.md", 2, false},
		"in one of two places": {map[string]string{StopLineName: "", "a/STOP_LINES.md": table, "b/STOP_LINES.md": table}, "", 5, true},
		"nowhere":              {map[string]string{StopLineName: ""}, "", 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := newRig(t).load(linkTo(gittest.Repo(t, standard(c.files)), "main"))
			if got.StopLineFile != c.file || *got.StopLines[1].Critical != c.errors || (len(got.Warnings) > 0) != c.warned {
				t.Errorf("stop lines of %q: %v, warnings %v", got.StopLineFile, *got.StopLines[1].Critical, got.Warnings)
			}
		})
	}
}

func TestANewBootRepositoryIsOneThatLoads(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "boot")
	for name, text := range Scaffold(when) {
		gittest.WriteFile(t, filepath.Join(dir, name), string(text))
	}
	gittest.Run(t, dir, "init", "-q")
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-q", "-m", "first")
	link := linkTo(dir, "main")
	link.Version = ScaffoldVersion
	c := r.load(link)
	if diff := cmp.Diff(stopline.Defaults(), c.StopLines); diff != "" || len(c.Warnings) > 0 || c.Compatibility.Reason != loop.ReasonVersionEqual {
		t.Errorf("warnings %v, %s\n%s", c.Warnings, c.Compatibility.Reason, diff)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "VERSION.json")); err != nil || !strings.Contains(string(text), `"lastUpdated": "2026-01-02T03:04:05Z"`) {
		t.Errorf("VERSION.json is %s, %v", text, err)
	}
}
