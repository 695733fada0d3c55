package upstash

import (
	"strings"
	"sync"
)

// scriptSupport is what a client knows of how its server takes scripts.
type scriptSupport struct {
	mu      sync.Mutex
	noFlags bool                // it refuses the first line
	noSums  bool                // it refuses EVALSHA, or keeps no text
	stored  map[string]struct{} // the heads that name its texts
	misses  int                 // how often it had lost a stored text
	worked  bool                // an EVALSHA has run
}

const (
	// maxStored bounds the memory of a client whose scripts are ever new.
	maxStored = 1000
	// maxMisses is how often a server is asked again if it never ran an
	// EVALSHA.
	maxMisses = 3
)

// form returns the form the server takes the command's script in, as far as
// known.
func (k *scriptSupport) form(c Command) scriptForm {
	k.mu.Lock()
	defer k.mu.Unlock()
	form := c.form
	if k.noFlags {
		form &^= withFlags
	}
	if _, ok := k.stored[string(c.script.heads[form])]; !ok || k.noSums {
		form &^= bySum
	}
	return form
}

// ran notes that the server has run the script in a form.
func (k *scriptSupport) ran(s *Script, form scriptForm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if form&bySum != 0 {
		k.worked = true
	} else if len(k.stored) < maxStored {
		if k.stored == nil {
			k.stored = map[string]struct{}{}
		}
		k.stored[string(s.heads[form|bySum])] = struct{}{}
	}
}

// note keeps what a refusal says of the server. One that may be the script's own
// words says only that the text may be gone.
func (k *scriptSupport) note(s *Script, form, refused scriptForm, e *Error, certain bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case e.Code() == "NOSCRIPT":
		if _, ok := k.stored[string(s.heads[form])]; ok {
			delete(k.stored, string(s.heads[form]))
			k.misses++
		}
		if !k.worked && k.misses >= maxMisses {
			k.noSums = true
		}
	case !certain:
	case refused == bySum:
		k.noSums = true
	default:
		k.noFlags = true
	}
}

// refused returns what of a form an error refuses, or may refuse: bySum or
// withFlags, or 0.
func (s *Script) refused(form scriptForm, e *Error) scriptForm {
	words := strings.ToLower(e.Message)
	switch {
	case e.StatusCode != 200 && e.StatusCode != 400:
	case form&bySum != 0:
		if e.refusal == refusedCommand || e.Code() == "NOSCRIPT" || strings.Contains(words, "evalsha") {
			return bySum
		}
	case form&withFlags != 0 && len(s.heads[0]) < len(s.heads[withFlags]):
		if strings.Contains(words, "shebang") || strings.Contains(words, "'#'") { // of refusedFirstLine, too
			return withFlags
		}
	}
	return 0
}

// learn takes note of how the server took a script in a form. If it refused the
// form, e gets the one to send instead. A script can return the same words as an
// error of its own. So the words count only if the error proves that nothing
// changed, or if the script may run twice.
//
// It decides by what this very command carried: others may have learned the same
// meanwhile.
func (k *scriptSupport) learn(s *Script, form scriptForm, t traits, e *ending) {
	if e.err == nil {
		k.ran(s, form)
	}
	if e.server == nil {
		return
	}
	if refused := s.refused(form, e.server); refused != 0 {
		changedNothing := e.outcome == outcomeRefused
		k.note(s, form, refused, e.server, changedNothing)
		e.form, e.again = form&^refused, changedNothing || t&traitRepeatable != 0
	}
}
