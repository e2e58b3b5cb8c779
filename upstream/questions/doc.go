// Package questions has the forms of what servers ask in the middle of calls: what a client declares that it can be asked, which
// questions and answers are valid, and what it says to a server that asks for directories. It asks nobody.
package questions
