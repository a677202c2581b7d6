package orgdef

import (
	"slices"
	"strconv"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// The keys of the format loop-config that are not keys of every loop.
const (
	keyEnabled    = "enabled"
	keyInterval   = "interval"
	keyReads      = "reads"
	keyWrites     = "writes"
	keyEscalation = "escalation"
	keyCycleLog   = "cycle_log"
	keyPrimitive  = "primitive"
)

// Primitive is the value of the key primitive.
const Primitive = "loop-config"

// ownKeys are the keys of the format that a definition does not have, or with another
// meaning.
var ownKeys = []string{keyEnabled, keyInterval, keyReads, keyWrites, keyEscalation, keyCycleLog, keyPrimitive}

// configKeys are all keys of the format.
var configKeys = append([]string{"max_step_timeout", "on_blocked", "on_failure", "retry_blocked_after"}, ownKeys[:6]...)

// defaultValue is what a file with fields: says of a key.
type defaultValue struct {
	key   string
	text  string
	items []string // of a list
	list  bool
}

// usualDefaults are those of the format, for the keys that are not keys of every loop.
var usualDefaults = []defaultValue{
	{key: keyEnabled, text: "true"},
	{key: keyReads, items: []string{"TASKS.md", "CONTEXT.md", "HEARTBEAT.md"}, list: true},
	{key: keyWrites, items: []string{"TASKS.md", "HEARTBEAT.md"}, list: true},
	{key: keyCycleLog, text: "true"},
}

// readDefaults reads the defaults of a file with fields:. Any other file is ignored.
func (o *Organisation) readDefaults(s source, err error) {
	if err != nil {
		o.problem = err
		return
	}
	head, _, ok := splitFrontMatter(s.text)
	if !ok {
		return
	}
	o.sources = append(o.sources, s)
	top, err := definition.ParseNested(s.name, head)
	r := mapReader{s, &o.Findings}
	if err != nil {
		o.problem = err
		return
	}
	fields := top.Get("fields")
	if fields == nil {
		if top.Get(keyPrimitive).Text() == Primitive {
			r.warn(readiness.Value{}, "this file is not used: it has no fields: with defaults, and an agent's own file is %s", AgentFile("ID", LoopFile))
		}
		return
	}
	known := map[string]func(*definition.Node){}
	for _, key := range configKeys {
		known[key] = func(field *definition.Node) {
			where := "fields." + key
			r.read(field, where+".", map[string]func(*definition.Node){
				"type": skip, "required": skip, "enum": skip, "description": skip,
				"default": func(n *definition.Node) { o.addDefault(r, key, n) },
			})
		}
	}
	r.read(top, "", map[string]func(*definition.Node){
		keyPrimitive: skip, "description": skip,
		"fields": func(n *definition.Node) { r.read(n, "fields.", known) },
	})
}

// addDefault keeps a default that may be one.
func (o *Organisation) addDefault(r mapReader, key string, n *definition.Node) {
	d := defaultValue{key: key, list: key == keyReads || key == keyWrites}
	switch {
	case d.list:
		for _, v := range n.Texts() {
			d.items = append(d.items, v.Text)
		}
	case n.Map || n.List:
		r.refuse(n.Value, "fields.%s.default: expected one value", key)
		return
	default:
		d.text = n.Value.Text
	}
	if problem := checkValue(key, d.text); problem != "" {
		r.refuse(n.Value, "fields.%s.default: %s %s", key, readiness.Quote(d.text), problem)
		return
	}
	if !slices.ContainsFunc(o.defaults, func(other defaultValue) bool { return other.key == key }) {
		o.defaults = append(o.defaults, d)
	}
}

// checkValue says what is wrong with the value of a key of the format; empty if nothing is.
func checkValue(key, text string) string {
	field, known := definition.LookupField(key)
	switch {
	case key == keyEnabled || key == keyCycleLog:
		if text != "true" && text != "false" {
			return "is unknown; write true or false"
		}
	case key == keyInterval:
		if _, err := schedule.Parse(text); err != nil {
			return "is not an interval: " + err.Error()
		}
	case key == "retry_blocked_after":
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			return "is not a whole number from 1"
		}
	case key == "max_step_timeout":
		if _, err := definition.ParseDuration(text); err != nil {
			return err.Error()
		}
	case key != keyEscalation && known && len(field.Values) > 0 && !slices.Contains(field.Values, text):
		return "is unknown; write one of " + joinWords(field.Values)
	}
	return ""
}
