// Compares xxh3.ts with hash-wasm, for every length up to 1,300 and some beyond it.
import { xxhash128, xxhash3 } from "hash-wasm";
import { xxh3, xxh3OfNumber } from "../xxh3.js";

let state = 1n;
const random = () => state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
const seeds = [0n, 1n, 2n ** 31n, 2n ** 32n, 2n ** 64n - 1n, random()];
let compared = 0;
function same(got: bigint, want: string, what: string): void {
  if (got !== BigInt("0x" + want)) throw new Error(`${what}: ${got.toString(16)}, want ${want}`);
  compared++;
}

for (let length = 0; length < 5000; length += length < 1300 ? 1 : 61) {
  const bytes = Uint8Array.from({ length }, () => Number(random() >> 56n));
  for (const seed of seeds) {
    const [high, low] = xxh3(bytes, seed);
    const halves = [seed % 2n ** 32n, seed / 2n ** 32n].map(Number);
    const want = await xxhash128(bytes, ...halves);
    same(high << 64n | low, want, `${length} bytes, seed ${seed}`);
  }
}
for (const n of seeds) {
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, n, true);
  same(xxh3OfNumber(n), await xxhash3(new Uint8Array(bytes.buffer)), `number ${n}`);
}
console.log(compared);
