package upstash

// outcome is what is known of a command whose call has failed.
type outcome uint8

const (
	outcomeUnjudged outcome = iota // in an error that this package did not make
	outcomeNotSent                 // nothing reached the server
	outcomeRefused                 // the server said no: nothing changed
	outcomeRead                    // it may have run, but it changes nothing
	outcomeUnknown                 // sent, and whether it ran is not known
	outcomeRan                     // it ran, and its answer is of no use
)

// words returns the end of an error's text.
func (o outcome) words() string {
	switch o {
	case outcomeNotSent, outcomeRefused:
		return "; the command did not run"
	case outcomeUnknown:
		return "; the command may have run"
	}
	return ""
}

// safe reports whether the command certainly changed nothing.
func (o outcome) safe() bool {
	return o == outcomeNotSent || o == outcomeRefused || o == outcomeRead
}

// judge is the one place that decides what is known of a command, whether it is
// alone in its request or in a batch. It decides by the command's traits, by
// whether an attempt before the last may have run it, and by what the last
// attempt ended in.
func judge(t traits, earlier bool, last outcome) outcome {
	switch {
	case !earlier && (last == outcomeNotSent || last == outcomeRefused):
		return last
	case t&traitRead != 0:
		return outcomeRead
	case last == outcomeRan:
		return outcomeRan
	}
	return outcomeUnknown
}
