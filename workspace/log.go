package workspace

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A logLine is a line of moveLog or deleteLog: something left the path from, or arrived at the path to, or both. What is
// on the other side of a deletion or a restore is the entry id of the trash.
type logLine struct {
	time     time.Time
	what     string // one of the words below
	from, to string
	id       int64
}

// The words of a log. A line of moveLog has no word.
const (
	moved    = "moved"
	deleted  = "delete"
	restored = "restore"
	setAside = "versions" // of a file that somebody else has removed
)

// text returns the line for its log, in which fields are separated by tabs.
func (l logLine) text() string {
	fields := []string{l.time.Format(time.RFC3339Nano), l.what, strconv.FormatInt(l.id, 10), escaper.Replace(l.from + l.to)}
	if l.what == moved {
		fields = []string{fields[0], escaper.Replace(l.from), escaper.Replace(l.to)}
	}
	return strings.Join(fields, "\t") + "\n"
}

func (l logLine) file() string {
	if l.what == moved {
		return moveLog
	}
	return deleteLog
}

var (
	escaper   = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`)
	unescaper = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")
)

// parseLog reads a line without its newline.
func parseLog(text string) (l logLine, ok bool) {
	fields := strings.Split(text, "\t")
	for i := range fields {
		fields[i] = unescaper.Replace(fields[i])
	}
	var err error
	if l.time, err = time.Parse(time.RFC3339Nano, fields[0]); err != nil {
		return l, false
	}
	switch len(fields) {
	case 3:
		l.what, l.from, l.to = moved, fields[1], fields[2]
		return l, true
	case 4:
		l.what, l.from = fields[1], fields[3]
		if l.what == restored {
			l.from, l.to = "", fields[3]
		}
		l.id, err = strconv.ParseInt(fields[2], 10, 64)
		return l, err == nil && l.id > 0
	}
	return l, false
}

// maxLogLine is more than two escaped paths take.
const maxLogLine = 8 * maxPath

// readLog returns the lines of a log. It skips those that have not its form.
func (d *Dir) readLog(name string) iter.Seq2[logLine, error] {
	return func(yield func(logLine, error) bool) {
		f, err := d.open(name)
		if KindOf(err) == NotFound {
			return
		}
		if err != nil {
			yield(logLine{}, err)
			return
		}
		defer f.Close()
		in := bufio.NewReaderSize(f, maxLogLine)
		for {
			text, err := in.ReadSlice('\n')
			switch err {
			case nil:
				if l, ok := parseLog(string(text[:len(text)-1])); ok && !yield(l, nil) {
					return
				}
			case io.EOF: // what follows the last newline is a part of a line
				return
			case bufio.ErrBufferFull: // a line of somebody else
			default:
				yield(logLine{}, classify(name, err))
				return
			}
		}
	}
}

// events returns the lines of both logs in the order of their times.
func (d *Dir) events(ctx context.Context) iter.Seq2[logLine, error] {
	return func(yield func(logLine, error) bool) {
		nextMove, stop := iter.Pull2(d.readLog(moveLog))
		defer stop()
		nextDelete, stop := iter.Pull2(d.readLog(deleteLog))
		defer stop()
		m, merr, more := nextMove()
		e, eerr, others := nextDelete()
		for more || others {
			if ctx.Err() != nil {
				yield(logLine{}, context.Cause(ctx))
				return
			}
			var line logLine
			var err error
			if !others || more && m.time.Before(e.time) {
				line, err = m, merr
				m, merr, more = nextMove()
			} else {
				line, err = e, eerr
				e, eerr, others = nextDelete()
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// log appends a line to its log.
func (h *History) log(l logLine) error {
	f, err := h.d.root.OpenFile(l.file(), os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	ended, err := lineEnded(f)
	if err != nil {
		return err
	}
	text := l.text()
	if !ended { // a part of a line of a killed process
		text = "\n" + text
	}
	if _, err := io.WriteString(f, text); err != nil {
		return err
	}
	return f.Sync()
}

// lastLines returns the lines at the end of a log, and whether there are others before them.
func (d *Dir) lastLines(name string) (list []logLine, more bool, err error) {
	f, err := d.open(name)
	if KindOf(err) == NotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	from := max(0, info.Size()-maxLogLine)
	end, err := io.ReadAll(io.NewSectionReader(f, from, maxLogLine))
	if err != nil {
		return nil, false, err
	}
	lines := strings.Split(string(end), "\n")
	lines = lines[:len(lines)-1] // what follows the last newline is a part of a line
	for _, text := range lines {
		if l, ok := parseLog(text); ok {
			list = append(list, l)
		}
	}
	return list, from > 0, nil
}

// lastLine returns the last line of a log that has the form of one.
func (d *Dir) lastLine(name string) (l logLine, ok bool, err error) {
	list, _, err := d.lastLines(name)
	if len(list) == 0 || err != nil {
		return l, false, err
	}
	return list[len(list)-1], true, nil
}

// lastID returns the largest id of the trash so far: that of the last line but those of restores, whose ids are older.
func (d *Dir) lastID() (id int64, err error) {
	list, more, err := d.lastLines(deleteLog)
	if err != nil {
		return 0, err
	}
	for _, l := range slices.Backward(list) {
		if l.what != restored {
			return l.id, nil
		}
	}
	if !more {
		return 0, nil
	}
	for l, err := range d.readLog(deleteLog) {
		if err != nil {
			return 0, err
		}
		id = max(id, l.id)
	}
	return id, nil
}

// now returns the time for a line of a log: later than the last line of each, so that their order is known.
func (h *History) now() (time.Time, error) {
	now := time.Now().UTC()
	for _, name := range []string{moveLog, deleteLog} {
		last, ok, err := h.d.lastLine(name)
		if err != nil {
			return now, err
		}
		if ok && !now.After(last.time) {
			now = last.time.Add(1)
		}
	}
	return now, nil
}

// makeRecords makes a directory of records.
func (h *History) makeRecords(dir string) error {
	info, err := h.d.root.Lstat(records)
	if err == nil && !info.IsDir() {
		return Errorf(IoError, "rename it", "%s is not a directory: changes cannot be recorded", records)
	}
	if err := h.d.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if _, err := h.d.root.Lstat(ignoreAll); errors.Is(err, fs.ErrNotExist) {
		return h.d.store(ignoreAll, strings.NewReader("*\n"))
	}
	return nil
}

// A Hop is a change of the path of a file.
type Hop struct {
	Time time.Time
	What string // "moved", "deleted" or "restored"
	Path string // where it is after that; "" in the trash
	ID   int64  // of the trash
}

// maxHops bounds the answer of Trace: the last ones stay.
const maxHops = 1000

// Trace returns where the file or directory went that was last at name: its moves, deletions and restores, and those of
// the directories above it. The trail is empty if it never left.
func (h *History) Trace(ctx context.Context, name string) (rel string, trail []Hop, err error) {
	if rel, err = h.d.SaveName(strings.TrimRight(name, "/")); err != nil {
		return "", nil, err
	}
	at := rel // where it is; "" in the trash
	var id int64
	below := "" // its path below the entry id of the trash
	for l, err := range h.d.events(ctx) {
		if err != nil {
			return "", nil, err
		}
		if l.what == restored && at == "" && l.id == id {
			at = path.Join(l.to, below)
			trail = append(trail, Hop{l.time, "restored", at, l.id})
		}
		if l.what != moved && l.what != deleted {
			continue
		}
		rest, leaves := under(at, l.from)
		if !leaves {
			if rest, leaves = under(rel, l.from); !leaves {
				continue
			}
			trail = nil // another file was made at name since
		}
		if l.what == moved {
			at = path.Join(l.to, rest)
			trail = append(trail, Hop{Time: l.time, What: "moved", Path: at})
		} else {
			at, id, below = "", l.id, rest
			trail = append(trail, Hop{l.time, "deleted", "", l.id})
		}
		trail = trail[max(0, len(trail)-maxHops):]
	}
	return rel, trail, nil
}

// under returns the rest of a path below dir, which is "" for dir itself.
func under(rel, dir string) (rest string, ok bool) {
	if rel == dir {
		return "", rel != ""
	}
	return strings.CutPrefix(rel, dir+"/")
}
