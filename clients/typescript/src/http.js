import {
  AforesaidError,
  ApiError,
  Conflict,
  ConnectionError,
  errorOf,
  InvalidResponse,
  RequestTimeout,
  TooManyRequests,
  Unavailable,
} from "./errors.js";

/** @import * as types from "../types/index.d.ts" */
/**
 * @typedef {object} Sent
 * @property {Record<string, unknown>} [path]
 * @property {Record<string, unknown>} [query]
 * @property {Record<string, string | undefined>} [headers]
 * @property {unknown} [body]
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]
 * @property {number} [retries]
 * @property {boolean} [repeatable] the request changes nothing, whatever its method is
 */

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 2;
const FIRST_DELAY_MS = 250;
/** A server that asks to wait for longer than this gets no further try; the caller learns how long to wait. */
const LONGEST_DELAY_MS = 30_000;
const IDEMPOTENCY_KEY = "Idempotency-Key";

/** Sends requests to one server: adds the key, limits the time, repeats what is safe to repeat. */
export class Http {
  #base;
  /** @type {Record<string, string>} */
  #headers;
  #fetch;
  #timeoutMs;
  #retries;

  /** @param {types.Options} options */
  constructor(options) {
    const base = new URL(options.baseUrl);
    if (!/^https?:$/.test(base.protocol)) throw new TypeError(`baseUrl must begin with http:// or https://: ${base}`);
    this.#base = base.href.replace(/\/+$/, "");
    this.#headers = options.key === undefined ? {} : { Authorization: `Bearer ${options.key}` };
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#retries = options.retries ?? DEFAULT_RETRIES;
  }

  /**
   * Send a request, repeat it where that is safe, and return the response with its data.
   *
   * @param {string} route such as "GET /api/messages"
   * @param {Sent} sent
   * @returns {Promise<{ data: unknown, response: Response }>}
   */
  async send(route, sent) {
    const retries = sent.retries ?? this.#retries;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#attempt(route, sent);
      } catch (error) {
        const wait = attempt < retries ? delayMs(error, attempt, isRepeatable(route, sent)) : null;
        if (wait === null) throw error;
        await sleep(wait, sent.signal);
      }
    }
  }

  /** @param {string} route @param {Sent} sent */
  async #attempt(route, sent) {
    const [method, template] = route.split(" ");
    const url = `${this.#base}${pathOf(template, sent.path)}${queryOf(sent.query)}`;
    const timer = new AbortController();
    const timeoutMs = sent.timeoutMs ?? this.#timeoutMs;
    const timeout = setTimeout(() => timer.abort(), timeoutMs);
    const signal = sent.signal ? AbortSignal.any([sent.signal, timer.signal]) : timer.signal;
    try {
      const response = await this.#fetch(url, {
        ...content(sent.body, { ...this.#headers, ...defined(sent.headers) }),
        method,
        signal,
        redirect: "error", // the key is for this server alone
      });
      if (!response.ok) throw await errorOf(response);
      return { data: await dataOf(response), response };
    } catch (error) {
      if (error instanceof AforesaidError) throw error;
      if (sent.signal?.aborted) throw sent.signal.reason;
      if (timer.signal.aborted) {
        throw new RequestTimeout(`${route}: no answer within ${timeoutMs} ms`, { cause: error });
      }
      if (!(error instanceof TypeError)) throw error; // not from fetch
      throw new ConnectionError(`${route}: ${causeOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timeout);
    }
  }
}

/**
 * Wait, or throw the reason of the signal as soon as it is aborted.
 *
 * @param {number} ms
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
export function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Return the delay before a further attempt, which grows and differs between clients. @param {number} attempt */
export function backoffMs(attempt) {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt) * (0.5 + Math.random() / 2);
}

/**
 * Return how long to wait before a further attempt; null if there must be none.
 *
 * @param {unknown} error
 * @param {number} attempt
 * @param {boolean} repeatable
 */
function delayMs(error, attempt, repeatable) {
  if (!canPass(error, attempt, repeatable)) return null;
  const asked = error instanceof ApiError ? error.retryAfterSeconds : null;
  if (asked === null) return backoffMs(attempt);
  return asked * 1000 <= LONGEST_DELAY_MS ? asked * 1000 : null;
}

/** @param {unknown} error @param {number} attempt @param {boolean} repeatable */
function canPass(error, attempt, repeatable) {
  // The limit of requests is checked first, so nothing has been done yet. A limit of spending does not pass soon.
  if (error instanceof TooManyRequests) return !error.type.endsWith("spending-limit");
  if (!repeatable) return false;
  if (error instanceof Unavailable) return !error.type.endsWith("no-model");
  // An earlier attempt with the same Idempotency-Key is still being processed.
  if (error instanceof Conflict) return attempt > 0;
  return error instanceof ConnectionError || error instanceof RequestTimeout;
}

/** @param {string} route @param {Sent} sent */
function isRepeatable(route, sent) {
  return route.startsWith("GET ") || sent.repeatable === true || sent.headers?.[IDEMPOTENCY_KEY] !== undefined;
}

/** @param {string} template @param {Record<string, unknown>} [values] */
function pathOf(template, values = {}) {
  return template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = String(values[name] ?? "");
    // As a part of a path these lead somewhere else, in every spelling.
    if (["", ".", ".."].includes(value)) throw new TypeError(`${name} cannot be ${JSON.stringify(value)} here`);
    return encodeURIComponent(value);
  });
}

/** @param {Record<string, unknown>} [values] */
function queryOf(values = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) query.append(name, each instanceof Date ? each.toISOString() : `${each}`);
    }
  }
  return query.size ? `?${query}` : "";
}

/** @param {Record<string, string | undefined>} [headers] @returns {Record<string, string>} */
function defined(headers = {}) {
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** @param {any} body @param {Record<string, string>} headers @returns {RequestInit} */
function content(body, headers) {
  if (body === undefined) return { headers };
  if (!isBytes(body)) return { headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const streaming = body instanceof ReadableStream ? { duplex: "half" } : {};
  return { headers: { ...headers, "Content-Type": "application/octet-stream" }, body, ...streaming };
}

/** @param {unknown} body */
function isBytes(body) {
  const kinds = [Blob, ArrayBuffer, ReadableStream];
  return typeof body === "string" || ArrayBuffer.isView(body) || kinds.some((kind) => body instanceof kind);
}

/** Return the value of a JSON answer, the text of a plain one, or the stream of any other. @param {Response} response */
async function dataOf(response) {
  const type = (response.headers.get("content-type") ?? "").split(";")[0];
  if (type === "text/plain") return response.text();
  if (type !== "application/json") return response.body;
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidResponse(`${response.url}: the answer is not JSON: ${text.slice(0, 100)}`, { cause: error });
  }
}

/** @param {TypeError} error */
function causeOf(error) {
  const cause = error.cause;
  return cause instanceof Error ? cause.message || String(/** @type {any} */ (cause).code) : error.message;
}
