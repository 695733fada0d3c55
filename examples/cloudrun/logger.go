package main

import (
	"log/slog"
	"os"
)

// newLogger returns a logger of JSON to stdout, with Cloud Logging's field
// names.
func newLogger() *slog.Logger {
	names := map[string]string{slog.LevelKey: "severity", slog.MessageKey: "message"}
	return slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if name, ok := names[a.Key]; ok && len(groups) == 0 {
				a.Key = name
			}
			if a.Value.Any() == slog.LevelWarn {
				a.Value = slog.StringValue("WARNING")
			}
			return a
		},
	}))
}
