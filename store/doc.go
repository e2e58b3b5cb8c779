// Package store keeps objects that several gateways share: all that outlives a call, for the gateway that gets the next
// one. An object is written once and never changes. To replace something a gateway writes an object with the next number,
// and the first one to exist wins; no clock and no lock is shared. The package knows nothing of what the objects are.
//
// # Decisions
//
//   - Of several writers of one name, one wins, in a single step of the store. In a directory that is a hard link: a
//     rename would replace, and network file systems offer no other atomic step. In S3 it is a conditional write (If-None-Match: *).
//     Both are tried when the store is opened, and a store that ignores them is refused.
//   - An answer can be lost after the step. The writer then finds an object and recognizes its own by the identity of the file, or
//     by a random value in the metadata; ErrExists always means another writer.
//   - A directory has plain files at the names of objects. An object that is being written is in the folder ~drafts, which is no name, and
//     is removed an hour after its writer has died, by the clock of the file system.
//   - Objects are whole in memory, at most 8 MiB: no user has a longer one. So each request to S3 has a time limit, its hash is signed, and
//     it is sent again after a failure that may pass.
//   - Objects are sealed above every store, by one code: with AES-256-GCM, with the name as additional data. Each has a key of its
//     own, derived (HKDF-SHA256) from a key of the operator, a random salt, and the rest of the header: format version and key id. So
//     one nonce is enough. The standard library has all that this needs.
//   - The list of a store is not sealed: it shows names, sizes and times, and can leave out objects or bring old ones back.
package store
