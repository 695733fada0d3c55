package httptransport_test

import (
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// This happens to one call in some hundreds.
var stray = transporttest.Exception{
	Case:   "stray answer",
	Reason: "net/http may take an answer that nobody asked for as that of the next request",
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(*testing.T, string) upstash.Transport { return httptransport.New(nil) }, stray)
}

// A plain RoundTripper, like those of platforms' SDKs.
func TestConformanceOfClient(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, _ string) upstash.Transport {
		rt := &http.Transport{}
		t.Cleanup(rt.CloseIdleConnections)
		return httptransport.New(&http.Client{Transport: rt})
	}, stray)
}

func TestConformanceOverTLS(t *testing.T) {
	transporttest.RunTLS(t, trusting, stray)
}

func TestConformanceOfSockets(t *testing.T) {
	const unread = "net/http may read nothing more once a write has failed"
	const malformed = "net/http calls the header malformed, and hides why it ends"
	transporttest.RunSockets(t, trusting, append(odd(),
		transporttest.Exception{Case: "each its own, with strays", Reason: stray.Reason},
		transporttest.Exception{Case: "cause of a break/closed within the header", Reason: malformed},
		transporttest.Exception{Case: "cause of a break/reset within the header", Reason: malformed},
		transporttest.Exception{Case: "refusal before the reset", Reason: unread},
		transporttest.Exception{Case: "TLS/asks for a certificate", Reason: unread},
		transporttest.Exception{
			Case:   "younger stay",
			Reason: "net/http closes all idle connections of a transport or none",
		})...)
}

// odd names the odd answers that net/http reads otherwise than the native default.
func odd() (all []transporttest.Exception) {
	for reason, names := range map[string][]string{
		"net/http takes a longer header, to 10 MiB":                 {"long head", "a head of 40 KB", "a head of 1 MB"},
		"net/http takes the chunks, or none":                        {"length and chunks", "chunks and length", "chunks in HTTP/1.0", "chunks in HTTP/1.7"},
		"net/http takes no notice of the field":                     {"coding before colon", "space before colon", "length in a trailer", "coding in a trailer", "close in a trailer", "space in a name"},
		"net/http takes lines that end in LF":                       {"only bare LF", "bare LF at the end", "bare LF before it"},
		"net/http takes a length that is said twice, and 16 digits": {"a length twice", "16 digits"},
		"net/http takes any version and status":                     {"HTTP/2", "status 000", "status +20", "switches"},
		"net/http takes answers of status 1xx up to 10 MiB":         {"six interim ones"},
		"net/http takes less beside the data of chunks":             {"long extensions"},
	} {
		for _, name := range names {
			all = append(all, transporttest.Exception{Case: "odd/" + name, Reason: reason})
		}
	}
	return all
}

func trusting(_ *testing.T, _ string, roots *x509.CertPool) upstash.Transport {
	tr := httptransport.New(nil)
	httptransport.Trust(tr, roots)
	return tr
}

func TestConformanceOverHTTP2(t *testing.T) {
	transporttest.RunHTTP2(t, func(t *testing.T, _ string) upstash.Transport {
		rt := &http.Transport{Protocols: new(http.Protocols)}
		rt.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(rt.CloseIdleConnections)
		return httptransport.New(&http.Client{Transport: rt})
	})
}
