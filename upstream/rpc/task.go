package rpc

// TasksExtension is the extension of the newer protocol by which calls of tools are answered with tasks.
const TasksExtension = "io.modelcontextprotocol/tasks"

// Methods of requests about a task.
const (
	TaskGet    = "tasks/get"
	TaskUpdate = "tasks/update"
	TaskCancel = "tasks/cancel"
)

// The status of a task.
const (
	TaskWorking   = "working"
	TaskAsks      = "input_required"
	TaskCompleted = "completed"
	TaskFailed    = "failed"
	TaskCancelled = "cancelled"
)
