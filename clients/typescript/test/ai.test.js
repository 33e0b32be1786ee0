import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Aforesaid, ConnectionError } from "aforesaid";
import { memoryMiddleware } from "aforesaid/ai";
import { startServer } from "./server.js";

const sdk = await import("ai").catch(() => null);
const mocks = sdk && (await import("ai/test"));
const options = { skip: sdk === null && "the package `ai` is not installed" };

/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {Aforesaid} */
let client;

before(async () => {
  if (sdk === null) return;
  server = await startServer();
  client = new Aforesaid({ baseUrl: server.baseUrl, key: server.key });
});
after(() => server?.stop());

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const STOP = { unified: "stop", raw: "stop" };

/** A model that repeats the last line of the user's message, and the middleware around it. */
function remembering(given) {
  const Mock = mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3;
  const answer = (prompt) => `You said: ${lastText(prompt)}`;
  const model = new Mock({
    doGenerate: async ({ prompt }) => ({ content: [{ type: "text", text: answer(prompt) }], finishReason: STOP, usage: USAGE, warnings: [] }),
    doStream: async ({ prompt }) => ({
      stream: mocks.simulateReadableStream({
        chunks: [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "1" },
          ...answer(prompt).split(" ").map((word, place) => ({ type: "text-delta", id: "1", delta: place ? ` ${word}` : word })),
          { type: "text-end", id: "1" },
          { type: "finish", finishReason: STOP, usage: USAGE },
        ],
      }),
    }),
  });
  return { model: sdk.wrapLanguageModel({ model, middleware: memoryMiddleware(given) }), mock: model };
}

/** @param {any[]} prompt */
function lastText(prompt) {
  return prompt.findLast((message) => message.role === "user").content[0].text.split("\n").at(-1);
}

/** @param {string} user */
async function log(user) {
  return (await client.user(user).history()).messages.map((message) => [message.role, message.text]);
}

test("a later call knows what an earlier one said, and both sides are stored", options, async () => {
  const { model, mock } = remembering({ memory: client.user("ann"), budget: 2000 });
  await sdk.generateText({ model, system: "You are Rex.", prompt: "My parrot is called Rio." });
  const { text } = await sdk.generateText({ model, system: "You are Rex.", prompt: "What is my parrot called?" });
  assert.equal(text, "You said: What is my parrot called?");
  const sent = mock.doGenerateCalls[1].prompt;
  assert.deepEqual(sent[0], { ...sent[0], role: "system", content: "You are Rex." });
  assert.match(JSON.stringify(sent), /Rio/);
  assert.deepEqual(await log("ann"), [
    ["user", "My parrot is called Rio."],
    ["assistant", "You said: My parrot is called Rio."],
    ["user", "What is my parrot called?"],
    ["assistant", "You said: What is my parrot called?"],
  ]);
});

test("a streamed answer is stored when the stream has ended", options, async () => {
  const { model } = remembering({ memory: client.user("bob") });
  const { textStream } = sdk.streamText({ model, prompt: "Stream this." });
  const pieces = [];
  for await (const piece of textStream) pieces.push(piece);
  assert.equal(pieces.join(""), "You said: Stream this.");
  assert.deepEqual(await log("bob"), [["user", "Stream this."], ["assistant", "You said: Stream this."]]);
});

test("a history that the app sends is not repeated", options, async () => {
  const eve = client.user("eve");
  await eve.add("user", "I live in Bern.");
  await eve.add("assistant", "A fine city.");
  const { model, mock } = remembering({ memory: eve });
  const messages = [
    { role: "user", content: "I live in Bern." },
    { role: "assistant", content: "A fine city." },
    { role: "user", content: "Good night!" },
  ];
  await sdk.generateText({ model, messages });
  const turns = mock.doGenerateCalls[0].prompt.filter((message) => message.role !== "system");
  assert.deepEqual(turns.map((message) => message.role), ["user", "assistant", "user"]);
  assert.deepEqual((await log("eve")).slice(2), [["user", "Good night!"], ["assistant", "You said: Good night!"]]);
});

test("the memory is chosen by the options of a call", options, async () => {
  const memory = ({ aforesaid }) => client.user(aforesaid.user);
  const { model } = remembering({ memory });
  await sdk.generateText({ model, prompt: "Hello", providerOptions: { aforesaid: { user: "fay" } } });
  assert.equal((await log("fay")).length, 2);
});

test("a call that the SDK repeats stores the question once", options, async () => {
  const { model, mock } = remembering({ memory: client.user("ivy") });
  const answer = mock.doGenerate;
  mock.doGenerate = async (call) => {
    mock.doGenerate = answer;
    throw new sdk.APICallError({ message: "busy", url: "", requestBodyValues: {}, statusCode: 503, isRetryable: true, responseHeaders: { "retry-after-ms": "1" } });
  };
  await sdk.generateText({ model, prompt: "Hello" });
  assert.deepEqual(await log("ivy"), [["user", "Hello"], ["assistant", "You said: Hello"]]);
});

test("an image is stored with its message", options, async () => {
  const { model } = remembering({ memory: client.user("jan") });
  const image = { type: "image", image: new URL("https://example.org/cat.png"), mediaType: "image/png" };
  const mock = { role: "user", content: [{ type: "text", text: "What is this?" }, image] };
  await sdk.generateText({ model, messages: [mock], experimental_download: async () => [null] });
  const [message] = (await client.user("jan").history({ role: "user" })).messages;
  assert.deepEqual([message.text, message.parts.map((part) => [part.type, part.url])], ["What is this?", [["image", "https://example.org/cat.png"]]]);
});

test("calls and results of tools are stored, and the question once", options, async () => {
  const { model, mock } = remembering({ memory: client.user("gus") });
  mock.doGenerate = async (call) => {
    mock.doGenerateCalls.push(call);
    const asked = call.prompt.at(-1).role === "user";
    const content = asked
      ? [{ type: "tool-call", toolCallId: "1", toolName: "weather", input: '{"city": "Bern"}' }]
      : [{ type: "text", text: "It rains." }];
    return { content, finishReason: { unified: asked ? "tool-calls" : "stop", raw: "" }, usage: USAGE, warnings: [] };
  };
  const tools = { weather: sdk.tool({ inputSchema: sdk.jsonSchema({ type: "object" }), execute: async () => "rain" }) };
  const { text } = await sdk.generateText({ model, tools, stopWhen: sdk.stepCountIs(3), prompt: "How is the weather?" });
  assert.equal(text, "It rains.");
  const stored = (await client.user("gus").history()).messages;
  assert.deepEqual(
    stored.map((message) => [message.role, message.text, message.tool_call_id, message.tool_calls.map((call) => call.arguments)]),
    [
      ["user", "How is the weather?", null, []],
      ["assistant", "", null, ['{"city": "Bern"}']],
      ["tool", "rain", "1", []],
      ["assistant", "It rains.", null, []],
    ],
  );
});

test("without its server, a call fails, or goes on and says so", options, async () => {
  const memory = new Aforesaid({ baseUrl: "http://127.0.0.1:1", retries: 0 }).user("hal");
  await assert.rejects(sdk.generateText({ model: remembering({ memory }).model, prompt: "Hi", maxRetries: 0 }), ConnectionError);
  const failures = [];
  const { model } = remembering({ memory, onError: (error) => failures.push(error) });
  assert.equal((await sdk.generateText({ model, prompt: "Hi" })).text, "You said: Hi");
  assert.deepEqual(failures.map((error) => error.name), ["ConnectionError", "ConnectionError"]);
});
