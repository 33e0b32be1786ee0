import type { Batch, ContextWanted, FactRequest, ForgetResult, Hit, MemoryPage, Message, MessageBody, MessagePage, NewMessage } from "./api.d.ts";
import type { Context, EditedMessage, Erased, Problem, Receipt, RememberRequest, RememberResult, Routes, Summary, Thread, Wrong } from "./api.d.ts";

export type * from "./api.d.ts";

export type Role = NewMessage["role"];

export interface Options {
  /** The address of the server, such as `http://127.0.0.1:5002`. */
  baseUrl: string;
  /** A key made by `aforesaid key add`. Without one, only a server that was started with `--no-auth` answers. */
  key?: string;
  /** Milliseconds until a request fails with RequestTimeout. Default: 30,000. Each attempt has its own. */
  timeoutMs?: number;
  /** Further attempts of a request that is safe to repeat. Default: 2. */
  retries?: number;
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  /** Aborts the request; the promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
  /** Milliseconds for this request, instead of those of the client. */
  timeoutMs?: number;
}

export interface Place {
  /** Only for keys for all spaces; other keys have their own. */
  space?: string;
  /** A channel that users share. Default: the user's direct chat. */
  thread?: string;
  /** One of the user's private chats, instead of a thread. Default: the user's direct chat. */
  chat?: string;
  /** A session by name. Default: by time. */
  session?: string;
}

export type RequestOptions<R extends keyof Routes> = Routes[R]["options"] &
  CallOptions & {
    /** Further attempts, instead of those of the client. */
    retries?: number;
    /** Repeat the request after lost connections, although its method is not GET and it has no Idempotency-Key. */
    repeatable?: boolean;
  };

/** Routes that return a page with a cursor to the next one. */
export type PagedRoute = {
  [R in keyof Routes]: Routes[R]["result"] extends { next: string | null } ? R : never;
}[keyof Routes];

type OptionalIfEmpty<R extends keyof Routes> =
  {} extends Routes[R]["options"] ? [options?: RequestOptions<R>] : [options: RequestOptions<R>];
type Query<R extends keyof Routes> = Routes[R]["options"] extends { query?: infer Q } ? NonNullable<Q> : never;
/** Fields as a caller gives them: times also as `Date`. */
type Given<T> = { [K in keyof T]: K extends "at" | "since" | "until" ? T[K] | Date : T[K] };
/** The options of a method: the parameters of a route, without those that the method or the user's place gives. */
type Rest<T, Known extends PropertyKey = never> = CallOptions & Given<Omit<T, Known | "user" | "space" | "thread" | "chat" | "session">>;
type Filtered<T> = Omit<T, "metadata"> & {
  /** Only messages whose metadata has these keys with equal values. */
  metadata?: Record<string, unknown>;
};
/** A query as it is sent, with metadata as a JSON text and times as texts. */
export type AsSent<Q> = { [K in keyof Q]: K extends "metadata" ? string : Exclude<Q[K], Date> };

export type MessageToAdd = Given<MessageBody>;
export type AddOptions = Rest<NewMessage, "role" | "text">;
export type EditOptions = Rest<EditedMessage, "id">;
export type HistoryOptions = Filtered<Rest<Query<"GET /api/messages">>>;
export type CountOptions = Filtered<Rest<Query<"GET /api/messages/count">>>;
export type ThreadsOptions = Rest<Query<"GET /api/threads">>;
export type SearchOptions = Filtered<Rest<Query<"GET /api/search">, "q">>;
export type ContextOptions = Rest<ContextWanted, "text">;
export type FactOptions = Rest<RememberRequest, "fact">;
export type ForgetOptions = Rest<FactRequest, "fact">;
export type MemoriesOptions = Rest<Query<"GET /api/memories">>;
export type SummariesOptions = Rest<Query<"GET /api/summaries">>;

export interface EventOptions {
  /** Ends the iteration with the reason of the signal. */
  signal?: AbortSignal;
  /** Continue after this event, also of an earlier process. Default: from now on. */
  lastEventId?: string;
  /** Attempts to connect again, one after the other, before the iteration fails. Default: 10. */
  reconnects?: number;
  /** Milliseconds of silence after which the connection counts as lost. Default: 45,000; the server sends every 15,000. */
  idleMs?: number;
}

/** A change of a memory, a fact or a summary. */
export interface Change {
  action: string;
  subject: string;
  at: string;
  /** Who did it; only for keys of administrators. */
  actor?: string | null;
}

export type MemoryEvent =
  | { type: "message"; id: string | null; data: Message }
  | { type: "change"; id: string | null; data: Change };

