// Package runs keeps what runs produced, for a while and for who made them: named outputs, each a row of bytes that is
// whole or not there. It knows neither what a run is made of nor who asks.
package runs
