package temporal

import (
	"log/slog"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// TestRecordedJobs: jobs that began with an earlier version go on with this one. A history that fails shows that the workflow needs a new name.
func TestRecordedJobs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %d histories, %v", len(files), err)
	}
	for _, file := range files {
		r := worker.NewWorkflowReplayer()
		r.RegisterWorkflowWithOptions(job, workflow.RegisterOptions{Name: workflowName})
		if err := r.ReplayWorkflowHistoryFromJSONFile(warnings{slog.New(slog.NewTextHandler(t.Output(), nil))}, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