/** A client for one Aforesaid server. */
export declare class Aforesaid {
  constructor(options: Options);
  /** Return the memory of one user. No request is made. A key for one user needs no name. */
  user(user?: string, place?: Place): UserMemory;
  /** Call any route of the server and return its result. */
  request<R extends keyof Routes>(route: R, ...options: OptionalIfEmpty<R>): Promise<Routes[R]["result"]>;
  /** The same, with the response: its status, and headers such as `ETag`. */
  exchange<R extends keyof Routes>(
    route: R,
    ...options: OptionalIfEmpty<R>
  ): Promise<{ data: Routes[R]["result"]; response: Response }>;
  /** Yield all pages of a list. */
  pages<R extends PagedRoute>(route: R, ...options: OptionalIfEmpty<R>): AsyncGenerator<Routes[R]["result"], void>;
}

/** The memory of one user, or of one of their conversations. Made by `client.user(…)`. */
export declare class UserMemory {
  private constructor();
  /**
   * Return the memory of the same user in one of several private chats. Its contexts go on with its own messages, and
   * recall what was said in the user's other chats. No request is made.
   */
  chat(chat: string): UserMemory;
  /** Store a message. It is on disk when the promise is fulfilled, and stored once, also if the request is repeated. */
  add(role: Role, text: string, options?: AddOptions): Promise<Receipt>;
  /** Store many messages: all of them or none, on disk when the promise is fulfilled. */
  addMany(messages: MessageToAdd[], options?: CallOptions): Promise<Batch>;
  /** Store a new version of a message. What is not given stays as it was; only the new version is shown and found. */
  edit(id: string, options: EditOptions): Promise<Receipt>;
  /** Remove a message from history, search, contexts, memories and summaries. A tombstone stays in the log. */
  takeBack(id: string, options?: CallOptions): Promise<Receipt>;
  /** Erase messages, so that no byte of them is left. This cannot be undone. */
  erase(ids: string[], options?: CallOptions): Promise<Erased>;
  /** Take back all messages of the user in this thread or chat, or erase them; return how many these were. */
  clear(options?: CallOptions & { erase?: boolean }): Promise<number>;
  /** Return the newest messages, oldest first; pass `next` as `cursor` for earlier ones. */
  history(options?: HistoryOptions): Promise<MessagePage>;
  /** Return the number of messages, of each only the newest version. */
  count(options?: CountOptions): Promise<number>;
  /** Return the user's conversations, the one with the newest message first. */
  threads(options?: ThreadsOptions): Promise<Thread[]>;
  /** Search by words and meaning; best hits first. */
  search(query: string, options?: SearchOptions): Promise<Hit[]>;
  /** Return what to send to a model that is to answer `text`, within a budget of tokens. */
  context(text: string, options?: ContextOptions): Promise<Context>;
  /** Remember a fact about the user. */
  remember(fact: string, options?: FactOptions): Promise<RememberResult>;
  /** Forget a fact. */
  forget(fact: string, options?: ForgetOptions): Promise<ForgetResult>;
  /** Return what is known about the user as one text; null if nothing is. */
  portrait(options?: CallOptions & { name?: string }): Promise<string | null>;
  /** Return memories, newest first; pass `next` as `cursor` for the next page. */
  memories(options?: MemoriesOptions): Promise<MemoryPage>;
  /** Return summaries. */
  summaries(options?: SummariesOptions): Promise<Summary[]>;
  /** Follow what changes: every new message, and every change of memories, facts and summaries. */
  events(options?: EventOptions): AsyncGenerator<MemoryEvent, never>;
}

/** The base of all errors of this package. */
export declare class AforesaidError extends Error {}
/** The server cannot be reached, or the connection broke. */
export declare class ConnectionError extends AforesaidError {}
/** There was no answer in time. */
export declare class RequestTimeout extends AforesaidError {}
/** An answer that is not from an Aforesaid server. */
export declare class InvalidResponse extends AforesaidError {}
/** The server refused the request. */
export declare class ApiError extends AforesaidError implements Problem {
  readonly status: number;
  /** Such as `urn:aforesaid:problem:not-found`. */
  readonly type: string;
  readonly title: string;
  readonly detail: string;
  /** Each field that is wrong, and what is wrong with it. */
  readonly errors: Wrong[];
  /** Seconds after which to try again, if the server says so. */
  readonly retryAfterSeconds: number | null;
}
export declare class InvalidInput extends ApiError {}
export declare class Unauthorized extends ApiError {}
export declare class Forbidden extends ApiError {}
export declare class NotFound extends ApiError {}
export declare class Conflict extends ApiError {}
export declare class PreconditionFailed extends ApiError {}
export declare class TooLarge extends ApiError {}
export declare class TooManyRequests extends ApiError {}
/** A model or the store is unavailable. */
export declare class Unavailable extends ApiError {}
export declare class StorageFull extends ApiError {}
