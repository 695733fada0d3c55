using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    (name = "internet", network = (
      allow = ["local"],
      tlsOptions = (trustedCertificates = [embed "root.pem"]),
    )),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "relay.mjs", esModule = embed "relay.mjs"),
    (name = "wasm_exec.js", esModule = embed "wasm_exec.js"),
    (name = "relay.wasm", wasm = embed "relay.wasm"),
  ],
  bindings = [(name = "RELAY", fromEnvironment = "RELAY")],
  compatibilityDate = "2026-10-01",
);
