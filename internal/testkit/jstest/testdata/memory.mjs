// Runs a program that can ask how much memory it and its host hold.
import fs from "node:fs";
const [wasmExec, program] = process.argv.slice(2);
await import(wasmExec);
const go = new Go();
go.env = { ...process.env };
const { instance } = await WebAssembly.instantiate(fs.readFileSync(program), go.importObject);
globalThis.guestMemory = () => instance.exports.mem.buffer.byteLength;
globalThis.hostMemory = () => {
  gc();
  return process.memoryUsage().heapUsed;
};
await go.run(instance);
process.exit(0);
