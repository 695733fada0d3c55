// Runs the steps of a Go test against a server, with the official client.
//
// It reads one JSON object from standard input and prints one line of JSON a
// step, {"value": ...} or {"error": "..."}, in order. A step is a JavaScript
// expression, so that a test reads as a user would type it.

import { text } from "node:stream/consumers";
import { Lock } from "@upstash/lock";
import { MultiRegionRatelimit, Ratelimit } from "@upstash/ratelimit";
import { Redis } from "@upstash/redis";
import { Filter } from "./filter.mjs";

const { url, token, options, items, steps } = JSON.parse(await text(process.stdin));

// Telemetry headers would name this machine's runtime. A lost connection must fail
// the test, so the client does not try again.
const connect = (token, more = {}) =>
  new Redis({ url, token, enableTelemetry: false, retry: false, ...options, ...more });

// The names that steps can use.
const scope = {
  redis: connect(token), connect, token, Filter, items, Lock, MultiRegionRatelimit, Ratelimit,
};

for (const step of steps) {
  let line;
  try {
    const run = new Function(...Object.keys(scope), `return ${step}`);
    line = { value: await run(...Object.values(scope)) };
  } catch (e) {
    line = { error: e.message };
  }
  console.log(JSON.stringify(line));
}
