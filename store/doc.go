// Package store keeps objects that several gateways share: what outlives a call is found by whichever gateway gets the next
// one. An object is written once and never changes. Whoever needs to replace something writes an object with the next number,
// and the one that exists first wins; no clock and no lock is shared.
package store
