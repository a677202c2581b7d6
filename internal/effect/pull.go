package effect

// Kinds of effects that show a proposal on a forge.
const (
	KindPush        = "push"         // the branch is sent to a remote
	KindPullRequest = "pull_request" // and a pull request is opened for it
)

// Arguments of these, beside those of a land effect.
const (
	ArgRemote = "remote" // name of the remote in the repository's configuration
	ArgTitle  = "title"
	ArgBody   = "body"
)

// ResultURL is the key of the pull request's address in the result.
const ResultURL = "url"
