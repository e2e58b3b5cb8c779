package shell

// Check says why a line may not run in a shell of this name.
func Check(name string, allow, deny []string, line string) error {
	r, err := newRules(allow, deny)
	if err != nil {
		return err
	}
	r.dialects = dialects[name]
	return r.check(line)
}
