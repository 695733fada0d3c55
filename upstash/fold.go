package upstash

// What follows compares ASCII letters without regard to case and leaves every
// other byte alone, so that offsets stay what they are.

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalFold compares an ASCII header name with one in lower case.
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
