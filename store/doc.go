// Package store keeps objects that several gateways share: what outlives a call is found by whichever gateway gets the next
// one. An object is written once and never changes. Whoever needs to replace something writes an object with the next number,
// and the one that exists first wins; no clock and no lock is shared. The package knows nothing of what the objects are.
//
// # Decisions
//
//   - Of several writers of one name, one wins, in a single step of the store: a hard link in a directory, since a rename
//     would replace, and network file systems have no other one; a conditional write (If-None-Match: *) in S3. Both are tried when
//     the store is opened, and a store that ignores them is refused.
//   - An answer can be lost after the step. The writer then finds its own object in the way, and tells it from that of another
//     one: by the identity of the file, or by a random value in the metadata. So ErrExists is always about somebody else.
//   - A directory has plain files at the names of objects. What is being written is in the folder ~drafts, which is no name, and
//     is removed an hour after its writer has died, by the clock of the file system.
//   - A request to S3 has no bound as a whole, since objects have many sizes. It ends when its server is silent, and with its
//     context. An object is held in memory to be sent again, up to 8 MiB; that also lets its hash be signed.
//   - Objects are sealed above every store, by one code: with AES-256-GCM, in chunks of 64 KiB, so that a part is read without the
//     rest. The standard library has all that this needs. DARE (minio/sio) authenticates neither names nor sizes.
//   - Each object has a key of its own, derived (HKDF-SHA256) from a key of the operator, a random salt, and the rest of the header:
//     format version, key id and size. Its chunks are numbered, which makes the nonces, and each is authenticated with the name.
//     A tag of the header alone makes the size known before a chunk is read: an object that is cut at the end of a chunk is told
//     from one that ends there, even where the part that is read lies beyond.
//   - The list of a store is not sealed: it shows names, sizes and times, and can leave out objects or bring old ones back.
package store
