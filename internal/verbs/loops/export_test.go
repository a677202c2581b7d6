package loops

// StagedName is for tests.
var StagedName = stagedName
