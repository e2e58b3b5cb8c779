// Package archtest keeps the house in order: its tests check who imports whom, where heavy dependencies enter, what
// nobody may do, how long files and functions are, and that everything is documented. It knows the source tree and
// nothing of what the code does.
package archtest
