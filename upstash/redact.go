package upstash

import (
	"slices"
	"strings"

	"github.com/upbloom/upbloom/internal/json"
)

const redacted = "…"

// maxMessage bounds what is kept of a server's words. Its own are short; a
// longer text is a page, or quotes the request.
const maxMessage = 1000

// redact takes out of somebody's words what they quote of a request: the token
// and every argument that could be a key or an item, in the forms in which
// servers and proxies quote. Errors are rare, so this may decode the request
// again.
func redact(message, token string, body []byte) string {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + redacted
	}
	// The code, such as WRONGTYPE, is the server's own in any case.
	code := codeOf(message)
	message = message[len(code):]
	// Redis quotes the arguments of an unknown command, cut at 128 bytes.
	if head, _, ok := strings.Cut(message, ", with args beginning with:"); ok {
		message = head
	}
	quoted := quotedArgs([]string{token}, message, body)
	// The longest first: one may be the beginning of another.
	slices.SortFunc(quoted, func(a, b string) int { return len(b) - len(a) })
	for _, form := range quoted {
		message = hide(message, form)
	}
	return code + message
}

// quotedArgs appends what message quotes of the arguments in body, one command
// or several.
func quotedArgs(dst []string, message string, body []byte) []string {
	list, _ := json.Array(body)
	if len(list) > 2 && isBitField(list[0]) {
		list = list[:2] // positions tell nothing, and look like ports
	}
	for i, raw := range list {
		arg, err := json.String(raw)
		if err != nil {
			dst = quotedArgs(dst, message, raw)
			continue
		}
		if i == 0 || arg == "" || isKeyword(arg) { // 0 is the command's name
			continue
		}
		for _, form := range quotedForms(arg, raw) {
			if indexFold(message, head(form)) >= 0 {
				dst = append(dst, form)
			}
		}
	}
	return dst
}

func isBitField(raw []byte) bool {
	return string(raw) == `"BITFIELD"` || string(raw) == `"BITFIELD_RO"`
}

// quotedForms gives an argument as it is, and as JSON and URLs write it.
func quotedForms(arg string, raw []byte) []string {
	forms := append(make([]string, 0, 5), arg)
	for _, form := range [...]string{
		strings.Trim(string(raw), `"`), escape(arg, "-._~"), escape(arg, "-._~$&+=:@"),
		strings.ReplaceAll(escape(arg, "-._~ "), " ", "+"),
	} {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return forms
}

// escape writes s as URLs do, but for letters, digits and the marks to keep.
func escape(s, keep string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		if isWord(c) || strings.IndexByte(keep, c) >= 0 {
			out = append(out, c)
		} else {
			out = append(out, '%', hexDigits[c>>4], hexDigits[c&15]) // hide ignores the case
		}
	}
	return string(out)
}

// hide replaces what message quotes of a form: the whole, or its beginning
// where it was cut, in any letter case. A short one must stand by itself.
func hide(message, form string) string {
	var out strings.Builder
	for {
		start := indexFold(message, head(form))
		if start < 0 {
			break
		}
		end := start + commonFold(message[start:], form)
		if len(form) < 4 && !standsAlone(message, start, end) {
			out.WriteString(message[:end])
		} else {
			out.WriteString(message[:start] + redacted)
		}
		message = message[end:]
	}
	out.WriteString(message)
	return out.String()
}

// head is as much of a form as is telling: eight bytes of it are no accident.
func head(form string) string { return form[:min(len(form), 8)] }

func standsAlone(s string, start, end int) bool {
	return (start == 0 || !isWord(s[start-1])) && (end == len(s) || !isWord(s[end]))
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

// isKeyword spares words of the command language, so that a message that
// names them stays whole.
func isKeyword(arg string) bool {
	switch arg {
	case "NX", "XX", "GT", "LT", "EX", "PX", "EXAT", "PXAT", "KEEPTTL", "GET",
		"BYTE", "BIT", "AND", "OR", "XOR", "NOT":
		return true
	}
	return false
}
