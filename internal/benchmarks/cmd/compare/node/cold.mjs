// Adds one item and ends, for the time from the start of a process to its first
// answer.

import { Redis } from "@upstash/redis";
import { Filter } from "./filter.mjs";

const redis = new Redis({
  url: process.env.UPSTASH_REDIS_REST_URL, token: process.env.UPSTASH_REDIS_REST_TOKEN,
  enableTelemetry: false, retry: false,
});
const filter = new Filter(redis, "cold:node", { bits: 9585059, hashes: 7, way: "bitfield" });
console.log(await filter.addAll(["user-123@example.com"]));
