package workspace

// SetStep makes the steps of a History call f. It returns a function that undoes that.
func SetStep(f func(name string)) (undo func()) {
	old := step
	step = f
	return func() { step = old }
}
