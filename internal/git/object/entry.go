package object

// Modes of tree entries.
const (
	ModeFile    = 0o100644
	ModeExec    = 0o100755
	ModeSymlink = 0o120000
	ModeGitlink = 0o160000
	ModeTree    = 0o040000
)

// Entry is one file of a tree.
type Entry struct {
	Path string // slash separated, any bytes but NUL
	Mode uint32 // ModeFile, ModeExec, ModeSymlink or ModeGitlink; old trees hold 0100664
	ID   string // object name of the content; of a commit for ModeGitlink
	Size int64  // bytes; 0 for ModeGitlink
}

// PlainMode maps what old versions of git wrote to what a checkout can hold.
func PlainMode(mode uint32) uint32 {
	if mode&0o170000 == 0o100000 {
		return ModeFile | mode&0o111
	}
	return mode
}
