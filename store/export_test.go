package store

// ParseKeys is there for its fuzz target.
var ParseKeys = parseKeys

// Taken is there because no network file system is in the tests.
var Taken = (*Directory).taken
