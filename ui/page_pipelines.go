package ui

// Pipelines are the saved pipelines.
type Pipelines interface{ Placeholder() }
