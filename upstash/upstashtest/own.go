package upstashtest

import (
	"strings"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// own answers ACL RESTTOKEN, the one command that needs no database, and
// reports whether cmd is ACL RESTTOKEN. The only user is default, whose
// password is its token.
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
