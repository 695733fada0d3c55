// Reads and writes upbloom's plain filters, and reads its windows and scalable filters.
// Copy it together with xxh3.ts. The format is bloom/FORMAT.md.
//
//   const call = rest(url, token);
//   const seen = await open(call, "seen:webhooks");
//   await seen.exists(["id-1", "id-2"]);   // [true, false]
//   await add(call, "seen:urls", ["https://example.com/"], size(100_000, 0.01));
//
// It sends a command once and never again: if an add fails on its way, send it
// again yourself, and do not trust a "seen" that follows.

import { xxh3 as xxh3Of, xxh3OfNumber } from "./xxh3.js";

/** Sends one command and returns its result. An error of the server is thrown.
 * The command is an array: 100,000 arguments of a function are too many. */
export type Call = (command: string[]) => Promise<unknown>;

/** A Call over the REST API. It passes the sync token on: on a global database
 * the nearest region then knows what this Call wrote before. */
export function rest(url: string, token: string): Call {
  const syncToken = "upstash-sync-token";
  let seen = "";
  return async (command) => {
    const response = await fetch(url, {
      method: "POST",
      redirect: "manual", // a failure: the token goes to this host alone
      headers: { authorization: `Bearer ${token}`, [syncToken]: seen },
      body: JSON.stringify(command),
    });
    seen = response.headers.get(syncToken) ?? seen;
    // A proxy answers with a page.
    const noJSON = () => ({ error: "no JSON: is the URL right?" });
    const answer = (await response.json().catch(noJSON)) as { result?: unknown; error?: string };
    if (!response.ok || answer.error !== undefined || answer.result === undefined) {
      const reason = answer.error ?? "no result";
      throw new Error(`${command[0]}: status ${response.status}: ${reason}`);
    }
    return answer.result;
  };
}

/** No filter is at the key. This is not a "no". */
export class NotFound extends Error {
  static { this.prototype.name = "NotFound"; } // also of minified code
}

/** Another filter is at the key, or another string. A key of another type is the
 * server's WRONGTYPE. */
export class Mismatch extends Error {
  static { this.prototype.name = "Mismatch"; }
}

/** The numbers of the schemes that this file knows. */
export const blocked = 0, fnv1a = 1, xxh3 = 4;

/** m cells, k of them an item's. The seed has 64 bits. */
export interface Geometry {
  m: number; k: number; scheme?: number; seed?: bigint;
  /** What a filter that add makes says of the rate it is for. */
  rate?: number;
}

/** A part of the string: the bit of its first cell, and its cells. */
export interface Part { at: number; m: number }

const kinds = ["filter", "shard", "scalable", "window"] as const;
const start = 192; // bits of the header, the birth number and the kind's word
const batch = 500; // items in a command

/** Takes bits of a number: so many, above so many others. */
const field = (n: number, shift: number, bits: number) => Math.floor(n / 2 ** shift) % 2 ** bits;

const upToBytes = (m: number) => 8 * Math.ceil(m / 8);

/** The seed's tag in the header. Without it a wrong seed would find nothing. */
export function tagOf(seed: bigint): number {
  return seed === 0n ? 0 : 1 + Number(xxh3OfNumber(seed) % 127n);
}

export function headerOf(g: Geometry): number {
  const tag = tagOf(g.seed ?? 0n);
  return 2 ** 52 + 2 ** 48 + (g.scheme ?? blocked) * 2 ** 45 + g.k * 2 ** 39 + tag * 2 ** 32 + g.m;
}

function bytesOf(item: string): Uint8Array {
  // TextEncoder would make one item of all that are ill-formed in one place.
  if (/\p{Surrogate}/u.test(item)) throw new TypeError("the item is no Unicode text");
  return new TextEncoder().encode(item);
}

