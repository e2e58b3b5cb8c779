// Package logins keeps people's sign-ins to servers in one place: a file, which all gateways and commands of a machine share, or a
// store, which gateways of several machines share. It knows nothing of OAuth: others make logins and refresh them.
//
// # The file
//
// The file is sealed with AES-256-GCM. Its key is in a key file of the operator, or in the keyring of the user. Where there is
// neither, the file is readable for its owner only, and [Store.Place] says so. A file whose key is lost stays as it is: every
// method returns an error that says what to do.
//
// The file is replaced whole. Readers take no lock, and read it again when it has changed. Writers take one lock for the moment
// of the change. A refresh takes a lock of its own login, so that a slow issuer delays neither other refreshes nor readers.
//
// A refresh token that can be used once is lost if the process dies between the issuer's answer and the rename of the file. No
// order of steps avoids that. The store keeps the time short: it writes the file before the refresh, so that a full disk or a
// lost key shows while the old token counts, and the end of the caller does not end a refresh. If the file still cannot be
// written after the answer, the process uses the fresh login and goes on trying to write it, at the latest when the store closes.
//
// # The shared store
//
// It has no locks, its clocks are not compared, and its own seal protects the logins.
//
//   - Each version of the list is an object, logins/list/NUMBER, and the next one is written if nobody has written it. Two versions
//     stay. A gateway that was slow may find a number free again that others have written and deleted. So a version names the last
//     32 changes, and a change counts when it is in the newest version, however its write has ended.
//   - A gateway that refreshes or deletes a login claims it as it is, with logins/refresh/HASH/NUMBER over its key and tokens: the refreshed one
//     has other claims. The highest number counts, so that earlier ones can be deleted. The end of a claim is an object, too: when the
//     issuer fails, others go on at once.
//   - After the claim the list is written as it is. A list that is read may be an old one on a network file system; a write that
//     succeeds proves that the login is still the claimed one, and that the fresh one can be written.
//   - A claim without an end is one of a dead gateway when it has not changed for two minutes by the clock of a gateway that waits: its holder
//     asks the issuer within 10 s or not at all, has an answer within a minute, and writes it within 30 s. A wait ends after 150 s.
//     A fresh login that cannot be written keeps its claim for that long.
//   - Two cases remain in which a refresh token is used twice, so that the issuer may end the login and the person signs in again: the holder
//     is cut off from the store for two minutes before it has written a fresh login, or it is paused for two minutes between its last look
//     at the clocks and its question.
//   - Readers list at most once a second, so that calls are not slower by a list each. If the store does not answer, they use
//     what they have read for 30 s: a short outage fails no call, and a refresh needs the store.
package logins
