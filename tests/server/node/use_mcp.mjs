// Uses everything of the MCP server that an agent uses, and prints what it saw.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, ...rest] = process.argv.slice(2);

function transport(key) {
  if (kind === "stdio") {
    return new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env });
  }
  const headers = { Authorization: `Bearer ${key}` };
  return new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers } });
}

async function connected(key) {
  const client = new Client({ name: "test", version: "1" });
  const way = transport(key);
  await client.connect(way);
  return [client, way];
}

const seen = {};
const [client, way] = await connected(rest[1]);
const call = async (name, args = {}, options = undefined) =>
  (await client.callTool({ name, arguments: args }, undefined, options)).structuredContent;

const listed = (await client.listTools()).tools;
seen.tools = listed.map((tool) => tool.name);
seen.readOnly = listed.filter((tool) => tool.annotations.readOnlyHint).length;
for (let number = 0; number < 12; number++) {
  await call("add_memory", { content: `Ann owns book number ${number}` });
}
seen.owned = [];
let cursor;
do {
  const page = await call("get_memories", { limit: 5, ...(cursor ? { cursor } : {}) });
  seen.owned.push(...page.memories.map((memory) => memory.content));
  cursor = page.next;
} while (cursor);
const wrong = await client.callTool({ name: "portrait", arguments: { person: "ann" } });
seen.wrong = [wrong.isError, wrong.content[0].text];
await call("remember", { fact: "prefers tea" });
seen.resources = (await client.listResources()).resources.map((each) => each.uri);
seen.portrait = (await client.readResource({ uri: "aforesaid://users/ann/portrait" })).contents[0].text;
const template = { type: "ref/resource", uri: "aforesaid://users/{user}/portrait" };
seen.completed = (
  await client.complete({ ref: template, argument: { name: "user", value: "a" } })
).completion.values;
seen.prompt = (
  await client.getPrompt({ name: "with_memory", arguments: { message: "What do I drink?" } })
).messages[0].content.text;
const progress = [];
await call("search_memories", { query: "books" }, { onprogress: (each) => progress.push(each.progress) });
seen.progress = progress.length;
seen.session = way.sessionId ?? null;
await client.close();

if (kind === "http") {
  const [reading] = await connected(rest[2]);
  seen.reading = (await reading.listTools()).tools.map((tool) => tool.name);
  await reading.close();
  try {
    await connected("ak_wrong");
  } catch (error) {
    seen.refused = [error.constructor.name, error.code];
  }
}
console.log(JSON.stringify(seen));