/** The item's words of a blocked part, each with its two bits. */
function wordsOf([x, y]: [bigint, bigint], m: number, k: number): [number, number, number][] {
  const words: [number, number, number][] = [];
  for (let i = 0n; i < k / 2; i++) {
    const q = x / BigInt(m / 53), w = x % BigInt(m / 53);
    const a = q % 53n, b = (q / 53n) % 52n;
    words.push([Number(w), Number(a), Number(b >= a ? b + 1n : b)]);
    [x, y] = [BigInt.asUintN(64, x + y), BigInt.asUintN(64, y + i + 1n)];
  }
  return words;
}

/** The numbers of an item's cells. */
export function cellsOf(
  item: string, { m, k, scheme = blocked, seed = 0n }: Geometry,
): number[] {
  if (scheme === fnv1a) {
    const fnv = (h: bigint) => {
      for (const c of bytesOf(item)) h = BigInt.asUintN(64, (h ^ BigInt(c)) * 1099511628211n);
      return h;
    };
    const h1 = fnv(0xcbf29ce484222325n), h2 = fnv(0x84222325cbf29ce4n);
    return Array.from({ length: k }, (_, i) => Number((h1 + BigInt(i) * h2) % BigInt(m)));
  }
  let [x, y] = xxh3Of(bytesOf(item), seed);
  if (scheme === blocked) {
    return wordsOf([x, y], m, k).flatMap(([w, a, b]) => [53 * w + a, 53 * w + b]);
  }
  const cells: number[] = [];
  for (let i = 0n; i < k; i++) {
    cells.push(Number(x % BigInt(m)));
    [x, y] = [BigInt.asUintN(64, x + y), BigInt.asUintN(64, y + i + 1n)];
  }
  return cells;
}

/** The items in lists for a command each. */
function batches(items: string[]): string[][] {
  // Each letter of one string would be an item.
  if (!Array.isArray(items)) throw new TypeError("items is an array of strings");
  const all = [];
  for (let i = 0; i < items.length; i += batch) all.push(items.slice(i, i + batch));
  return all;
}

/** The rate p as a birth number has it, in ten bits. */
function rateOf(p: number): number {
  return p > 0.25 || p < 2 ** -31 ? 0 : 1 + Math.round(-32 * Math.log2(p));
}

/** The size of a blocked filter for n items at rate p, from 1e-9 to below 1. */
export function size(n: number, p: number): Geometry {
  if (!(p >= 1e-9 && p < 1) || !(n >= 1 && n < 2 ** 36)) {
    throw new RangeError("n is from 1 to below 2**36, p from 1e-9 to below 1");
  };
  let z = 1;
  for (let t = 0.1; p < t * (1 - 1e-9); t /= 10) z++;
  const e = (x: number) => { // e^-x by + - * / alone, the same everywhere
    let t = 1;
    for (let i = 40; i >= 1; i--) t = 1 + ((x / 16) * t) / i;
    return [1, 2, 3, 4].reduce((r) => r * r, 1 / t);
  };
  const rate = (c: number) => {
    const u = (2 * z * 2 ** 20) / (53 * c);
    return Array<number>(z).fill((1 - 2 * e(u)) + e((5459 * u) / 2756)).reduce((a, b) => a * b);
  };
  let [low, high] = [1, 2 ** 26];
  while (low < high) {
    const c = Math.floor((low + high) / 2);
    if (rate(c) <= p) high = c; else low = c + 1;
  }
  const words = (BigInt(n) * BigInt(low) + 2n ** 20n - 1n) / 2n ** 20n;
  return { m: 53 * Math.max(32, Number(words)), k: 2 * z, rate: rateOf(p) };
}

/** Adds items to a plain filter, and makes it if there is none. True: it was new.
 * One command for 500 items; if one fails, those before it have run. Mismatch, for
 * another size or kind at the key, comes after the bits were set. A call that sends
 * a command again draws its birth number again. */
