package loops

import (
	"cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Report is the findings in definitions, schema pawl.check/v1.
type Report struct {
	Data []Finding  `json:"data"`
	Meta ReportMeta `json:"meta"`
}

// Finding is one finding with its place.
type Finding struct {
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Key      string `json:"key,omitempty"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`

	Reason loop.Reason `json:"reason,omitempty"` // the class of what a run would end with
}

// ReportMeta sums up a Report.
type ReportMeta struct {
	Count    int             `json:"count"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	Score    int             `json:"score"` // the lowest
	Min      int             `json:"min"`
	Ready    bool            `json:"ready"` // all of them
	Tier     string          `json:"tier,omitempty"`
	Switches []string        `json:"switches,omitempty"` // paths that stop the loop, if there are more than the usual ones
	Paused   string          `json:"paused,omitempty"`   // what stops all loops of the workspace now
	PausedBy loop.KillSwitch `json:"paused_by,omitzero"` // the same as a value
	Unknown  []Finding       `json:"unknown,omitempty"`
	Notes    []Finding       `json:"notes,omitempty"`
	Loops    []CheckedResult `json:"loops,omitempty"` // only if there is more than one
	Unread   int             `json:"unreadable,omitempty"`
	Schema   string          `json:"schema"`
}

// CheckedResult is the result for one of several definitions.
type CheckedResult struct {
	Loop     string `json:"loop"`
	File     string `json:"file"`
	Tier     string `json:"tier"`
	Score    int    `json:"score"`
	Errors   int    `json:"errors"`
	Warnings int    `json:"warnings"`
	Ready    bool   `json:"ready"`
}

// usualSwitches is the number of paths that stop every loop.
const usualSwitches = 2

// NewReport sums up the checked definitions. Least is the lowest score of a ready one.
// Unread is how many definitions could not be read: they have no score, and the report
// is not ready.
func NewReport(checked []Checked, unread, least int, strict bool) Report {
	r := Report{Data: []Finding{}, Meta: ReportMeta{Min: least, Ready: unread == 0, Score: 100, Unread: unread, Schema: "pawl.check/v1"}}
	if len(checked) == 0 {
		r.Meta.Score = 0
	}
	for _, c := range checked {
		r.Data = append(r.Data, withPlaces(c, c.Findings())...)
		r.Meta.Unknown = append(r.Meta.Unknown, withPlaces(c, c.UnknownKeys())...)
		r.Meta.Notes = append(r.Meta.Notes, withPlaces(c, c.Notes())...)
		one := CheckedResult{c.Name, c.Shown, c.Verdict.Tier, c.Verdict.Score(), c.Errors(), c.Verdict.Warnings, c.Ready(least, strict)}
		r.Meta.Errors += one.Errors
		r.Meta.Warnings += one.Warnings
		r.Meta.Score = min(r.Meta.Score, one.Score)
		r.Meta.Ready = r.Meta.Ready && one.Ready
		r.Meta.Loops = append(r.Meta.Loops, one)
	}
	r.Meta.Count = len(r.Data)
	if len(checked) == 1 && unread == 0 {
		r.Meta.Tier, r.Meta.Loops = checked[0].Verdict.Tier, nil
		if len(checked[0].Switches) > usualSwitches {
			r.Meta.Switches = checked[0].Switches
		}
	}
	return r
}

// withPlaces adds the file to each finding.
func withPlaces(c Checked, findings []readiness.Finding) []Finding {
	var list []Finding
	for _, f := range findings {
		list = append(list, Finding{f.Severity, f.Message, f.Key, cmp.Or(f.File, c.Shown), f.Line, f.Column, f.Reason})
	}
	return list
}
