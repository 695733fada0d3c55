// Runs a transpiled component again and again, until a run returns an error. Node
// can send what the component wrote only between two runs, because nothing else
// happens during a run.
import { stdout } from "node:process";
import { run } from "./relay.js";

for (;;) {
  try {
    run.run();
  } catch (failed) {
    if ("payload" in failed) process.exit(0);
    throw failed; // a trap
  }
  await new Promise((resolve) => stdout.write("", resolve)); // after all that was written before
}
