package peertest

import (
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// scope has a window of ten years, so no window ends during a test.
const scope = "const window = '3650 d', region = [redis], ephemeralCache = new Map();"

// ratelimited asks a limiter of @upstash/ratelimit four times. It allows three
// requests in a window. The package sends scripts with the flag
// allow-key-locking.
func ratelimited(name, maker string) step {
	return limiter(name, maker, `
		await limiter.resetUsedTokens("user");
		ephemeralCache.clear();
		seen.push((await limiter.limit("user")).success, (await limiter.getRemaining("user")).remaining);`,
		`,true,2]`)
}

// ratelimitedRegions leaves out the reset, because with several regions the
// package does not wait for it.
func ratelimitedRegions(name, maker string) step {
	return limiter(name, maker, `seen.push((await limiter.getRemaining("user")).remaining);`, `,0]`)
}

func limiter(name, maker, then, want string) step {
	return step{`(async () => {
		` + scope + `
		const prefix = "` + name + `";
		const limiter = new ` + maker + `;
		const seen = [];
		for (let i = 0; i < 4; i++) {
			const r = await limiter.limit("user");
			await r.pending;
			seen.push(r.success);
		}
		` + then + `
		return [prefix, ...seen];
	})()`, `["` + name + `",true,true,true,false` + want, ``}
}

func single(algorithm string) string {
	return "Ratelimit({redis, prefix, ephemeralCache, limiter: Ratelimit." + algorithm + "})"
}

func multiRegion(algorithm string) string {
	return "MultiRegionRatelimit({redis: region, prefix, ephemeralCache, limiter: MultiRegionRatelimit." +
		algorithm + "})"
}

// TestPackages runs packages built on the official client.
func TestPackages(t *testing.T) {
	steps := []step{
		ratelimited("fixed window", single("fixedWindow(3, window)")),
		ratelimited("sliding window", single("slidingWindow(3, window)")),
		ratelimited("token bucket", single("tokenBucket(1, window, 3)")),
		ratelimited("cached fixed window", single("cachedFixedWindow(3, window)")),
		ratelimitedRegions("fixed window, multi-region", multiRegion("fixedWindow(3, window)")),
		ratelimitedRegions("sliding window, multi-region", multiRegion("slidingWindow(3, window)")),
		{`(async () => {
			const limiter = new Ratelimit({redis, prefix: "dynamic", dynamicLimits: true,
				limiter: Ratelimit.fixedWindow(3, "3650 d")});
			await limiter.setDynamicLimit({limit: 1});
			const [a, b] = [await limiter.limit("user"), await limiter.limit("user")];
			return [a.success, b.success, (await limiter.getDynamicLimit()).dynamicLimit];
		})()`, `[true,false,1]`, ``},
		{`(async () => {
			const retry = {attempts: 1, delay: 1};
			const mine = new Lock({id: "lock", redis, lease: 3_600_000, retry});
			const other = new Lock({id: "lock", redis, lease: 3_600_000, retry});
			return [await mine.acquire(), await other.acquire(), await mine.extend(60_000),
				await other.release(), await mine.release(), await other.acquire()];
		})()`, `[true,false,true,false,true,true]`, ``},
	}
	everywhere(t, func(t *testing.T, server *upstashtest.Server, set settings) {
		session := session{URL: server.URL, Token: server.Token, Options: set, Steps: scripts(steps)}
		for i, o := range play(t, session) {
			check(t, steps[i], o)
		}
	})
}
