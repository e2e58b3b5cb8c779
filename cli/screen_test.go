package cli

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// written is a terminal that keeps each write.
type written struct {
	mu   sync.Mutex
	list []string
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, string(p))
	return len(p), nil
}

// TestScreen: a terminal shows the servers that start and the stages of the run, in place and within its width, and nothing
// of it is left. A server's words cannot act on the terminal.
func TestScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		servers := func() []upstream.ServerStatus {
			git := upstream.ServerStatus{Server: "git", Status: upstream.StatusReady}
			if time.Since(begun) < 1400*time.Millisecond {
				git.Status = upstream.StatusStarting
			}
			return []upstream.ServerStatus{git, {Server: "idle", Status: upstream.StatusIdle}, {Server: "slow", Status: upstream.StatusStarting}}
		}
		w := &written{}
		s := newScreen(w, func() (int, int) { return 80, 24 }, servers)
		go s.draw()
		time.Sleep(1350 * time.Millisecond)
		s.follow(time.Now(), func() []stages.StageReport {
			return []stages.StageReport{
				{Place: "1", Label: stages.Label{Kind: "tool", Server: "git", Name: "git_log"}, Calls: 1, BytesOut: 3100, Busy: 1450, Tool: stages.ToolProgress{Done: 3, Total: 9, Message: "page \x1b[2J" + strings.Repeat("3", 60)}},
				{Place: "2", Label: stages.Label{Kind: "tool", Server: "git", Name: "git_show"}, Items: 320, OK: 300, Failed: 3, Calls: 320},
				{Place: "3", Label: stages.Label{Kind: "command", Name: "sort"}},
			}
		})
		time.Sleep(200 * time.Millisecond)
		s.stop()
		s.stop()
		time.Sleep(time.Minute)
		const start = "\r\x1b[J"
		want := []string{
			start + "working for 0 s: starting 2 servers: git 0 s, slow 0 s",
			start + "working for 0 s: starting 2 servers: git 0 s, slow 0 s",
			start + "working for 0 s: starting 2 servers: git 0 s, slow 0 s",
			start + "working for 0 s: starting 2 servers: git 0 s, slow 0 s",
			start + "working for 1 s: starting 2 servers: git 0 s, slow 0 s",
			start + "working for 1 s: starting 2 servers: git 1 s, slow 1 s",
			start + "working for 1 s: starting 1 server: slow 1 s\n" +
				"  1 tool git/git_log   1 call  3.1 kB  1.4 s  3 of 9  [###.......]  page \\x1b[2\n" +
				"  2 tool git/git_show  303 items done  2020/s  0 B\n" +
				"  3 command sort       0 B",
			"\r\x1b[3A\x1b[J",
		}
		if diff := cmp.Diff(want, w.list); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestScreenQuick: what is done at once shows nothing.
func TestScreenQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{}
		s := newScreen(w, nil, nil)
		go s.draw()
		time.Sleep(screenAfter - time.Millisecond)
		s.stop()
		if len(w.list) > 0 {
			t.Errorf("it showed %q", w.list)
		}
	})
}

