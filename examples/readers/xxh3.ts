// XXH3, after its specification, in numbers of 64 bits that wrap around.
const u64 = (n: bigint) => BigInt.asUintN(64, n);
const u32 = (n: bigint) => BigInt.asUintN(32, n);
const p32 = [0x9e3779b1n, 0x85ebca77n, 0xc2b2ae3dn];
const p64 = [0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n,
  0x85ebca77c2b2ae63n, 0x27d4eb2f165667c5n];
const mixers = [0x165667919e3779f9n, 0x9fb21c651e98df25n];
const secret = Uint8Array.from((
  "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
  + "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
  + "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
  + "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
  + "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
  + "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
).match(/../g)!, (hex) => parseInt(hex, 16));

const read = (bytes: Uint8Array) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    r32: (at: number) => BigInt(view.getUint32(at, true)),
    r64: (at: number) => view.getBigUint64(at, true),
  };
};
const swap = (n: bigint, bytes: number) => {
  let swapped = 0n;
  for (; bytes > 0; bytes--, n >>= 8n) swapped = swapped << 8n | n & 255n;
  return swapped;
};
const fold = (a: bigint, b: bigint) => { const p = a * b; return u64(p) ^ p >> 64n; };
const avalanche = (h: bigint) => {
  h = u64((h ^ h >> 37n) * mixers[0]);
  return h ^ h >> 32n;
};
const avalanche64 = (h: bigint) => { // XXH64's
  h = u64((h ^ h >> 33n) * p64[1]);
  h = u64((h ^ h >> 29n) * p64[2]);
  return h ^ h >> 32n;
};

/** XXH3-64 of the eight bytes of n, the low one first, without a seed. */
export function xxh3OfNumber(n: bigint): bigint {
  const { r64 } = read(secret), rotated = (h: bigint, by: bigint) => u64(h << by) | h >> 64n - by;
  let h = (n >> 32n | u32(n) << 32n) ^ r64(8) ^ r64(16);
  h = u64((h ^ rotated(h, 49n) ^ rotated(h, 24n)) * mixers[1]);
  h = u64((h ^ (h >> 35n) + 8n) * mixers[1]);
  return h ^ h >> 28n;
}

/** XXH3-128: its high and its low half. */
export function xxh3(input: Uint8Array, seed: bigint): [high: bigint, low: bigint] {
  const { r32, r64 } = read(input), s = read(secret), n = input.length, size = BigInt(n);
  if (n === 0) {
    const half = (at: number) => avalanche64(seed ^ s.r64(at) ^ s.r64(at + 8));
    return [half(80), half(64)];
  }
  if (n <= 3) {
    const low = BigInt(input[0]) << 16n | BigInt(input[n >> 1]) << 24n | BigInt(input[n - 1]) | size << 8n;
    const turned = swap(low, 4), high = u32(turned << 13n) | turned >> 19n;
    return [avalanche64(high ^ u64((s.r32(8) ^ s.r32(12)) - seed)),
      avalanche64(low ^ u64((s.r32(0) ^ s.r32(4)) + seed))];
  }
  if (n <= 8) {
    const flip = u64((s.r64(16) ^ s.r64(24)) + (seed ^ swap(u32(seed), 4) << 32n));
    const p = (r32(0) + (r32(n - 4) << 32n) ^ flip) * (p64[0] + size * 4n);
    let low = u64(p);
    const high = u64((p >> 64n) + low * 2n);
    low ^= high >> 3n;
    low = u64((low ^ low >> 35n) * mixers[1]);
    return [avalanche(high), low ^ low >> 28n];
  }
  if (n <= 16) {
    const a = r64(0), b = r64(n - 8), flipped = b ^ u64((s.r64(48) ^ s.r64(56)) + seed);
    const p = (a ^ b ^ u64((s.r64(32) ^ s.r64(40)) - seed)) * p64[0];
    const high = u64((p >> 64n) + flipped + u32(flipped) * (p32[1] - 1n));
    const q = (u64(p + (size - 1n << 54n)) ^ swap(high, 8)) * p64[1];
    return [avalanche(u64((q >> 64n) + high * p64[1])), avalanche(u64(q))];
  }
  if (n <= 240) {
    let low = u64(size * p64[0]), high = 0n;
    const sum = (at: number) => u64(r64(at) + r64(at + 8));
    const mix16 = (at: number, from: number, with_: bigint) =>
      fold(r64(at) ^ u64(s.r64(from) + with_), r64(at + 8) ^ u64(s.r64(from + 8) - with_));
    const mix = (a: number, b: number, from: number, with_ = seed) => {
      low = u64(low + mix16(a, from, with_)) ^ sum(b);
      high = u64(high + mix16(b, from + 16, with_)) ^ sum(a);
    };
    if (n <= 128) {
      for (let i = (n - 1 >> 5); i >= 0; i--) mix(16 * i, n - 16 * (i + 1), 32 * i);
    } else {
      for (let i = 0; i < 4; i++) mix(32 * i, 32 * i + 16, 32 * i);
      [low, high] = [avalanche(low), avalanche(high)];
      for (let i = 4; i < n >> 5; i++) mix(32 * i, 32 * i + 16, 32 * i - 125);
      mix(n - 16, n - 32, 103, u64(-seed));
    }
    const mixed = u64(low * p64[0] + high * p64[3] + (size - seed) * p64[1]);
    return [u64(-avalanche(mixed)), avalanche(u64(low + high))];
  }
  const own = new DataView(new ArrayBuffer(192)); // the secret with the seed
  for (let at = 0; at < 192; at += 16) {
    own.setBigUint64(at, s.r64(at) + seed, true);
    own.setBigUint64(at + 8, s.r64(at + 8) - seed, true);
  }
  const key = (at: number) => own.getBigUint64(at, true);
  const acc: bigint[] = [p32[2], p64[0], p64[1], p64[2], p64[3], p32[1], p64[4], p32[0]];
  const stripe = (at: number, from: number) => {
    for (let i = 0; i < 8; i++) {
      const data = r64(at + 8 * i), keyed = data ^ key(from + 8 * i);
      acc[i ^ 1] = u64(acc[i ^ 1] + data);
      acc[i] = u64(acc[i] + u32(keyed) * (keyed >> 32n));
    }
  };
  const stripes = n - 1 >> 6;
  for (let i = 0; i < stripes; i++) {
    stripe(64 * i, 8 * (i % 16));
    if (i % 16 !== 15) continue;
    for (let j = 0; j < 8; j++) acc[j] = u64((acc[j] ^ acc[j] >> 47n ^ key(128 + 8 * j)) * p32[0]);
  }
  stripe(n - 64, 121);
  const merged = (from: number, start: bigint) => avalanche(u64([0, 2, 4, 6].reduce((sum, i) =>
    sum + fold(acc[i] ^ key(from + 8 * i), acc[i + 1] ^ key(from + 8 * i + 8)), start)));
  return [merged(117, u64(~(size * p64[1]))), merged(11, size * p64[0])];
}
