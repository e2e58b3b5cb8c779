// Package logins keeps people's sign-ins to servers in one file, which all gateways and commands of a machine share. It knows
// nothing of OAuth: others make logins and refresh them.
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
package logins
