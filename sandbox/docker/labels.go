package docker

// The labels by which containers of ours are known.
const (
	labelInstance = "mcsh.instance" // which gateway's: whatever else has the label is nobody's, once that is gone
	labelRole     = "mcsh.role"     // what it is for
)
