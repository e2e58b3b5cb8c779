package main

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/upstream"
)

// logLevels are the levels of our log for those of servers.
var logLevels = map[string]zapcore.Level{
	"debug": zap.DebugLevel, "info": zap.InfoLevel, "notice": zap.InfoLevel, "warning": zap.WarnLevel,
	"error": zap.ErrorLevel, "critical": zap.ErrorLevel, "alert": zap.ErrorLevel, "emergency": zap.ErrorLevel,
}

// serverLogger returns a function that writes to our log what a server writes to the log of its client.
func serverLogger(log *zap.Logger) func(upstream.LogLine) {
	return func(l upstream.LogLine) {
		fields := []zap.Field{zap.String("server", l.Server), zap.String("text", l.Text)}
		if l.Logger != "" {
			fields = append(fields, zap.String("logger", l.Logger))
		}
		if l.Lost > 0 {
			fields = append(fields, zap.Int64("lost", l.Lost))
		}
		log.Log(logLevels[l.Level], "a server logs", fields...)
	}
}
