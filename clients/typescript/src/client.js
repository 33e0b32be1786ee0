import { follow } from "./events.js";
import { Http } from "./http.js";

/** @import * as types from "../types/index.d.ts" */

/** A client for one Aforesaid server. */
export class Aforesaid {
  #http;

  /** @param {types.Options} options */
  constructor(options) {
    this.#http = new Http(options);
  }

  /**
   * Return the memory of one user. No request is made.
   *
   * @param {string} [user]
   * @param {types.Place} [place]
   */
  user(user, place = {}) {
    return new UserMemory(this, user, place);
  }

  /**
   * @template {keyof types.Routes} R
   * @param {R} route
   * @param {types.RequestOptions<R>} [options]
   * @returns {Promise<types.Routes[R]["result"]>}
   */
  async request(route, options) {
    return (await this.exchange(route, options)).data;
  }

  /**
   * @template {keyof types.Routes} R
   * @param {R} route
   * @param {types.RequestOptions<R>} [options]
   * @returns {Promise<{ data: types.Routes[R]["result"], response: Response }>}
   */
  async exchange(route, options) {
    const { data, response } = await this.#http.send(route, options ?? {});
    return { data: /** @type {types.Routes[R]["result"]} */ (data), response };
  }

  /**
   * @template {types.PagedRoute} R
   * @param {R} route
   * @param {types.RequestOptions<R>} [options]
   * @returns {AsyncGenerator<types.Routes[R]["result"], void>}
   */
  async *pages(route, options) {
    /** @type {types.RequestOptions<any>} */
    let asked = options ?? {};
    for (;;) {
      const page = await this.request(route, asked);
      yield page;
      if (page.next === null) return;
      asked = { ...asked, query: { ...asked.query, cursor: page.next } };
    }
  }

  /** @param {Record<string, unknown>} query @param {types.EventOptions} options */
  events(query, options) {
    return follow(this.#http, query, options);
  }
}

/** The memory of one user, or of one of their conversations. */
export class UserMemory {
  #client;
  #query;
  #body;
  #session;

  /** @param {Aforesaid} client @param {string | undefined} user @param {types.Place} place */
  constructor(client, user, place) {
    const { space, thread, chat, session } = place;
    this.#client = client;
    this.#query = { user, space, thread, chat, session };
    this.#body = { user, thread, chat };
    this.#session = session;
  }

