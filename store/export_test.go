package store

// ParseKeys is there for its fuzz target.
var ParseKeys = parseKeys
