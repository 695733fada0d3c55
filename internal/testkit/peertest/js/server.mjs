// Serves the Upstash API in front of the Redis at the first argument, and prints
// its port. The second argument is the token.
import { serve } from "@hono/node-server";
import { createApp } from "@humanwhocodes/upstash-redis-server";

const [redisUrl, token] = process.argv.slice(2);
serve({ fetch: createApp({ redisUrl, token }).fetch, hostname: "127.0.0.1", port: 0 },
  ({ port }) => console.log(port));
