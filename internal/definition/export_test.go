package definition

// CheckSimple reports whether a definition is read without the YAML parser, and fails the
// test if it is then read differently.
var CheckSimple = checkSimple
