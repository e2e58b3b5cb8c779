// Package workspace confines callers to a directory: the kernel resolves every path inside it (os.Root), so "..", absolute
// paths and symbolic links cannot leave it, even if the tree changes meanwhile. The package also knows which entries
// listings leave out. It knows nothing of MCP or of tools.
//
// # Decisions
//
//   - tee saves first and passes on the saved bytes, so a later stage can neither stop it half-way nor undo it. A file
//     is a draft in `.mcsh/tmp` until data and mirror are on the disk, and one lock for each workspace orders the
//     writers of all processes. With `append` the draft is appended to the file in place; the lock's file holds the
//     old sizes, so the next writer can remove the partial data of a killed one.
//   - Every write takes the same steps: the check of the place (save.go, gitdir.go), a draft of the data (draft.go), and
//     under the lock (commit.go) the mirror, the count (written.go) and the change of the file: replaced or joined there,
//     or appended to (append.go).
package workspace
