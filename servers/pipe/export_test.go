package pipe

// Words returns the words of a line of one command, and whether the guard's parser accepts it.
func Words(line string) ([]string, bool) {
	commands, err := parse(line)
	if err != nil || len(commands) != 1 {
		return nil, false
	}
	return append([]string{commands[0].Name}, commands[0].Args...), true
}
