package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

func TestTable(t *testing.T) {
	report := stages.Report{Elapsed: 8400 * time.Microsecond, Stages: []stages.StageReport{
		{Place: "1", Label: stages.Label{Kind: "tool", Server: "demo", Name: "list_orders"}, Calls: 1, Returned: 31_000, BytesOut: 31_000, Busy: 2.14},
		{Place: "2", Label: stages.Label{Kind: "parallel"}, BytesIn: 31_000, BytesOut: 12_300_000, Millis: 1004.5, Stages: []stages.StageReport{
			{Place: "2.names.1", Branch: "names", Label: stages.Label{Kind: "tool", Server: "demo", Name: "get_customer"}, Items: 9, Calls: 9, Returned: 2082, BytesIn: 117, BytesOut: 2100, Busy: 4},
		}},
		{Place: "3", Label: stages.Label{Kind: "command", Name: "with-a-name-that-nobody-would-give-to-a-command"}, BytesIn: 12_300_000, BytesOut: 96},
	}}
	want := `
#          stage                                         items  calls       in      out  busy ms
1          tool demo/list_orders                                    1      0 B  31.0 kB      2.1
2          parallel                                                    31.0 kB  12.3 MB
2.names.1    names: tool demo/get_customer                   9      9    117 B   2.1 kB      4.0
3          command with-a-name-that-nobody-would-give-…                12.3 MB     96 B
3 stages, 8 ms; 96 B out of 33.1 kB seen
`
	if diff := cmp.Diff(want, "\n"+tableOf(report, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1 << 40: "1.1 TB", 1 << 62: "4611.7 PB",
	} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
