// A Worker that runs the test binary of package upstash as a relay. The body of
// its only request has the calls, and the body of the answer has the results.
// So everything that the program begins belongs to one request of workerd, and
// may end in it.
import "./wasm_exec.js"; // defines globalThis.Go, and a file system of stubs
import wasm from "./relay.wasm";

export default {
  async fetch(request, env, ctx) {
    const { readable, writable } = new IdentityTransformStream();
    const input = request.body.getReader();
    const output = writable.getWriter();
    let rest = new Uint8Array();
    // The program's standard input, output and error.
    Object.assign(globalThis.fs, {
      read(fd, buffer, offset, length, position, done) {
        const take = () => {
          const piece = rest.subarray(0, length);
          rest = rest.subarray(piece.length);
          buffer.set(piece, offset);
          done(null, piece.length);
        };
        if (rest.length > 0) return take();
        input.read().then((part) => {
          rest = part.value ?? rest;
          take();
        }, done);
      },
      write(fd, buffer, offset, length, position, done) {
        const piece = buffer.slice(offset, offset + length);
        if (fd !== 1) {
          console.error(new TextDecoder().decode(piece));
          return done(null, length);
        }
        output.write(piece).then(() => done(null, length), done);
      },
    });
    const go = new Go();
    go.argv = ["relay", "-test.run=^TestRelay$"];
    go.env = { [env.RELAY]: "1" };
    const instance = await WebAssembly.instantiate(wasm, go.importObject);
    ctx.waitUntil(go.run(instance).finally(() => output.close()));
    return new Response(readable);
  },
};
