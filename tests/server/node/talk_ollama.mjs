// The official Ollama client for JavaScript, unmodified, through the proxy. Prints what it saw as JSON.
import { Ollama } from "ollama";

const [, , host, apiKey, wrongKey] = process.argv;
const connect = (key) =>
  new Ollama({ host, headers: { Authorization: `Bearer ${key}`, "X-Aforesaid-User": "ann" } });
const client = connect(apiKey);
const ask = (content) => ({ model: "m", messages: [{ role: "user", content }] });
const seen = {};

seen.first = (await client.chat(ask("My parrot is called Rio."))).message.content;
seen.second = (await client.chat(ask("What is my parrot called?"))).message.content;

seen.streamed = "";
for await (const part of await client.chat({ ...ask("Stream this."), stream: true })) {
  seen.streamed += part.message.content;
}

const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
const called = (await client.chat({ ...ask("use the tool"), tools })).message.tool_calls[0].function;
seen.tool = { name: called.name, arguments: `{"city": "${called.arguments.city}"}` };

try {
  await client.chat(ask("be overloaded"));
} catch (error) {
  seen.error = ["RateLimitError", error.status_code];
}
try {
  await connect(wrongKey).chat(ask("hi"));
} catch (error) {
  seen.refused = ["AuthenticationError", error.status_code];
}

const broken = await client.chat({ ...ask("tell me a long story"), stream: true });
for await (const part of broken) {
  if (part.message.content) break;
}
broken.abort(); // hangs up
seen.models = (await client.list()).models.map((model) => model.model);
process.stdout.write(JSON.stringify(seen));
