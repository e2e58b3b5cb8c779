package stages

// Scope, Step: see the engine.
type Scope struct{}
type Step struct{}
