// Package transporttest tests what every upstash.Transport must do. The request
// arrives as it was given. The response comes back whole, or as an error. A
// context ends the call. Once RoundTrip has returned, the buffers are the
// caller's again. The servers are on the loopback interface.
package transporttest

import "testing"

// Run tests the transports made by newTransport, over HTTP/1.1.
func Run(t *testing.T, newTransport Make, exceptions ...Exception) {
	s := suite{newTransport, exceptions, t.Name() + "/"}
	s.run(t, []namedCase{
		{"request", s.testRequest},
		{"bodies", s.testBodies},
		{"hosts", s.testHosts},
		{"response headers", s.testResponseHeaders},
		{"response forms", s.testResponseForms},
		{"keep-alive", s.testKeepAlive},
		{"limit", s.testLimit},
		{"redirect", s.testRedirect},
		{"dial refused", s.testDialRefused},
		{"handshake", s.testHandshake},
		{"dropped", s.testDropped},
		{"dropped after use", s.testDroppedAfterUse},
		{"cut", s.testCut},
		{"no status", s.testNoStatus},
		{"bare LF", s.testBareLF},
		{"not http", s.testNotHTTP},
		{"quotes", s.testQuotes},
		{"deadline", s.testDeadline},
		{"whose deadline", s.testWhoseDeadline},
		{"cancel", s.testCancel},
		{"cause", s.testCause},
		{"buffers", s.testBuffers},
		{"early answer", s.testEarlyAnswer},
		{"concurrent", s.testConcurrent},
		{"interim", s.testInterim},
		{"close", s.testClose},
		{"stray answer", s.testStrayAnswer},
		{"paths", s.testPaths},
		{"refusal", s.testRefusal},
	})
}
