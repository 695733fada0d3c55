// Runs the filter of filter.mjs for a contest. Each line of standard input is an
// order, answered by a line of JSON: add or look for items, or do so with many
// callers for some time.

import { createInterface } from "node:readline";
import { Redis } from "@upstash/redis";
import { Filter } from "./filter.mjs";

const { url, token, key, bits, hashes } = JSON.parse(process.argv[2]);
const redis = new Redis({ url, token, enableTelemetry: false, retry: false });
const filter = new Filter(redis, key, { bits, hashes, way: "bitfield" });

let calls = 0;
const work = {
  add: (items) => filter.addAll(items),
  exists: (items) => filter.hasAll(items),
};

async function repeat(op, callers, millis) {
  const start = performance.now();
  const cpu = process.cpuUsage();
  let done = 0;
  const caller = async () => {
    do {
      await work[op]([`user-${calls++ % 65536}@example.com`]);
      done++;
    } while (performance.now() - start < millis);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const { user, system } = process.cpuUsage(cpu);
  return { calls: done, tookMillis: performance.now() - start, cpuMs: (user + system) / 1000 };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { op, items, callers, millis } = JSON.parse(line);
  let answer;
  try {
    answer = items ? { found: await work[op](items) } : await repeat(op, callers, millis);
  } catch (e) {
    answer = { error: e.message };
  }
  console.log(JSON.stringify(answer));
}
