// Makes a component of the test binary of ../component. It answers one call in
// each run of wasi:cli/run:
//
//   node relay.mjs core.wasm relay.wasm
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [from, to] = process.argv.slice(2);
const folder = new URL("../component/", import.meta.url);
const jco = pathToFileURL(createRequire(folder).resolve("@bytecodealliance/jco"));
const { componentEmbed, componentNew } = await import(jco);

const world = await readFile(new URL("world.wit", folder), "utf8");
const embedded = await componentEmbed({
  binary: await readFile(from),
  witSource: `${world.replace("export ", "export wasi:cli/run@0.2.0;\n  export ")}
package wasi:cli@0.2.0 {
  interface run { run: func() -> result; }
}`,
  worldName: "dedup",
});
const adapter = await readFile(new URL("../lib/wasi_snapshot_preview1.reactor.wasm", jco));
await writeFile(to, await componentNew(embedded, [["wasi_snapshot_preview1", adapter]]));
