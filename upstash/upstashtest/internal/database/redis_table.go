package database

import "strings"

// tableOf reads the reply to COMMAND. It has the name, arity and flags of each
// command, and since Redis 7.0 those of its subcommands. Whether a command
// counts as a write is as in memory, if it is known there.
func tableOf(r Reply) Table {
	list, _ := r.(Array)
	table := make(Table)
	for _, el := range list {
		row, _ := el.(Array)
		if len(row) < 3 {
			continue
		}
		name, _ := row[0].(Bulk)
		arity, _ := row[1].(int64)
		upper := strings.ToUpper(string(name))
		flags := flagsOf(row)
		if unfit(upper, flags) || refused[upper] {
			continue
		}
		c := command{arity: int(arity), write: flags["write"] || upper == "FCALL" || upper == "SPUBLISH"}
		if known, ok := inMemory[upper]; ok {
			c.write = known.write
		}
		table[upper] = c
	}
	return table
}

// flagsOf returns the flags of a command and of its subcommands.
func flagsOf(row Array) map[string]bool {
	flags := make(map[string]bool)
	own, _ := row[2].(Array)
	for _, f := range own {
		if s, ok := f.(Status); ok {
			flags[string(s)] = true
		}
	}
	if len(row) < 10 {
		return flags
	}
	subs, _ := row[9].(Array)
	for _, sub := range subs {
		if sub, ok := sub.(Array); ok && len(sub) > 2 {
			for f := range flagsOf(sub) {
				flags[f] = true
			}
		}
	}
	return flags
}

// unfit reports whether a command is for operators, needs a connection of its
// own, or waits. Those of a stream wait only if they are told to.
func unfit(name string, flags map[string]bool) bool {
	switch name {
	case "XREAD", "XREADGROUP", "WAIT", "PUBLISH", "SPUBLISH", "PUBSUB":
		return false
	case "ASKING", "LASTSAVE", "MIGRATE", "READONLY", "READWRITE", "RESTORE-ASKING", "ROLE", "SWAPDB":
		return true
	}
	return flags["admin"] || flags["blocking"] || flags["pubsub"]
}
