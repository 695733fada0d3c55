// Makes a wasi:http component of a core module built by Go:
//
//   node componentize.mjs core.wasm dedup.wasm
//
// `jco embed` and `jco new` do the same. But `jco embed` looks for WIT files in a
// file system that it has no access to. Passing the text avoids that.
import { readFile, writeFile } from "node:fs/promises";
import { componentEmbed, componentNew } from "@bytecodealliance/jco";

const [core, component] = process.argv.slice(2);

// The module learns what it imports and exports...
const embedded = await componentEmbed({
  binary: await readFile(core),
  witSource: await readFile(new URL("world.wit", import.meta.url), "utf8"),
  worldName: "dedup",
});
// ...and jco's adapter gives it Go's wasip1 system calls in terms of WASI 0.2.
const jco = import.meta.resolve("@bytecodealliance/jco");
const adapter = await readFile(new URL("../lib/wasi_snapshot_preview1.reactor.wasm", jco));
await writeFile(component, await componentNew(embedded, [["wasi_snapshot_preview1", adapter]]));
