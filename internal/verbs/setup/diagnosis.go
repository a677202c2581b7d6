package setup

import (
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Diagnosis is the result of the doctor, schema pawl.doctor/v1.
type Diagnosis struct {
	Data []DoctorRow   `json:"data"`
	Meta DiagnosisMeta `json:"meta"`
}

// DiagnosisMeta sums up a Diagnosis.
type DiagnosisMeta struct {
	Mode    string `json:"mode"` // offline, live
	OK      int    `json:"ok"`
	Warn    int    `json:"warn"`
	Bad     int    `json:"bad"`
	WillRun bool   `json:"will_run"`
	Tier    string `json:"tier,omitempty"` // of one loop
	Unread  int    `json:"unreadable,omitempty"`
	Schema  string `json:"schema"`
}

// Diagnose sums up rows. Unread is how many definitions could not be read.
func Diagnose(rows []DoctorRow, checked []loops.Checked, unread int, live bool) Diagnosis {
	m := DiagnosisMeta{Mode: "offline", Unread: unread, Schema: "pawl.doctor/v1"}
	if live {
		m.Mode = "live"
	}
	if len(checked) == 1 && unread == 0 {
		m.Tier = checked[0].Verdict.Tier
	}
	for _, r := range rows {
		switch r.State {
		case readiness.StateOK:
			m.OK++
		case readiness.StateWarn:
			m.Warn++
		default:
			m.Bad++
		}
	}
	m.WillRun = m.Bad == 0 && unread == 0
	return Diagnosis{Data: shape.List(rows), Meta: m}
}
