// Package results reads what servers answer to calls: it is the only place that decides what data a tool's result becomes, which
// answers are errors, and which stand for a task or for questions. It makes no request.
package results
