package upstash

// lower returns the lower case of an ASCII letter, and any other byte as it is.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalFold reports whether an ASCII header name, in any letter case, is the
// one given in lower case.
func equalFold[T string | []byte](name T, lowerCase string) bool {
	if len(name) != len(lowerCase) {
		return false
	}
	for i := range len(lowerCase) {
		if lower(name[i]) != lowerCase[i] {
			return false
		}
	}
	return true
}

const hexDigits = "0123456789abcdef"