  /** @param {string} chat */
  chat(chat) {
    const { user, space, session } = this.#query;
    return new UserMemory(this.#client, user, { space, chat, session });
  }

  /**
   * @param {types.Role} role
   * @param {string} text
   * @param {types.AddOptions} [options]
   */
  async add(role, text, options = {}) {
    const { signal, timeoutMs, ...fields } = options;
    const body = /** @type {types.NewMessage} */ ({ ...this.#body, session: this.#session, ...fields, role, text });
    return this.#client.request("POST /api/messages", { ...this.#once(), body, signal, timeoutMs });
  }

  /** @param {types.MessageToAdd[]} messages @param {types.CallOptions} [options] */
  async addMany(messages, options = {}) {
    const body = /** @type {types.NewMessages} */ ({ ...this.#body, session: this.#session, messages });
    return this.#client.request("POST /api/messages/batch", { ...this.#once(), body, ...options });
  }

  /** @param {string} id @param {types.EditOptions} options */
  async edit(id, options) {
    const { signal, timeoutMs, ...fields } = options;
    const body = { ...this.#body, ...fields, id };
    return this.#client.request("PATCH /api/messages", { ...this.#space(), body, signal, timeoutMs });
  }

  /** @param {string} id @param {types.CallOptions} [options] */
  async takeBack(id, options = {}) {
    const body = { ...this.#body, id };
    return this.#client.request("POST /api/messages/take-back", { ...this.#space(), body, ...options });
  }

  /** @param {string[]} ids @param {types.CallOptions} [options] */
  async erase(ids, options = {}) {
    const body = { ...this.#body, ids };
    return this.#client.request("POST /api/messages/erase", { ...this.#space(), body, ...options });
  }

  /** @param {types.CallOptions & { erase?: boolean }} [options] */
  async clear(options = {}) {
    const { erase, ...call } = options;
    const body = { ...this.#body, erase };
    return (await this.#client.request("POST /api/threads/clear", { ...this.#space(), body, ...call })).count;
  }

  /** @param {types.HistoryOptions} [options] */
  async history(options = {}) {
    const { signal, timeoutMs, ...query } = options;
    return this.#client.request("GET /api/messages", { query: { ...this.#query, ...asQuery(query) }, signal, timeoutMs });
  }

  /** @param {types.CountOptions} [options] */
  async count(options = {}) {
    const { signal, timeoutMs, ...chosen } = options;
    const query = { ...this.#query, ...asQuery(chosen) };
    return (await this.#client.request("GET /api/messages/count", { query, signal, timeoutMs })).count;
  }

  /** @param {types.ThreadsOptions} [options] */
  async threads(options = {}) {
    const { signal, timeoutMs, ...chosen } = options;
    const { user, space } = this.#query;
    return (await this.#client.request("GET /api/threads", { query: { user, space, ...chosen }, signal, timeoutMs })).threads;
  }

  /** @param {string} q @param {types.SearchOptions} [options] */
  async search(q, options = {}) {
    const { signal, timeoutMs, ...query } = options;
    const found = { ...this.#query, ...asQuery(query), q };
    return (await this.#client.request("GET /api/search", { query: found, signal, timeoutMs })).hits;
  }

  /** @param {string} text @param {types.ContextOptions} [options] */
  async context(text, options = {}) {
    const { signal, timeoutMs, ...fields } = options;
    const body = /** @type {types.ContextWanted} */ ({ ...this.#body, ...fields, text });
    return this.#client.request("POST /api/context", { ...this.#space(), body, signal, timeoutMs, repeatable: true });
  }

  /** @param {string} fact @param {types.FactOptions} [options] */
  async remember(fact, options = {}) {
    const { signal, timeoutMs, ...fields } = options;
    const body = { ...this.#body, ...fields, fact };
    return this.#client.request("POST /api/remember", { ...this.#once(), body, signal, timeoutMs });
  }

  /** @param {string} fact @param {types.ForgetOptions} [options] */
  async forget(fact, options = {}) {
    const { signal, timeoutMs, ...fields } = options;
    const body = { ...this.#body, ...fields, fact };
    return this.#client.request("POST /api/forget", { ...this.#once(), body, signal, timeoutMs });
  }

  /** @param {types.CallOptions & { name?: string }} [options] */
  async portrait(options = {}) {
    const { signal, timeoutMs, name } = options;
    const query = { ...this.#query, name };
    return (await this.#client.request("GET /api/portrait", { query, signal, timeoutMs })).portrait;
  }

  /** @param {types.MemoriesOptions} [options] */
  async memories(options = {}) {
    const { signal, timeoutMs, ...chosen } = options;
    const { user, space } = this.#query;
    return this.#client.request("GET /api/memories", { query: { user, space, ...chosen }, signal, timeoutMs });
  }

  /** @param {types.SummariesOptions} [options] */
  async summaries(options = {}) {
    const { signal, timeoutMs, ...query } = options;
    const found = { ...this.#query, ...query };
    return (await this.#client.request("GET /api/summaries", { query: found, signal, timeoutMs })).summaries;
  }

  /** @param {types.EventOptions} [options] */
  events(options = {}) {
    return this.#client.events(this.#query, options);
  }

  #space() {
    return { query: { space: this.#query.space } };
  }

  /** A request that the server processes once, however often it arrives. */
  #once() {
    return { ...this.#space(), headers: { "Idempotency-Key": crypto.randomUUID() } };
  }
}

/**
 * Return the parameters of a query as the API takes them: metadata is a JSON text.
 *
 * @template {{ metadata?: Record<string, unknown> }} Q
 * @param {Q} query
 * @returns {types.AsSent<Q>}
 */
function asQuery({ metadata, ...rest }) {
  return /** @type {any} */ (metadata === undefined ? rest : { ...rest, metadata: JSON.stringify(metadata) });
}
