package local

// Options set up a [Driver]. Worker is required.
type Options struct {
	// Worker is the worker's argv: the absolute path of its binary, and what makes the binary a worker if it can be
	// something else too.
	Worker []string

	// Scratch is the directory in which private directories of commands are made; the system's directory for
	// temporary files if empty. It should be on a disk.
	Scratch string

	// Workspace is the absolute path of the directory whose files commands may read, its symbolic links resolved; empty:
	// they read none.
	Workspace string

	// Added are the operator's programs, the Text of those of the pool.
	Added string
}
