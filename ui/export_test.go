package ui

import (
	"context"

	"github.com/mcsh-dev/mcsh/stages"
)

// Policy is the policy of all pages.
const Policy = policy

// Complete and Problems are what answers the editor.
func Complete(ctx context.Context, w Words, text string) int {
	return len(complete(ctx, w, text, text))
}

// Problems returns the number of mistakes that the editor shows.
func Problems(text string, errs []*stages.Error) int { return len(problems(text, errs)) }