// TestScreenLines: a line has only what it can tell, within the columns that there are; of many stages some are counted.
func TestScreenLines(t *testing.T) {
	s := newScreen(nil, func() (int, int) { return 20, 24 }, func() []upstream.ServerStatus { return nil })
	s.follow(time.Now(), func() []stages.StageReport {
		return []stages.StageReport{{Place: "1", Label: stages.Label{Kind: "tool", Name: "\x1b]0;évil\x07"}, Tool: stages.ToolProgress{Message: "ok"}}, {Place: "2", Label: stages.Label{Kind: "漢字漢字漢字漢字漢字"}}}
	})
	want := []string{"working for 0 s", `  1 tool \x1b…  0 B`, "  2 漢字漢字…   0 B"}
	if diff := cmp.Diff(want, s.lines(time.Now(), nil)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	many := stageLines(make([]stages.StageReport, 100), time.Second, 80, screenRows)
	if len(many) != screenRows+1 || many[screenRows] != "… and 88 more stages" {
		t.Errorf("got %q", many)
	}
}

// TestScreenFigures: on a narrow terminal labels are cut, and the figures are all there.
func TestScreenFigures(t *testing.T) {
	list := []stages.StageReport{
		{Place: "1", Label: stages.Label{Kind: "tool", Name: strings.Repeat("long", 20)}, Items: 320, OK: 303, BytesOut: 3100, Busy: 1450},
		{Place: "2", Label: stages.Label{Kind: "command", Name: "sort"}},
	}
	for columns, want := range map[int][]string{
		79: {"  1 tool longlonglonglonglonglonglonglon…  303 items done  202/s  3.1 kB  1.4 s", "  2 command sort                           0 B"},
		59: {"  1 tool longlonglon…  303 items done  202/s  3.1 kB  1.4 s", "  2 command sort       0 B"},
		10: {"  1 …  303 items done  202/s  3.1 kB  1.4 s", "  2 …  0 B"},
	} {
		if diff := cmp.Diff(want, stageLines(list, 1500*time.Millisecond, columns, screenRows)); diff != "" {
			t.Errorf("%d columns: -want +got:\n%s", columns, diff)
		}
	}
}

// TestBars: where it is known how much there is, a stage has a bar and the time that is left at its rate.
func TestBars(t *testing.T) {
	tool := stages.ToolProgress{Done: 1, Total: 2}
	for want, s := range map[string]stages.StageReport{
		"0 of 8 items  [..........]  0 B":                   {Items: 1, Total: 8},
		"30 of 120 items  [##........]  3/s  30s left  0 B": {Items: 31, OK: 25, Failed: 5, Total: 120},
		"1 of 100000 items  [..........]  hours left  0 B":  {Items: 1, OK: 1, Total: 100_000},
		"60 of 90 items  [######....]  1/s  30s left  0 B":  {Items: 61, OK: 10, Resumed: 50, Total: 90},
		"8 items done  0 B":                                 {Items: 8, OK: 8, Total: 8},
		"8 items done  0 B  1 of 2  [#####.....]":           {Items: 9, OK: 8, Tool: tool},
	} {
		if got := figuresOf(s, 10*time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := barOf(9, 3) + barOf(-1, 3); got != "[##########][..........]" {
		t.Errorf("got %s", got)
	}
}

// TestScreenNarrower: what a terminal that has become narrower shows in several rows is erased, too.
func TestScreenNarrower(t *testing.T) {
	columns := 80
	s := newScreen(nil, func() (int, int) { return columns, 24 }, nil)
	lines := []string{strings.Repeat("x", 79), strings.Repeat("x", 30)}
	for width, want := range map[int]string{80: "\r\x1b[1A\x1b[J", 40: "\r\x1b[2A\x1b[J", 20: "\r\x1b[5A\x1b[J"} {
		if columns = width; s.clear(lines) != want {
			t.Errorf("%d columns: got %q, want %q", width, s.clear(lines), want)
		}
	}
	if got := s.clear(nil); got != "\r\x1b[J" {
		t.Errorf("nothing: got %q", got)
	}
}

// TestScreenRows: what is shown never reaches beyond a terminal, however low it is and however many stages there are.
func TestScreenRows(t *testing.T) {
	for rows := 2; rows < 20; rows++ {
		for n := range 20 {
			s := newScreen(nil, func() (int, int) { return 80, rows }, func() []upstream.ServerStatus { return nil })
			s.follow(time.Now(), func() []stages.StageReport { return make([]stages.StageReport, n) })
			if got := len(s.lines(time.Now(), nil)); got > rows-1 {
				t.Errorf("%d lines for %d stages on a terminal of %d rows", got, n, rows)
			}
		}
	}
}

// TestColours: on a terminal the words that a reader looks for have colours.
func TestColours(t *testing.T) {
	var b strings.Builder
	w := plain{&stream{w: &b, colours: true}}
	text := "error: x\x1b[2J\nhint: y\n   Try: z\nokay\nok   sandbox\nan error: no\n"
	want := "\x1b[1;31merror:\x1b[0m x\\x1b[2J\n\x1b[36mhint:\x1b[0m y\n   \x1b[36mTry:\x1b[0m z\nokay\n\x1b[32mok\x1b[0m   sandbox\nan error: no\n"
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil || b.String() != want {
		t.Errorf("got %q, %v, want %q", b.String(), err, want)
	}
}