export async function add(
  call: Call, key: string, items: string[], geometry: Geometry,
): Promise<boolean[]> {
  const header = headerOf(geometry), added: boolean[] = [];
  for (const some of batches(items)) {
    const random = Math.floor(Math.random() * 2 ** 42); // another in each command
    const birth = 2 ** 52 + random * 2 ** 10 + (geometry.rate ?? 0);
    const cells = [];
    for (const item of some) cells.push(...cellsOf(item, geometry));
    const [, stands, , ...old] = await call([
      "BITFIELD", key, "OVERFLOW", "FAIL", "INCRBY", "u53", "0", String(header),
      "GET", "u53", "0", "INCRBY", "u53", "64", String(birth), "OVERFLOW", "WRAP",
      ...cells.flatMap((cell) => ["SET", "u1", String(start + cell), "1"]),
    ]) as number[];
    if (stands !== header) throw new Mismatch("another filter, or other data, is at this key");
    for (let at = 0; at < old.length; at += geometry.k) {
      added.push(old.slice(at, at + geometry.k).includes(0));
    }
  }
  return added;
}

/** The parts that an item may be in: one, the panes, or all layers that can be. */
export function partsOf(kind: string, m: number, panes: number): Part[] {
  const parts: Part[] = [];
  const most = { filter: 1, scalable: 5, window: panes }[kind] ?? 0;
  for (let i = 0, at = start; i < most; i++) {
    const cells = kind === "scalable" ? m * 4 ** i : m;
    if (at + cells > 2 ** 32) break;
    parts.push({ at, m: cells });
    at += upToBytes(cells);
  }
  return parts;
}

/** The clockwork of a window. */
export class Panes {
  readonly epochs: number;
  constructor(readonly panes: number, readonly seconds: number) {
    this.epochs = panes * Math.floor(2 ** 24 / panes);
  }
  epochAt(unix: number): number { return Math.floor(unix / this.seconds) % this.epochs; }
  private after(a: number, b: number): number { return (a - b + this.epochs) % this.epochs; }

  /** The panes that count at epoch e if the window stands at c. Without e, the
   * server's clock is not known. */
  counting(e: number | undefined, c: number): number[] {
    const behind = e === undefined || this.after(c, e) < Math.floor(this.epochs / 16);
    const passed = behind ? 0 : this.after(e, c);
    const counting: number[] = [];
    for (let i = passed; i < this.panes; i++) {
      counting.push((c + this.epochs - (this.panes - 2) + i) % this.epochs % this.panes);
    }
    return counting;
  }
}

/** A filter of one of these kinds at a key, as open found it. */
export class Reader {
  private known?: { unix: number; at: number };

  constructor(
    private readonly call: Call, readonly key: string, readonly kind: string,
    readonly geometry: Geometry, readonly parts: Part[],
    private readonly header: number, private readonly read: string,
    private readonly panes?: Panes,
  ) {}

  /** Reports for each item whether it is in. Of a window: whether it was added
   * lately. A filter that is missing, or another one, is an error. */
  async exists(items: string[]): Promise<boolean[]> {
    const { k, seed = 0n, scheme = blocked } = this.geometry, found: boolean[] = [];
    for (const some of batches(items)) {
      const gets: string[] = [];
      const wanted: number[][] = []; // of each answer, the places of the item's bits
      for (const item of some) {
        if (scheme !== blocked) {
          for (const cell of cellsOf(item, this.geometry)) {
            gets.push("GET", "u1", String(start + cell));
            wanted.push([0]);
          }
          continue;
        }
        const h = xxh3Of(bytesOf(item), seed);
        for (const part of this.parts) {
          for (const [w, a, b] of wordsOf(h, part.m, k)) {
            gets.push("GET", "u53", String(part.at + 53 * w));
            wanted.push([52 - a, 52 - b]);
          }
        }
      }
      const unix = this.panes && await this.time();
      const [again, word, ...got] = await this.call([this.read, this.key,
        "GET", "u53", "0", "GET", "u53", "128", ...gets]) as number[];
      if (again === 0) throw new NotFound("no filter is at this key any more");
      if (again !== this.header) throw new Mismatch("another filter took its place");
      const reads = scheme === blocked ? k / 2 : k;
      const counting = this.counting(word, unix);
      for (let at = 0; at < got.length; at += this.parts.length * reads) {
        found.push(counting.some((part) => {
          const from = at + part * reads;
          return wanted.slice(from, from + reads).every((places, j) =>
            places.every((place) => field(got[from + j], place, 1) === 1));
        }));
      }
    }
    return found;
  }

