// Package ascii compares ASCII text in any letter case, without the other
// letters that fold in Unicode.
package ascii

// Lower returns the lower case of an ASCII letter, and any other byte as it is.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// EqualFold reports whether text, in any letter case, is the one given in lower
// case.
func EqualFold[T string | []byte](text T, lowerCase string) bool {
	if len(text) != len(lowerCase) {
		return false
	}
	for i := range len(lowerCase) {
		if Lower(text[i]) != lowerCase[i] {
			return false
		}
	}
	return true
}
