package loop

// Denial is something that a definition forbids by name, also where a human would be
// asked otherwise.
type Denial string

// What can be denied.
const (
	DenyForcePush   Denial = "force_push"
	DenyPush        Denial = "push"
	DenyMerge       Denial = "merge"
	DenyDeploy      Denial = "deploy"
	DenyNetwork     Denial = "network"     // hosts other than the model's
	DenyDestructive Denial = "destructive" // commands that cannot be taken back, and the deletion of files of the base
)

// Denials are all of them.
var Denials = []Denial{DenyForcePush, DenyPush, DenyMerge, DenyDeploy, DenyNetwork, DenyDestructive}
