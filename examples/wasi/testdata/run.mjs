// Runs a transpiled component again and again, until a run returns an error. What
// it wrote leaves in between: while it runs, nothing else does.
import { stdout } from "node:process";
import { run } from "./relay.js";

for (;;) {
  try {
    run.run();
  } catch (failed) {
    if ("payload" in failed) process.exit(0);
    throw failed; // a trap
  }
  while (stdout.writableLength > 0) await new Promise((resolve) => stdout.once("drain", resolve));
}
