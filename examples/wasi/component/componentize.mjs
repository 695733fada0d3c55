// Makes a wasi:http component of a core module built by Go:
//
//   node componentize.mjs core.wasm dedup.wasm
//
// `jco embed` would do the first half, but it looks for WIT files through a
// file system that it was not given; passing the WIT as text avoids that.
import { readFile, writeFile } from "node:fs/promises";
import { componentEmbed, componentNew } from "@bytecodealliance/jco";

const [core, component] = process.argv.slice(2);
const jco = new URL("../", import.meta.resolve("@bytecodealliance/jco"));

// jco brings the definitions of WASI along: one file a package. As one text,
// each package needs braces around it.
const version = "0.2.12";
const names = ["cli", "clocks", "filesystem", "http", "io", "random", "sockets"];
const packages = await Promise.all(names.map(async (name) => {
  const wit = await readFile(new URL(`lib/wit/builtin/${version}/wasi-${name}/package.wit`, jco), "utf8");
  return wit.replace(/^package ([^;]*);/m, "package $1 {") + "}\n";
}));
const world = await readFile(new URL("world.wit", import.meta.url), "utf8");

// The module learns what it imports and exports...
const embedded = await componentEmbed({
  binary: await readFile(core),
  witSource: world + packages.join(""),
  worldName: "dedup",
});
// ...and the adapter gives Go's wasip1 system calls in terms of WASI 0.2.
const adapter = await readFile(new URL("lib/wasi_snapshot_preview1.reactor.wasm", jco));
await writeFile(component, await componentNew(embedded, [["wasi_snapshot_preview1", adapter]]));
