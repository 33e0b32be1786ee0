import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import {
  Aforesaid,
  AforesaidError,
  ApiError,
  ConnectionError,
  Forbidden,
  InvalidInput,
  InvalidResponse,
  NotFound,
  PreconditionFailed,
  RequestTimeout,
  TooManyRequests,
  Unauthorized,
} from "aforesaid";
import { listening, startProxy, startServer, stopped } from "./server.js";

/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {Aforesaid} */
let client;

before(async () => {
  server = await startServer();
  client = new Aforesaid({ baseUrl: server.baseUrl, key: server.key });
});
after(() => server?.stop());

test("a message is stored, listed, found, and part of the context", async () => {
  const ann = client.user("ann");
  const receipt = await ann.add("user", "I moved to Berlin last week.", { at: new Date("2026-03-01T12:00:00Z"), name: "Ann" });
  assert.deepEqual([receipt.durable, receipt.duplicate, receipt.message.at], [true, false, "2026-03-01T12:00:00Z"]);
  await ann.add("assistant", "How do you like it?");
  const { messages, next } = await ann.history({ limit: 10 });
  assert.deepEqual([messages.map((message) => message.role), next], [["user", "assistant"], null]);
  const [hit] = await ann.search("Berlin", { limit: 3, kinds: ["message", "summary"] });
  assert.equal(hit.text, "I moved to Berlin last week.");
  const context = await ann.context("Where do I live?", { budget: 2000, system: "You are helpful." });
  assert.match(context.messages[0].content, /^You are helpful/);
  assert.match(context.text, /Berlin/);
  const { sections } = await ann.context("Where do I live?", { budget: 2000, without: ["recent"] });
  assert(context.sections.some((section) => section.name === "recent"));
  assert(!sections.some((section) => section.name === "recent"));
});

test("threads of a user are apart", async () => {
  const [work, home] = ["work", "home"].map((thread) => client.user("tom", { thread }));
  await work.add("user", "The build is red.");
  assert.equal((await home.history({ within: "thread" })).messages.length, 0);
  assert.equal((await work.history({ within: "thread" })).messages.length, 1);
});

test("many messages are stored at once, counted, and chosen by metadata and time", async () => {
  const work = client.user("uma", { thread: "work" });
  const topic = (/** @type {string} */ name) => ({ metadata: { topic: name } });
  const batch = await work.addMany([
    { role: "user", text: "The kettle is broken.", at: new Date("2026-03-01T12:00:00Z"), ...topic("home") },
    { role: "assistant", tool_calls: [{ id: "call_1", name: "shop", arguments: '{"what": "kettle"}' }] },
    { role: "tool", text: "ordered", tool_call_id: "call_1" },
    { role: "user", text: "The build is red.", parts: [{ type: "image", url: "https://example.org/red.png" }], ...topic("work") },
  ]);
  assert.deepEqual([batch.stored, batch.ids.length, await work.count()], [4, 4, 4]);
  const { messages } = await work.history({ metadata: { topic: "work" } });
  assert.deepEqual(messages.map((message) => message.parts[0].url), ["https://example.org/red.png"]);
  assert.equal(await work.count({ role: "user", since: new Date("2026-03-01T12:00:01Z") }), 1);
  assert.deepEqual((await work.threads()).map((thread) => [thread.id, thread.messages]), [["work", 4]]);
  assert.equal((await work.history({ role: "assistant" })).messages[0].tool_calls[0].arguments, '{"what": "kettle"}');
});

test("messages are edited, taken back and erased, and a thread is cleared", async () => {
  const vic = client.user("vic", { thread: "plans" });
  const ids = (await vic.addMany(["one", "two", "three", "four"].map((text) => ({ role: "user", text })))).ids;
  const texts = async () => (await vic.history({ within: "thread" })).messages.map((message) => message.text);
  const { message } = await vic.edit(ids[0], { text: "first", metadata: { edited: true } });
  assert.deepEqual([message.text, message.metadata], ["first", { edited: true }]);
  await vic.takeBack(ids[1]);
  assert.equal((await vic.erase([ids[2]])).messages, 1);
  assert.deepEqual(await texts(), ["first", "four"]);
  assert.equal(await vic.clear(), 2);
  assert.deepEqual(await texts(), []);
});

test("facts are remembered and forgotten", async () => {
  const zoe = client.user("zoe");
  assert.equal((await zoe.remember("I prefer tea over coffee", { name: "Zoe" })).outcome, "stored");
  assert.match((await zoe.portrait()) ?? "", /tea/);
  assert.equal((await zoe.memories({ category: "preference" })).next, null);
  assert.equal((await zoe.forget("that Zoe prefers tea over coffee", { name: "Zoe" })).found, true);
  assert.deepEqual(await zoe.summaries(), []);
});

