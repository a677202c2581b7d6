package loop

// ChangeKind says what a protocol asks the engine to do with its memory.
type ChangeKind string

// Kinds of changes. A protocol never writes itself.
const (
	ChangeEdit   ChangeKind = "edit"   // replace a file's content, three-way against Before
	ChangeAppend ChangeKind = "append" // add one physical line at the end of a file
	ChangeAside  ChangeKind = "aside"  // keep an unreadable file beside its place, under the name in Content
	ChangeStep   ChangeKind = "step"   // create or update a step row
)

// Change is one change of a protocol's memory. File changes are rows first and
// files second: a crash between the two is healed from the row.
type Change struct {
	Kind    ChangeKind `json:"kind"`
	Path    string     `json:"path,omitempty"`    // relative to the workspace, slash separated
	Before  string     `json:"before,omitempty"`  // edit: the content that Content was made from, empty if there was no file
	Content string     `json:"content,omitempty"` // edit: new content; append: the line; aside: the new name
	Step    *Step      `json:"step,omitempty"`
}

// PendingChange is a file change that is recorded and perhaps not yet applied.
type PendingChange struct {
	RunID string
	Seq   int
	Change
}

// EffectRequest asks for something that leaves the workspace or moves a
// branch. Key makes it happen once, however often it is asked for.
type EffectRequest struct {
	Kind string            `json:"kind"`
	Key  string            `json:"key"`
	Args map[string]string `json:"args,omitempty"`
}

// Effect is the row before and after.
type Effect struct {
	RunID  string            `json:"run_id"`
	Seq    int               `json:"seq"`
	Kind   string            `json:"kind"`
	Key    string            `json:"key"`
	Args   map[string]string `json:"args,omitempty"`
	State  EffectState       `json:"state"`
	Result map[string]string `json:"result,omitempty"`
	Error  string            `json:"error,omitempty"`
}
