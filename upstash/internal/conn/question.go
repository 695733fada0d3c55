package conn

// Questions about a connection that was not made, for the reader of its error to
// look into. The transport over fetch has them too.
const (
	NoHost   = "is the URL right, does the database still exist?"
	NoServer = "is the URL right, does the server run?"
)
