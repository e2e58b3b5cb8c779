package stages

import "testing"

// TestTotal: the number of items is exact at the end of a stage, estimated while all of its input has been read, and unknown before.
func TestTotal(t *testing.T) {
	for name, test := range map[string]struct {
		r     StageReport
		whole bool
		want  int64
	}{
		"lines":          {StageReport{Items: 1, BytesIn: 600, ahead: 589}, true, 50},
		"an array":       {StageReport{Items: 1, BytesIn: 7, ahead: 4}, true, 2},
		"all have begun": {StageReport{Items: 9, BytesIn: 90}, true, 9},
		"none has":       {StageReport{BytesIn: 90, ahead: 90}, true, 0},
		"more may come":  {StageReport{Items: 1, BytesIn: 600, ahead: 589}, false, 0},
		"the end":        {StageReport{Items: 9, BytesIn: 90, Millis: 1}, false, 9},
	} {
		if got := test.r.total(test.whole); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
