// Package sandboxtest is the contract of sandbox backends as tests: what commands do, what they cannot do, what happens
// when something breaks. Every backend's own tests call [Run].
package sandboxtest
