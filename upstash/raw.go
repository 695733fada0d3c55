package upstash

import "strings"

// RawCmd makes a command whose last argument is body, which travels as the body
// of the request. It may hold any bytes, and takes no more room than they do:
// base64 would add a third. The other arguments travel in the request's path,
// so none of them may be empty, "." or "..". body may not be empty either,
// because the server would then see no argument at all. Send the command with
// Do: Pipeline and MultiExec refuse it. Do not change body until the call has
// returned.
func RawCmd(name string, body []byte, args ...string) Command {
	c := Cmd(name, args...)
	if c.err != nil {
		return c
	}
	if len(body) == 0 {
		c.err = argumentError(c.name, "the body is empty, which is no argument to the server: use Cmd")
		return c
	}
	var path strings.Builder
	path.WriteByte('/')
	path.WriteString(strings.ToLower(c.name))
	for i, a := range args {
		if a == "" || a == "." || a == ".." {
			c.err = argumentError(c.name, "argument %d is %q, which a path cannot carry: use Cmd", i+1, a)
			return c
		}
		path.WriteByte('/')
		escapeSegment(&path, a)
	}
	c.raw = hide(rawForm{path.String(), body})
	// The traits may depend on the argument that body is.
	c.traits = traitsOf(c.name, append(args[:len(args):len(args)], ""))
	return c
}

// escapeSegment writes s as one segment of a path. It escapes every byte except
// letters, digits and three marks, so that no proxy finds anything to rewrite.
func escapeSegment(path *strings.Builder, s string) {
	for i := range len(s) {
		c := s[i]
		if '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z' || strings.IndexByte("-_~", c) >= 0 {
			path.WriteByte(c)
			continue
		}
		path.WriteByte('%')
		path.WriteByte(hexDigits[c>>4])
		path.WriteByte(hexDigits[c&15])
	}
}
