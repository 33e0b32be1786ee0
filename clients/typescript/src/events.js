import { ApiError, ConnectionError, InvalidResponse, RequestTimeout, TooManyRequests, Unavailable } from "./errors.js";
import { backoffMs, sleep } from "./http.js";

/** @import * as types from "../types/index.d.ts" */
/** @import { Http } from "./http.js" */

/** Three times the interval at which the server says that the connection is alive. */
const IDLE_MS = 45_000;
const DEFAULT_RECONNECTS = 10;

/**
 * Yield the events of a user's memory. A lost connection is opened again and continues after the last event.
 *
 * @param {Http} http
 * @param {Record<string, unknown>} query
 * @param {types.EventOptions} options
 * @returns {AsyncGenerator<types.MemoryEvent, never>}
 */
export async function* follow(http, query, options) {
  const { signal, idleMs = IDLE_MS, reconnects = DEFAULT_RECONNECTS } = options;
  let lastEventId = options.lastEventId;
  let connected = false;
  for (let failures = 0; ; failures++) {
    try {
      const headers = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
      const { data, response } = await http.send("GET /api/events", { query, headers, signal, retries: connected ? 0 : undefined });
      const type = response.headers.get("content-type") ?? "nothing";
      if (!type.startsWith("text/event-stream")) throw new InvalidResponse(`expected a stream of events, not ${type}`);
      connected = true;
      for await (const event of parse(/** @type {ReadableStream<Uint8Array>} */ (data), idleMs, signal)) {
        failures = 0;
        lastEventId = event.id ?? lastEventId;
        if (event.data !== "") {
          const { type, id } = event;
          yield /** @type {types.MemoryEvent} */ ({ type, id: id ?? null, data: JSON.parse(event.data) });
        }
      }
      if (failures >= reconnects) throw new ConnectionError("the server ends every event stream at once");
    } catch (error) {
      if (!connected || failures >= reconnects || !isPassing(error)) throw error;
    }
    await sleep(backoffMs(failures), signal);
  }
}

/** @param {unknown} error */
function isPassing(error) {
  if (error instanceof ApiError) return error instanceof TooManyRequests || error instanceof Unavailable;
  return error instanceof ConnectionError || error instanceof RequestTimeout;
}

/**
 * Yield the events of a stream in the format of server-sent events, until it ends. An event without data only has an id.
 *
 * @param {ReadableStream<Uint8Array>} stream
 * @param {number} idleMs
 * @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<{ type: string, id: string | undefined, data: string }>}
 */
export async function* parse(stream, idleMs = IDLE_MS, signal) {
  const reader = stream.pipeThrough(/** @type {ReadableWritablePair<string, Uint8Array>} */ (new TextDecoderStream())).getReader();
  let rest = "";
  let event = fresh();
  try {
    for (;;) {
      const { done, value } = await readWithin(reader, idleMs, signal);
      if (done) return;
      // A carriage return at the end may be the first half of a line end.
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line !== "") take(event, line);
        else {
          if (event.data.length || event.id !== undefined) {
            yield { type: event.type, id: event.id, data: event.data.join("\n") };
          }
          event = fresh();
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // the connection may be broken already
  }
}

/** @returns {{ type: string, id: string | undefined, data: string[] }} */
function fresh() {
  return { type: "message", id: undefined, data: [] };
}

/** @param {ReturnType<typeof fresh>} event @param {string} line */
function take(event, line) {
  const colon = line.indexOf(":");
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (field === "event") event.type = value;
  else if (field === "data") event.data.push(value);
  else if (field === "id") event.id = value;
}

/**
 * @param {ReadableStreamDefaultReader<string>} reader
 * @param {number} idleMs
 * @param {AbortSignal} [signal]
 * @returns {Promise<ReadableStreamReadResult<string>>}
 */
async function readWithin(reader, idleMs, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const idle = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new RequestTimeout(`the event stream was silent for ${idleMs} ms`)), idleMs);
  });
  try {
    return await /** @type {Promise<ReadableStreamReadResult<string>>} */ (Promise.race([reader.read(), idle]));
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error instanceof RequestTimeout) throw error;
    throw new ConnectionError("the event stream broke", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
