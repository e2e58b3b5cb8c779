package logins

// SetStep makes the steps of a change call f. It returns a function that undoes that.
func SetStep(f func(name string)) (undo func()) {
	old := step
	step = f
	return func() { step = old }
}

// ReadContent reads the content of a file, as [Store] does.
func ReadContent(file, key []byte) ([]Login, error) {
	h, rest, err := parseHeader(file)
	if err != nil {
		return nil, err
	}
	return h.open(key, rest)
}

// WriteContent makes the content of a file.
func WriteContent(kind string, key []byte, list []Login) ([]byte, error) {
	return seal(header{kind, "-", fingerprint(key)}, key, list)
}
