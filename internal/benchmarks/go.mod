module github.com/upbloom/upbloom/internal/benchmarks

go 1.26.0

require (
	github.com/bits-and-blooms/bloom/v3 v3.7.1
	github.com/redis/rueidis v1.0.79
	github.com/upbloom/upbloom v0.0.0
	github.com/valyala/fasthttp v1.78.0
)

require (
	github.com/molecule-man/go-brrr v1.3.1 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/bits-and-blooms/bitset v1.24.2 // indirect
	github.com/goccy/go-json v0.12.0
	github.com/jarcoal/httpmock v1.4.2 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/klauspost/cpuid/v2 v2.4.2 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/yuin/gopher-lua v1.1.2 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/upbloom/upbloom => ../..
