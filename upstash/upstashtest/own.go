package upstashtest

import (
	"strings"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// own runs a command that the server itself answers, and reports whether it is
// one. There is one: ACL RESTTOKEN, which returns the token of a user. The only
// user here is default, whose password is the token.
func (s *Server) own(cmd []string) (database.Reply, bool) {
	if !isOwn(cmd) {
		return nil, false
	}
	if len(cmd) != 4 {
		return database.Failure("ERR wrong number of arguments for 'acl|resttoken' command"), true
	}
	for _, token := range []string{s.Token, s.ReadOnlyToken} {
		if cmd[2] == "default" && same(cmd[3], token) {
			return database.Bulk(token), true
		}
	}
	return database.Failure("ERR Wrong password or user \"" + cmd[2] + "\" does not exist"), true
}

func isOwn(cmd []string) bool {
	return len(cmd) > 1 && strings.EqualFold(cmd[0], "ACL") && strings.EqualFold(cmd[1], "RESTTOKEN")
}