  /** The parts that count. */
  private counting(word: number, unix: number | undefined): number[] {
    if (this.panes === undefined) return this.parts.map((_, i) => i);
    if (field(word, 47, 4) !== this.panes.panes || field(word, 24, 23) !== this.panes.seconds) {
      throw new Mismatch("another window took its place");
    }
    const e = unix === undefined ? undefined : this.panes.epochAt(unix);
    return this.panes.counting(e, field(word, 0, 24));
  }

  /** The server's time, asked for every ten minutes. A token that may only read
   * may be refused it: then all panes count. */
  private async time(): Promise<number | undefined> {
    for (let tries = 0; tries <= 5; tries++) {
      const now = performance.now();
      if (this.known !== undefined && now - this.known.at <= 600_000) {
        return this.known.unix + (now - this.known.at) / 1000;
      }
      try {
        const [seconds] = await this.call(["TIME"]) as string[];
        // A slow answer is not exact. Late rather than early: what is forgotten
        // too late is no wrong "no".
        const came = performance.now();
        if (came - now <= 2000) this.known = { unix: Number(seconds), at: came };
      } catch (e) {
        if (String(e).includes("NOPERM")) return undefined;
        throw e;
      }
    }
    throw new Error("TIME: no answer came within 2 seconds");
  }
}

/** Opens the filter at a key, to look items up. A token that may
 * only read needs readOnly. On a global database the nearest region then answers,
 * and a "no" may be as old as its lag. NotFound: the string is missing or empty.
 * One that begins with 53 zero bits is a Mismatch; an add would make a filter of it. */
export async function open(
  call: Call, key: string, seed = 0n, readOnly = false,
): Promise<Reader> {
  const read = readOnly ? "BITFIELD_RO" : "BITFIELD"; // which counts as a write
  const ask = async () => await call([read, key, "GET", "u53", "0",
    "GET", "u11", "53", "GET", "u10", "117", "GET", "u53", "128"]) as number[];
  let [header, low, gap, word] = await ask();
  if (header === 0) {
    if (await call(["STRLEN", key]) === 0) {
      throw new NotFound("no filter is at this key; a sharded one is at KEY:0, KEY:1 and so on,"
        + " and this file does not read it");
    }
    [header, low, gap, word] = await ask(); // a filter may have been made meanwhile
  }
  const kind = kinds[field(header, 50, 2)], scheme = field(header, 45, 3);
  const k = field(header, 39, 6), tag = field(header, 32, 7), m = field(header, 0, 32);
  const known = scheme === blocked || (kind === "filter" && [fnv1a, xxh3].includes(scheme));
  const valid = low === 0 && gap === 0 && header >= 2 ** 52 && field(header, 48, 2) === 1
    && k >= 1 && m >= 1 && (scheme !== blocked || (k % 2 === 0 && m % 53 === 0));
  if (!valid || !known || kind === "shard" || start + m > 2 ** 32) {
    throw new Mismatch("other data, or a filter that this file does not read");
  }
  if (tag !== tagOf(seed)) throw new Mismatch("the filter has another seed");
  let panes: Panes | undefined;
  if (kind === "window") panes = new Panes(field(word, 47, 4), field(word, 24, 23));
  const parts = partsOf(kind, m, panes?.panes ?? 0);
  const ring = !panes || (panes.panes >= 3 && panes.panes <= 6 && panes.seconds >= 10
    && parts.length === panes.panes);
  if (!ring || (kind !== "filter" && word < 2 ** 52)) {
    throw new Mismatch("the kind's own word is damaged");
  }
  return new Reader(call, key, kind, { m, k, scheme, seed }, parts, header, read, panes);
}
