// A Bloom filter in a Redis string without a header, as in the article "Building a
// high-speed Bloom Filter with Upstash Redis". It uses double hashing over two
// FNV-1a digests.

const PRIME = 1099511628211n;
const OFFSET_1 = 0xcbf29ce484222325n; // the standard one
const OFFSET_2 = 0x84222325cbf29ce4n; // its two halves swapped

function fnv1a64(bytes, offset) {
  let h = offset;
  for (const b of bytes) h = BigInt.asUintN(64, (h ^ BigInt(b)) * PRIME);
  return h;
}

// The sums of the digests are BigInts, which do not wrap around at 2^64.
export function positions(item, bits, hashes) {
  const bytes = new TextEncoder().encode(item);
  const h1 = fnv1a64(bytes, OFFSET_1);
  const h2 = fnv1a64(bytes, OFFSET_2);
  return Array.from({ length: hashes }, (_, i) => Number((h1 + BigInt(i) * h2) % BigInt(bits)));
}

// How a filter talks to Redis; each returns the bits as they were before.
const ways = {
  // A request for each bit; on an auto-pipelining client one for all of them.
  setbit: {
    set: (redis, key, at) => Promise.all(at.map((p) => redis.setbit(key, p, 1))),
    get: (redis, key, at) => Promise.all(at.map((p) => redis.getbit(key, p))),
  },
  pipeline: {
    set: (redis, key, at) => at.reduce((all, p) => all.setbit(key, p, 1), redis.pipeline()).exec(),
    get: (redis, key, at) => at.reduce((all, p) => all.getbit(key, p), redis.pipeline()).exec(),
  },
  bitfield: {
    set: (redis, key, at) => bitfield(redis, key, at, (all, p) => all.set("u1", String(p), 1)),
    get: (redis, key, at) => bitfield(redis, key, at, (all, p) => all.get("u1", String(p))),
  },
};

// It uses an explicit pipeline, because an auto-pipelining client turns
// redis.bitfield() into a promise. It sends offsets as strings, because some
// servers read numbers as float64.
async function bitfield(redis, key, at, operation) {
  const [bits] = await at.reduce(operation, redis.pipeline().bitfield(key)).exec().exec();
  return bits;
}

export class Filter {
  constructor(redis, key, { bits, hashes, way }) {
    Object.assign(this, { redis, key, bits, hashes }, ways[way]);
  }

  // One after the other, so that each answer depends on the items before.
  async addAll(items) {
    const added = [];
    for (const item of items) {
      const before = await this.set(this.redis, this.key, positions(item, this.bits, this.hashes));
      added.push(before.includes(0));
    }
    return added;
  }

  async hasAll(items) {
    const found = [];
    for (const item of items) {
      const bits = await this.get(this.redis, this.key, positions(item, this.bits, this.hashes));
      found.push(!bits.includes(0));
    }
    return found;
  }
}