test("pages are followed to the last one", async () => {
  const ben = client.user("ben");
  for (const number of [1, 2, 3, 4, 5]) await ben.add("user", `message ${number}`);
  const texts = [];
  for await (const page of client.pages("GET /api/messages", { query: { user: "ben", limit: 2 } })) {
    texts.unshift(...page.messages.map((message) => message.text));
  }
  assert.deepEqual(texts, ["message 1", "message 2", "message 3", "message 4", "message 5"]);
});

test("any route can be called, with headers of the response", async () => {
  const body = { user_name: "ida", category: /** @type {const} */ ("fact"), content: "Ida has a dog" };
  const made = await client.request("POST /api/memories", { body });
  const route = "PUT /api/memories/{number}";
  const { response } = await client.exchange("GET /api/memories/{number}", { path: { number: made.id } });
  const etag = response.headers.get("etag") ?? "";
  const edit = { path: { number: made.id }, headers: { "If-Match": etag }, body: { content: "Ida has two dogs" } };
  assert.equal((await client.request(route, edit)).content, "Ida has two dogs");
  await assert.rejects(client.request(route, edit), PreconditionFailed);
});

test("a file is imported from a stream", async () => {
  const admin = new Aforesaid({ baseUrl: server.baseUrl, key: await server.addKey("admin", "--role", "admin") });
  const line = JSON.stringify({ messages: [{ role: "user", content: "Imported words" }] });
  const body = new Blob([line]).stream();
  const loaded = await admin.request("POST /api/import", { query: { format: "openai", user: "kim" }, body });
  assert.deepEqual([loaded.new.message, loaded.problems], [1, 0]);
  const exported = await new Response(await admin.request("GET /api/export")).text();
  assert.match(exported, /Imported words/);
});

test("problems are errors of a class of their own", async () => {
  await assert.rejects(client.request("GET /api/memories/{number}", { path: { number: 999_999 } }), (error) => {
    assert(error instanceof NotFound && error instanceof ApiError && error instanceof AforesaidError);
    assert.deepEqual([error.name, error.status, error.type], ["NotFound", 404, "urn:aforesaid:problem:not-found"]);
    assert.match(error.message, /memory 999999/);
    return true;
  });
  await assert.rejects(client.user("ann").history({ limit: 0 }), (error) => {
    assert(error instanceof InvalidInput);
    assert.equal(error.errors[0].where, "query.limit");
    return true;
  });
  await assert.rejects(client.request("GET /api/keys"), Forbidden);
  const stranger = new Aforesaid({ baseUrl: server.baseUrl, key: "rk_wrong" });
  await assert.rejects(stranger.user("ann").history(), Unauthorized);
});

test("ids with characters of addresses stay in their place", async () => {
  const id = "a/b?c=d&e#f é";
  await client.user(id).add("user", "Odd name");
  assert.equal((await client.user(id).history()).messages[0].user, id);
  await assert.rejects(client.request("DELETE /api/users/{user}", { path: { user: ".." }, query: { confirm: ".." } }), TypeError);
});

test("a message whose response was lost is stored once", async () => {
  const proxy = await startProxy(server.baseUrl, (_, count) => count === 1);
  const lucy = new Aforesaid({ baseUrl: proxy.baseUrl, key: server.key }).user("lucy");
  const receipt = await lucy.add("user", "Only once");
  assert.deepEqual([receipt.duplicate, proxy.requests()], [true, 2]);
  assert.equal((await lucy.history()).messages.length, 1);
  await proxy.stop();
});

test("a request that is not safe to repeat is sent once", async () => {
  const proxy = await startProxy(server.baseUrl, () => true);
  const flaky = new Aforesaid({ baseUrl: proxy.baseUrl, key: server.key });
  const sent = flaky.request("PUT /api/settings", { query: { user: "ann" }, body: { settings: { time_zone: "Europe/Berlin" } } });
  await assert.rejects(sent, ConnectionError);
  assert.equal(proxy.requests(), 1);
  await proxy.stop();
});

test("a busy server is asked again after the time that it names", async () => {
  let asked = 0;
  const busy = createServer((_, response) => {
    const problem = { type: "urn:aforesaid:problem:too-many-requests", title: "Too Many Requests", status: 429, detail: "wait", errors: [] };
    response.writeHead(++asked === 1 ? 429 : 200, { "retry-after": "0", "content-type": "application/json" });
    response.end(asked === 1 ? JSON.stringify(problem) : '{"status":"ok"}');
  });
  const baseUrl = await listening(busy);
  assert.deepEqual(await new Aforesaid({ baseUrl }).request("GET /healthz"), { status: "ok" });
  asked = 0;
  await assert.rejects(new Aforesaid({ baseUrl, retries: 0 }).request("GET /healthz"), TooManyRequests);
  await stopped(busy);
});

