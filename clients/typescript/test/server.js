// A real server for the tests, and a proxy in front of it that breaks connections.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PYTHON = process.env.AFORESAID_PYTHON ?? "python3";

/** Start `aforesaid serve` on a new store, and create a key. */
export async function startServer() {
  const folder = await mkdtemp(join(tmpdir(), "aforesaid-client-"));
  const environment = { ...process.env, AFORESAID_STORE: join(folder, "memory.db"), AFORESAID_EMBEDDER: "none" };
  /** @param {string[]} words */
  const run = (...words) => spawn(PYTHON, ["-m", "aforesaid", ...words], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const server = run("serve", "--port", "0");
  const baseUrl = await printed(server, /http:\/\/127\.0\.0\.1:\d+/);
  /** @param {string[]} words */
  const addKey = (...words) => printed(run("key", "add", ...words), /[a-z]+_[A-Za-z0-9_-]{20,}/);
  return {
    baseUrl,
    addKey,
    key: await addKey("tests", "--space", "default"),
    async stop() {
      server.kill();
      await once(server, "exit");
      await rm(folder, { recursive: true });
    },
  };
}

/** @param {import("node:child_process").ChildProcess} program @param {RegExp} wanted */
async function printed(program, wanted) {
  let text = "";
  for await (const piece of /** @type {import("node:stream").Readable} */ (program.stdout)) {
    text += piece;
    const found = wanted.exec(text);
    if (found) return found[0];
  }
  throw new Error(`the program ended without printing ${wanted}: ${text}`);
}

/**
 * Start a server that passes requests on to another one. `meddle` decides for each response: return true to break the
 * connection instead of sending it. The request has been processed by then.
 *
 * @param {string} target
 * @param {(path: string, count: number) => boolean} meddle
 */
export async function startProxy(target, meddle) {
  let count = 0;
  /** @type {Set<import("node:net").Socket>} */
  const sockets = new Set();
  const proxy = createServer((incoming, outgoing) => {
    const passed = request(new URL(incoming.url ?? "/", target), { method: incoming.method, headers: incoming.headers });
    passed.on("response", (response) => {
      if (meddle(incoming.url ?? "", ++count)) return incoming.socket.destroy();
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    });
    passed.on("error", () => incoming.socket.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  proxy.on("connection", (socket) => sockets.add(socket.on("close", () => sockets.delete(socket))));
  const baseUrl = await listening(proxy);
  return {
    baseUrl,
    requests: () => count,
    breakConnections: () => sockets.forEach((socket) => socket.destroy()),
    stop: () => stopped(proxy),
  };
}

/** @param {import("node:http").Server} server @returns {Promise<string>} */
export async function listening(server) {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
}

/** @param {import("node:http").Server} server */
export async function stopped(server) {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}
