// Package pending signs people in to servers from within a running gateway: it keeps the sign-ins that have begun, serves the
// pages that people open for them, and keeps the logins that they end with. Package signin knows how a sign-in goes, and package
// logins where its tokens are.
//
// # Decisions
//
//   - Only the person who was asked may open the page. The address of a page is a secret of 256 bits. Its button binds the
//     sign-in to the browser with a cookie, once: another browser that has the address, or the address of the issuer, comes to a
//     redirected address that counts only with the cookie. So an address of the issuer that somebody sends to a person, and a
//     stolen redirected address, are worth nothing (RFC 9700). Nothing but its words stops a person who gets the address of the
//     page itself from somebody: only those who may control the gateway can begin one.
//   - A page changes nothing before its button is pressed: programs that look at links in messages do not use it up, and a page
//     of somebody else cannot press it.
//   - Every wrong address gets the same answer.
//   - A redirected address with the wrong state, issuer or browser does not end a sign-in: the right one may still come.
//   - All is in memory. After a restart of the gateway nobody can finish a sign-in, and the person begins another one.
package pending
