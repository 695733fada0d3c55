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

// indexFold gives where sub, which is not empty, begins in s, or -1.
func indexFold(s, sub string) int {
	for i := 0; i+len(sub) <= len(s); i++ {
		if commonFold(s[i:], sub) == len(sub) {
			return i
		}
	}
	return -1
}

// commonFold gives how many bytes a and b begin with alike.
func commonFold(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && lower(a[n]) == lower(b[n]) {
		n++
	}
	return n
}
