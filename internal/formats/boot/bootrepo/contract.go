package bootrepo

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/draft07"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/stopline"
)

// readContract reads the files of a commit as a contract that fits a link.
func readContract(link bootlink.Link, f *files) (Contract, error) {
	c := Contract{Commit: f.Commit, Folder: f.Folder, Fetched: f.Fetched}
	if f.Unfound != "" {
		return c, refuseIncomplete(nil, f.Unfound)
	}
	version, found := f.Content[bootlink.VersionFile]
	if !found {
		return c, f.refuse()
	}
	var findings []bootlink.Finding
	if c.Version, findings = bootlink.ParseBootVersion(version); len(findings) > 0 {
		return c, f.refuseFile(bootlink.VersionFile, findings)
	}
	// The version comes before the rest: another one may have other files.
	if c.Compatibility = bootlink.Compare(link.Version, c.Version); !c.Compatibility.OK {
		return c, refuseVersion(c.Compatibility)
	}
	if c.Compatibility.Warning {
		c.Warnings = append(c.Warnings, Warning{c.Compatibility.Reason, c.Compatibility.Detail})
	}
	if len(f.Missing) > 0 || len(f.Refused) > 0 {
		return c, f.refuse()
	}
	rules := f.Content[bootlink.RulesFile]
	if !utf8.Valid(rules) || bytes.IndexByte(rules, 0) >= 0 {
		return c, f.refuseFile(bootlink.RulesFile, []bootlink.Finding{{
			Reason: loop.ReasonBootMalformed, Message: "not UTF-8, or contains a NUL: write the file in UTF-8", Line: 1, Column: 1,
		}})
	}
	c.Rules = string(rules)
	if err := f.readStopLines(&c); err != nil {
		return c, err
	}
	return c, f.readSchemas(&c)
}

// refuse says what is missing, and which files are there and not read.
func (f *files) refuse() error {
	tooLarge := false
	var why []string
	for _, p := range slices.Sorted(maps.Keys(f.Refused)) {
		why = append(why, p+" "+f.Refused[p])
		tooLarge = tooLarge || !slices.Contains(f.Missing, p)
	}
	if len(f.Missing) > 0 || !tooLarge {
		return refuseIncomplete(f.Missing, strings.Join(why, "; "))
	}
	var findings []Finding
	for _, p := range slices.Sorted(maps.Keys(f.Refused)) {
		findings = append(findings, Finding{p, bootlink.Finding{Reason: loop.ReasonBootMalformed, Message: f.Refused[p], Line: 1, Column: 1}})
	}
	return refuseFindings(loop.ReasonBootMalformed, "a file of the boot repository is not read", findings)
}

func (f *files) refuseFile(name string, findings []bootlink.Finding) error {
	p := path.Join(f.Folder, name)
	return refuseFindings(loop.ReasonBootMalformed, p+" of the boot repository cannot be read", f.locate(name, findings))
}

// locate names the file of findings.
func (f *files) locate(name string, findings []bootlink.Finding) []Finding {
	var located []Finding
	for _, one := range findings {
		located = append(located, Finding{path.Join(f.Folder, name), one})
	}
	return located
}

func (f *files) readStopLines(c *Contract) error {
	c.StopLines = stopline.Defaults()
	if len(f.Several) > 0 {
		c.Warnings = append(c.Warnings, Warning{
			loop.ReasonStopLineWarning, fmt.Sprintf("no stop lines of the boot repository are used, because several files have them (%s); move one to %s",
				strings.Join(f.Several[:min(3, len(f.Several))], ", "), path.Join(f.Folder, StopLineName)),
		})
	}
	if f.Lines == "" {
		return nil
	}
	text := f.Content[f.Lines]
	lines, findings, notes := bootlink.ParseStopLines(text)
	if len(findings) > 0 {
		return f.refuseFile(f.Lines, findings)
	}
	c.StopLineFile, c.StopLineText, c.StopLines = path.Join(f.Folder, f.Lines), string(text), lines
	for _, note := range f.locate(f.Lines, notes) {
		c.Warnings = append(c.Warnings, Warning{note.Reason, note.String()})
	}
	return nil
}

func (f *files) readSchemas(c *Contract) error {
	set, problems := draft07.Compile(f.schemas())
	if len(problems) > 0 {
		var findings []Finding
		for _, p := range problems {
			message := p.Message
			if p.Pointer != "" {
				message = p.Pointer + ": " + message
			}
			findings = append(findings, Finding{
				path.Join(f.Folder, p.File), bootlink.Finding{Reason: loop.ReasonBootSchema, Message: message, Line: p.Line, Column: p.Column},
			})
		}
		return refuseFindings(loop.ReasonBootSchema, "a schema of the boot repository is invalid", findings)
	}
	c.Schemas = bootstate.Schemas{Set: set, StateFile: bootlink.StateSchemaFile, TasksFile: bootlink.TasksSchemaFile}
	return nil
}

// schemas are the texts of all schemas, by their paths below the folder.
func (f *files) schemas() map[string][]byte {
	schemas := map[string][]byte{}
	for name, text := range f.Content {
		if strings.HasPrefix(name, schemasFolder) {
			schemas[name] = text
		}
	}
	return schemas
}
