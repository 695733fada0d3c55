package conn

// Questions for the reader of an error, if no connection was made. The
// transport over fetch has them too.
const (
	NoHost   = "is the URL right, does the database still exist?"
	NoServer = "is the URL right, does the server run?"
)
