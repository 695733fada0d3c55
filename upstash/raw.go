package upstash

import "strings"

// RawCmd makes a command whose last argument is body, which travels as the body
// of the request: any bytes, without the third that base64 or the escapes of
// JSON would add. The other arguments stand in the request's path, so that none
// may be empty, "." or "..". Nor may body be empty: no argument would travel.
// Send it with Do: Pipeline and MultiExec refuse it. body must stay as it is
// until the call returned.
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
	// Its traits may depend on the argument that is not in args.
	c.traits = traitsOf(c.name, append(args[:len(args):len(args)], ""))
	return c
}

// escapeSegment writes s as one segment of a path. All but letters, digits and
// three marks is escaped: no proxy finds anything in it to rewrite.
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
