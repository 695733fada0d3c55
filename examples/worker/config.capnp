# To try the Worker in workerd, with a database on this machine.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    # Loopback only: this is no configuration to serve the public with.
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "worker")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "wasm_exec.js", esModule = embed "wasm_exec.js"),
    (name = "worker.wasm", wasm = embed "worker.wasm"),
  ],
  bindings = [
    (name = "UPSTASH_REDIS_REST_URL", fromEnvironment = "UPSTASH_REDIS_REST_URL"),
    (name = "UPSTASH_REDIS_REST_TOKEN", fromEnvironment = "UPSTASH_REDIS_REST_TOKEN"),
    (name = "UPBLOOM_SEED", fromEnvironment = "UPBLOOM_SEED"),
  ],
  compatibilityDate = "2026-10-01",
);
