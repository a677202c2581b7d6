package loop

import "time"

// NoticeKind says whether somebody has to do something about a notice.
type NoticeKind string

// The kinds of notices.
const (
	NoticeNeedsYou NoticeKind = "needs_you"
	NoticeInforms  NoticeKind = "information"
)

// NoticeEvent says what a notice is about. Scripts match it.
type NoticeEvent string

// The events that people are told.
const (
	NoticeApproval  NoticeEvent = "approval"      // a yes or no is asked for
	NoticeWaiting   NoticeEvent = "waiting_human" // a run ended because it needs a person
	NoticeEscalated NoticeEvent = "escalated"     // a step was handed to a person
	NoticeGaveUp    NoticeEvent = "gave_up"       // a step failed in the same way too often
	NoticeBudget    NoticeEvent = "budget"        // no budget pays for the runs of a loop
	NoticeLate      NoticeEvent = "late"          // a loop did not come when it was due
	NoticeFailing   NoticeEvent = "failing"       // the runs of a loop end without success
	NoticeUnpushed  NoticeEvent = "unpushed"      // the memory of a loop is only on this machine
	NoticeLanded    NoticeEvent = "landed"        // a change is on its base
	NoticeUngated   NoticeEvent = "ungated"       // work that no gate has judged was pushed
	NoticeProposed  NoticeEvent = "proposed"      // a branch is there, and nothing is asked
	NoticeTest      NoticeEvent = "test"          // somebody tries a channel
)

// Kind says whether somebody has to do something about the event.
func (e NoticeEvent) Kind() NoticeKind {
	switch e {
	case NoticeApproval, NoticeWaiting, NoticeEscalated, NoticeGaveUp, NoticeBudget, NoticeLate, NoticeUnpushed:
		return NoticeNeedsYou
	case NoticeFailing, NoticeLanded, NoticeUngated, NoticeProposed, NoticeTest:
	}
	return NoticeInforms
}

// Lasts reports whether the event has an end, which is told too. Any other has happened.
func (e NoticeEvent) Lasts() bool {
	return e == NoticeApproval || e == NoticeBudget || e == NoticeLate || e == NoticeFailing || e == NoticeUnpushed
}

// Notice is a message to people. Its texts may hold what an agent wrote: they are data
// wherever they are shown.
type Notice struct {
	ID    string      `json:"id"`
	Seq   int64       `json:"seq,omitempty"` // order among all notices of the store, with gaps
	Key   string      `json:"key"`           // of its matter: while that lasts, it is told once
	Kind  NoticeKind  `json:"kind"`
	Event NoticeEvent `json:"event"`
	Over  bool        `json:"over"` // the matter of an earlier notice with this key is over
	Title string      `json:"title"`
	Body  string      `json:"body,omitempty"`

	LoopID    string    `json:"loop_id,omitempty"`
	Loop      string    `json:"loop,omitempty"` // its name
	RunID     string    `json:"run_id,omitempty"`
	Run       string    `json:"run,omitempty"`       // LOOP#N
	Workspace string    `json:"workspace,omitempty"` // its id
	Root      string    `json:"root,omitempty"`      // where the workspace lies, on the node of the run if there is one
	Answer    Command   `json:"answer,omitzero"`     // the command with which one answers, or looks
	At        time.Time `json:"at"`
	Ended     time.Time `json:"ended,omitzero"` // when its matter was over; zero: it lasts
}

// ChannelKind is a way in which notices reach people.
type ChannelKind string

// The kinds of channels.
const (
	ChannelCommand ChannelKind = "command" // a line for the shell
	ChannelWebhook ChannelKind = "webhook" // a POST with a signature
	ChannelNtfy    ChannelKind = "ntfy"    // a topic of an ntfy server
	ChannelDesktop ChannelKind = "desktop" // the notifications of a desktop
)

// ChannelKinds are the kinds of channels that there are.
var ChannelKinds = []ChannelKind{ChannelCommand, ChannelWebhook, ChannelNtfy, ChannelDesktop}

// OfHost reports whether a channel of this kind belongs to the node that it was added on:
// it runs a program there.
func (k ChannelKind) OfHost() bool { return k == ChannelCommand || k == ChannelDesktop }

// Channel says where notices are sent, and which. It holds no secret, only where one is.
type Channel struct {
	Name       string      `json:"name"` // unique in a store
	Kind       ChannelKind `json:"kind"`
	Target     string      `json:"target,omitempty"`      // the line of a command, the URL of a webhook or topic
	Only       NoticeKind  `json:"only,omitempty"`        // empty: all notices
	SecretEnv  string      `json:"secret_env,omitempty"`  // variable with the secret of a webhook or the token of ntfy
	SecretFile string      `json:"secret_file,omitempty"` // file with it
	Click      string      `json:"click,omitempty"`       // URL that a tap on a message of ntfy opens
	Node       string      `json:"node,omitempty"`        // id of the only node that delivers; empty: any
	By         Actor       `json:"by"`                    // who added it
	Created    time.Time   `json:"created"`
}

// Wants reports whether the channel is told notices of a kind.
func (c Channel) Wants(k NoticeKind) bool { return c.Only == "" || c.Only == k }

// DeliveryState is the state of a delivery.
type DeliveryState string

// States of a delivery. Everything but pending is final.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryGaveUp    DeliveryState = "gave_up"
	DeliveryDropped   DeliveryState = "dropped" // its matter was over, or its channel removed, before it was told
)

// NoticeDelivery is one notice on its way through one channel.
type NoticeDelivery struct {
	NoticeID string        `json:"notice"`
	Channel  string        `json:"channel"`
	State    DeliveryState `json:"state"`
	Tries    int64         `json:"tries"`           // that have begun
	Due      time.Time     `json:"due,omitzero"`    // of the next try, by the database's clock; zero: none
	Error    string        `json:"error,omitempty"` // of the last try
	Ended    time.Time     `json:"ended,omitzero"`
}
