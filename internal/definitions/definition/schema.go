package definition

import (
	"bytes"
	"embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

//go:embed schema/*.json
var schemas embed.FS

// configSchema is the one schema that is made from the table of keys.
const configSchema = "config"

// SchemaNames returns the names of all schemas: the definition, a LoopSpec,
// the boot protocol's STATE.json and TODO.json, the org.yaml of agents with task files, heartbeat boards,
// an agent's report, and one line of pawl logs -f --json.
func SchemaNames() []string {
	return []string{configSchema, "spec", "state", "todo", "org", "boards", "report", "events"}
}

// Schema returns a JSON schema of draft-07, indented, with a newline at its end. The error
// for a name that is not in SchemaNames is a *loop.Fault with exit status 3.
func Schema(name string) ([]byte, error) {
	switch {
	case name == configSchema:
		return indentedJSON(buildConfigSchema())
	case slices.Contains(SchemaNames(), name):
		return schemas.ReadFile("schema/" + name + ".json")
	}
	return nil, &loop.Fault{
		Exit: loop.ExitNotFound, What: "print schema " + readiness.Quote(name), Why: "there is no such schema",
		Fix: "use one of: " + strings.Join(SchemaNames(), ", "), Err: loop.ErrNotFound,
	}
}

func indentedJSON(s schema) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(s)
	return b.Bytes(), err
}

// schema is the part of draft-07 that the schema of definitions uses.
type schema struct {
	Draft       string     `json:"$schema,omitempty"`
	ID          string     `json:"$id,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
	Type        any        `json:"type,omitempty"` // a name or a list of names
	Const       any        `json:"const,omitempty"`
	Enum        []any      `json:"enum,omitempty"`
	Pattern     string     `json:"pattern,omitempty"`
	Minimum     int64      `json:"minimum,omitempty"`
	Maximum     int64      `json:"maximum,omitempty"`
	Above       *int64     `json:"exclusiveMinimum,omitempty"`
	MinItems    int        `json:"minItems,omitempty"`
	MaxItems    *int       `json:"maxItems,omitempty"`
	Items       *schema    `json:"items,omitempty"`
	Properties  properties `json:"properties,omitempty"`
	Required    []string   `json:"required,omitempty"`
	AllOf       []schema   `json:"allOf,omitempty"`
	AnyOf       []schema   `json:"anyOf,omitempty"`
	Not         *schema    `json:"not,omitempty"`
	If          *schema    `json:"if,omitempty"`
	Then        *schema    `json:"then,omitempty"`
	Default     any        `json:"default,omitempty"`
	Examples    []any      `json:"examples,omitempty"`
}

// properties keep the order of the table.
type properties []property

type property struct {
	name   string
	schema schema
}

// MarshalJSON writes the properties as one object.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, one := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(one.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(one.schema); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