test("a server that does not answer is given up in time, and at once when the caller aborts", async () => {
  const silent = createServer(() => {});
  const baseUrl = await listening(silent);
  const patient = new Aforesaid({ baseUrl, retries: 1 });
  await assert.rejects(patient.request("GET /healthz", { timeoutMs: 20 }), RequestTimeout);
  const abort = new AbortController();
  const waiting = assert.rejects(patient.request("GET /healthz", { signal: abort.signal }), { name: "AbortError" });
  abort.abort();
  await waiting;
  await stopped(silent);
});

test("a key is not sent to the target of a redirect", async () => {
  let stolen = 0;
  const other = createServer((_, response) => response.end(`{"stolen": ${++stolen}}`));
  const target = await listening(other);
  const redirecting = createServer((_, response) => response.writeHead(307, { location: target }).end());
  const baseUrl = await listening(redirecting);
  await assert.rejects(new Aforesaid({ baseUrl, key: "secret", retries: 0 }).request("GET /healthz"), ConnectionError);
  assert.equal(stolen, 0);
  await stopped(redirecting);
  await stopped(other);
});

test("events arrive, also those stored while the connection was lost", async () => {
  const proxy = await startProxy(server.baseUrl, () => false);
  const direct = client.user("eva");
  const { promise: began, fetch } = noticing();
  const following = new Aforesaid({ baseUrl: proxy.baseUrl, key: server.key, fetch }).user("eva");
  const abort = new AbortController();
  const events = following.events({ signal: abort.signal });
  const first = events.next();
  await began;
  await direct.add("user", "First");
  assert.deepEqual(textsOf([(await first).value]), ["First"]);
  proxy.breakConnections();
  await direct.add("user", "Second");
  const second = (await events.next()).value;
  assert.deepEqual(textsOf([second]), ["Second"]);
  const third = assert.rejects(events.next(), { name: "AbortError" });
  abort.abort();
  await third;
  const again = direct.events({ lastEventId: second.id ?? undefined });
  await direct.remember("I like tea");
  assert.equal((await again.next()).value.type, "change");
  await again.return(/** @type {never} */ (undefined));
  await proxy.stop();
});

test("a connection that breaks before the first event misses nothing", async () => {
  const proxy = await startProxy(server.baseUrl, () => false);
  const { promise: began, fetch } = noticing();
  const events = new Aforesaid({ baseUrl: proxy.baseUrl, key: server.key, fetch }).user("max").events();
  const first = events.next();
  await began;
  proxy.breakConnections();
  await client.user("max").add("user", "In between");
  assert.deepEqual(textsOf([(await first).value]), ["In between"]);
  await events.return(/** @type {never} */ (undefined));
  await proxy.stop();
});

test("a stream ends with an error when its key is revoked, and for an answer that is not a stream", async () => {
  const admin = new Aforesaid({ baseUrl: server.baseUrl, key: await server.addKey("admin-2", "--role", "admin") });
  const { id, token } = await admin.request("POST /api/keys", { body: { name: "short", role: "reader", space: "default" } });
  const { promise: began, fetch } = noticing();
  const events = new Aforesaid({ baseUrl: server.baseUrl, key: token, fetch }).user("ned").events();
  const refused = assert.rejects(events.next(), Unauthorized);
  await began;
  await admin.request("DELETE /api/keys/{key_id}", { path: { key_id: id } });
  await refused;
  const page = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Hello"));
  const wrong = new Aforesaid({ baseUrl: await listening(page) }).user("ned").events();
  await assert.rejects(wrong.next(), InvalidResponse);
  await stopped(page);
});

/** Return a `fetch`, and a promise that is fulfilled when the first bytes of a body have arrived. */
function noticing() {
  /** @type {(value?: unknown) => void} */
  let arrived = () => {};
  const promise = new Promise((resolve) => (arrived = resolve));
  /** @type {typeof globalThis.fetch} */
  const noticed = async (...given) => {
    const response = await fetch(...given);
    const passing = new TransformStream({
      transform(chunk, controller) {
        controller.enqueue(chunk);
        setImmediate(arrived);
      },
    });
    return new Response(response.body?.pipeThrough(passing), response);
  };
  return { promise, fetch: noticed };
}

/** @param {import("aforesaid").MemoryEvent[]} events */
function textsOf(events) {
  return events.map((event) => (event.type === "message" ? event.data.text : event.data.action));
}
