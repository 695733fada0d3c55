package pages

import "strings"

// An exception is a block, or a command, that no test compiles or runs. It is
// known by its file and its first words; without them it is every indented block
// of the file.
type exception struct{ file, begins, why string }

// has reports whether the exception is for a block or a command of a file.
func (e exception) has(file, language, text string) bool {
	return e.file == file && strings.HasPrefix(text, e.begins) && (e.begins != "" || language == "")
}

const (
	noSDK    = "the SDK cannot be had where this is built: the text beside it says that it was not run"
	account  = "needs an account: README says that deployments were not run"
	docker   = "needs Docker; TestScratchImage runs the binary among the image's files"
	measures = "measures for a long time"
	writes   = "writes files"
	layout   = "the fields of a word or a file"
	vectors  = "the text of the format. Other programs that keep to it made the vectors: TestVectors"
	aList    = "a list in words"
	measured = "measured numbers"
)

var exceptions = []exception{
	{"upstash/httptransport/doc.go", "rt := fsthttp", noSDK},
	{"upstash/httptransport/doc.go", "transport := httptransport.New(spinhttp", noSDK},
	{"upstash/httptransport/doc.go", "rt := &wasihttp", noSDK},
	{"examples/wasi/README.md", "hc := &http.Client{Transport: fsthttp", noSDK},
	{"examples/wasi/README.md", "hc := spinhttp", noSDK},
	{"examples/wasi/README.md", "rt := &wasihttp", noSDK},

	{"examples/lambda/README.md", "aws lambda ", account},
	{"examples/lambda/README.md", "zip -9 ", "makes the file for AWS"},
	{"examples/cloudrun/README.md", "IMAGE=", docker},
	{"examples/cloudrun/README.md", "docker ", docker},
	{"examples/cloudrun/README.md", "gcloud run ", account},
	{"examples/worker/README.md", "npx wrangler ", account},

	{".github/CONTRIBUTING.md", "bash .ci/run", "runs this test, too"},
	{"internal/benchmarks/README.md", "go run ./cmd/compare ", measures},
	{"internal/benchmarks/cmd/compare/main.go", "go run ./cmd/compare", measures},
	{"internal/benchmarks/cmd/pictures/main.go", "go run ./cmd/pictures", writes + ": TestPicturesAreUpToDate compares them"},
	{"internal/testkit/proof/simulation/simulate.go", "go test ", "N is any seed: TestSeeds"},
	{"internal/testkit/planted/main.go", "go run ./internal/testkit/planted", "takes minutes; the first is a step of .ci/run"},
	{".github/CONTRIBUTING.md", "-- seen-after-a-repeat --", "TestBugOfThePage"},
	{"upstash/upstashtest/recordings.go", "UPBLOOM_RECORD=1 ", "runs a test of the reader"},

	{"bloom/FORMAT.md", "", vectors + ", TestVectorsOfParts"},
	{"bloom/internal/format/header.go", "1 | kind", layout + ": TestVectorsHeader"},
	{"bloom/internal/format/header.go", "1 | random", layout + ": TestVectorsRates"},
	{"bloom/internal/format/words.go", "1 | ", layout + ": TestVectors"},
	{"bloom/internal/format/frame.go", "bytes  0-7", layout + ": TestStreamIsTheFormat"},
	{"bloom/internal/format/frame.go", "bytes 0-7", layout + ": TestStreamOfAnotherProgram"},
	{"bloom/internal/engine/write.go", "INCRBY", layout},
	{"bloom/internal/engine/upload.go", "n      ", "functions of the scripts below it"},
	{"bloom/internal/engine/upload.go", "ARGV[1] ", "arguments of the scripts below it"},
	{"bloom/mirror_refresh.go", "the words ", "answers of the script below it: TestTallyCount"},
	{"bloom/window_time.go", "answer  ", "cases of the functions below it"},
	{"examples/wasi/reactor/transport.go", "request  URL", layout},

	{".github/ARCHITECTURE.md", "bloom/internal/cells", aList},
	{".github/ARCHITECTURE.md", "upstash   ", aList},
	{"upstash/doc.go", "never sent", aList},
	{"upstash/upstashtest/doc.go", "COMMAND,", "TestMissingCommandsAreListed"},
	{"bloom/doc.go", "capacity ", "TestSizingTable"},
	{"bloom/COSTS.md", "              sync tokens", measured},
	{"bloom/MIGRATING.md", "bits, made for ", measured + ", which TestBoundsOfFNV1a measures again"},
}
