// Package enginetest holds the tests of the engine on Temporal: they run the server mcsh-temporal-dev, and workers in processes of
// their own that they kill. They do not link the server, which would have to be compiled again for the race detector.
package enginetest
