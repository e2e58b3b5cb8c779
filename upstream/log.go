package upstream

import (
	"encoding/json"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxLogRead = 64 << 10 // bytes of a message in a server's log that are read
	maxLogText = 2 << 10  // bytes of it that are passed on
	maxLogger  = 100      // bytes of the name of a logger
)

// A LogLine is what a server has written to the log of its client. The texts are the server's: of one line, without secrets of
// the configuration.
type LogLine struct {
	Server, Logger, Text string

	Level string // of the protocol: debug, info, notice, warning, error, critical, alert or emergency
	Lost  int64  // lines before this one that came too fast
}

// levels are the levels of the protocol.
var levels = map[string]bool{
	"debug": true, "info": true, "notice": true, "warning": true, "error": true, "critical": true, "alert": true, "emergency": true,
}

// logLimiter bounds the lines of one server: ten a second, after a burst of a hundred.
func logLimiter() rpc.Limiter { return rpc.Limiter{PerSecond: 10, Burst: 100} }

// noteLog passes on a message of the server's log. One that is too long, comes too fast or cannot be read is left out, and counted.
func (sc *serverConn) noteLog(params []byte) {
	if sc.pool.options.Log == nil {
		return
	}
	var m struct {
		Level, Logger string
		Data          json.RawMessage
	}
	if len(params) > maxLogRead || !sc.logs.Allow(1) || json.Unmarshal(params, &m) != nil {
		sc.lostLogs.Add(1)
		return
	}
	text := rpc.Text(m.Data)
	if text == "" {
		text = string(m.Data)
	}
	if !levels[m.Level] {
		m.Level = "info"
	}
	sc.pool.options.Log(LogLine{
		Server: sc.server.Name, Level: m.Level, Logger: sc.logText(m.Logger, maxLogger), Text: sc.logText(text, maxLogText), Lost: sc.lostLogs.Swap(0),
	})
}

// logText is a text of the server for a line of a log.
func (sc *serverConn) logText(text string, limit int) string {
	return texts.Cut(rpc.OneLine(sc.hide(text)), limit)
}
