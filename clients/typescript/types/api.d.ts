// Written by `make rest` from the server's OpenAPI description.
// A test fails when it is not up to date.

/** An active alert. */
export interface Alert {
  kind: "failure" | "capacity" | "slowness" | "errors" | "backlog";
  about: string;
  text: string;
  since: string;
}

/** It runs. */
export interface Alive {
  status: "ok";
}

/** The newest entries, oldest first. */
export interface Audit {
  entries: Entry[];
}

/** How an importance is called, and its colour. */
export interface Band {
  name: "low" | "medium" | "high" | "critical";
  colour: "grey" | "blue" | "orange" | "red";
}

/** The acknowledgement of a batch of messages. */
export interface Batch {
  /** The ids of the messages, in their order. */
  ids: string[];
  /** Whether they survive a power cut. */
  durable: boolean;
  /** Number of messages that are new. */
  stored: number;
  /** Number of messages that had been stored before. */
  duplicates: number;
  /** Notices for the user. */
  notices: string[];
}

/** A message for a chat API. */
export interface ChatMessage {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
}

/** A thread to clear. */
export interface ClearedThread {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  /** Erase the messages, so that no byte of them is left. */
  erase?: boolean;
}

/** The health of a component. */
export interface Component {
  name: string;
  status: "active" | "failing" | "initializing";
  last_update: string | null;
  issues: string[];
  facts: Record<string, string>;
  message_count: number | null;
  /** How much it still has to do. */
  waiting: number | null;
  /** When it was looked at. */
  health_check: string | null;
}

/** An image in the content of a message. */
export interface ContentImage {
  type: "image_url";
  image_url: ImageAddress;
}

/** A part of a message. */
export interface ContentPart {
  type: "text" | "image" | "audio" | "file";
  /** The text; or the caption or transcript. */
  text: string | null;
  url: string | null;
  media_type: string | null;
  name: string | null;
  /** The SHA-256 of its bytes. */
  hash: string | null;
  size: number | null;
}

/** A text in the content of a message. */
export interface ContentText {
  type: "text";
  text: string;
}

/** What goes to a model now. */
export interface Context {
  /** For any OpenAI-style chat API. */
  messages: ChatMessage[];
  text: string;
  tokens: number;
  budget: number;
  /** How tokens were counted. */
  counter: string;
  sections: Section[];
  /** What is in it, what is not, and why. */
  explanation: string;
  /** The id of the receipt, which is stored if the context is sent. */
  receipt: string | null;
}

/** What was sent to a model to get one reply. */
export interface ContextReceipt {
  id: string;
  user: string;
  thread: string;
  at: string;
  /** Who asked: the name of a key, or `aforesaid`. */
  caller: string;
  profile: string;
  model: string | null;
  budget: number;
  /** Tokens of all sections together. */
  tokens: number;
  /** As the provider counted them. */
  input_tokens: number | null;
  /** As the provider counted them. */
  output_tokens: number | null;
  /** Durations: `context`, `first_byte`, `reply`. */
  milliseconds: Record<string, number>;
  /** Why the context may miss something; null if all sources were searched. */
  limited: string | null;
  /** The number of the message that it led to. */
  reply: number | null;
  /** What the model was told, in words. */
  knew: string;
  sections: SentSection[];
}

/** A request for a context. */
export interface ContextWanted {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  /** The message to answer. */
  text: string;
  /** Maximum tokens. Default: the profile's. */
  budget?: number | null;
  /** Your system prompt. */
  system?: string | null;
  /** The persona of the bot. */
  persona?: string | null;
  /** The time of the question. Default: now. */
  at?: string | null;
  /** The model whose tokens to count. */
  model?: string | null;
  /** Whether you send it to a model: then a receipt says which messages it showed. */
  sent?: boolean;
  /** Sections to leave out, such as `recent` if your app sends the conversation itself. */
  without?: ("system" | "rules" | "persona" | "instructions" | "portrait" | "habits" | "memories" | "summaries" | "snippets" | "recent" | "date")[];
}

/** A new version of a message. What is not given stays as it was. */
export interface EditedMessage {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  /** The id of the message. */
  id: string;
  text?: string | null;
  /** The speaker's display name. */
  name?: string | null;
  parts?: PartBody[] | null;
  tool_calls?: ToolCallBody[] | null;
  /** Any JSON object. */
  metadata?: Record<string, unknown> | null;
  /** The id of the message that it replies to. */
  reply_to?: string | null;
  /** The platform's kind of message. */
  kind?: string | null;
  /** Its language. */
  language?: string | null;
}

/** An entry of the audit log. It names what was viewed or changed, without its content. */
export interface Entry {
  id: number;
  at: string;
  space: string;
  /** Null for what concerns the whole space: settings, exports, keys, sign-ins. */
  user: string | null;
  /** The display name that the user used last. */
  name: string | null;
  actor: string;
  action: string;
  subject: string;
}

/** How much was erased. */
export interface Erased {
  /** Number of messages, each version counted. */
  messages: number;
  summaries: number;
  memories: number;
  /** Number of these summaries and memories that were other users'. */
  of_others: number;
}

/** A fact to remember or to forget. */
export interface FactRequest {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  fact: string;
  /** The user's name in sentences. */
  name?: string | null;
}

/** A version of the text of facts. */
export interface Facts {
  version: number;
  text: string;
  /** The words that led to it. */
  cause: string;
  updated_at: string;
}

/** The outcome of forgetting. */
export interface ForgetResult {
  /** Whether there was something to forget. */
  found: boolean;
  /** The remaining text of facts. */
  facts: string;
  memories: Memory[];
}

/** When something happens. */
export interface Happening {
  start: string;
  end: string;
  /** Whether a time of day is known; otherwise it is about whole days. */
  timed: boolean;
}

/** The health of all components. */
export interface Health {
  status: "active" | "failing" | "initializing";
  components: Component[];
  alerts: Alert[];
  storage: Storage | null;
  operations: Operation[];
}

/** Something that was found. */
export interface Hit {
  kind: "message" | "summary" | "memory" | "session";
  id: string;
  text: string;
  /** 0 to 1; 0.5 is as common among right hits as among wrong ones. */
  score: number;
  at: string;
  sources: string[];
  terms: string[];
  /** How near its meaning is, 0 to 1, calibrated for the encoder. */
  similarity: number | null;
  /** What each feature added to the weighted sum behind the score. */
  parts: Part[];
  explanation: string;
  message: Message | null;
  around: Message[];
}

/** Where an image is. */
export interface ImageAddress {
  url: string;
  /** Ignored. */
  detail?: string | null;
}

/** A user whose memory an import added to. */
export interface ImportedUser {
  id: string;
  /** The display name in the file. */
  name: string | null;
  messages: number;
  memories: number;
}

/** A key without its secret. */
export interface Key {
  id: string;
  name: string;
  role: "reader" | "app" | "admin";
  space: string | null;
  user: string | null;
  created_at: string;
  expires_at: string | null;
  /** When a request last came with it; null if none did. */
  last_used: string | null;
}

/** The people whom the memories of a user mention, those with most memories first. */
export interface KnownPeople {
  people: KnownPerson[];
}

/** A person around a user. */
export interface KnownPerson {
  /** The name; of somebody of whom only the relation is known, that. */
  name: string;
  /** The id, if the person is a user of the same space. */
  id: string | null;
  /** To the user. */
  relation: string | null;
  first_mentioned: string;
  last_mentioned: string;
  /** What is known: active memories, those about the person first. */
  memories: Memory[];
}

/** The result of an import. */
export interface Loaded {
  format: string;
  /** How many things of each kind there are in it. */
  found: Record<string, number>;
  /** How many of them were not here before. */
  new: Record<string, number>;
  skipped: Record<string, number>;
  problems: number;
  examples: ProblemShape[];
  dry_run: boolean;
  /** Whose memory it became, most messages first: at most 100. */
  users: ImportedUser[];
  user_count: number;
  /** Hashes of attachments that messages of an export name, but whose bytes are not stored. */
  missing_attachments: string[];
}

/** A new key with its token. */
export interface MadeKey {
  id: string;
  name: string;
  role: "reader" | "app" | "admin";
  space: string | null;
  user: string | null;
  created_at: string;
  expires_at: string | null;
  /** When a request last came with it; null if none did. */
  last_used: string | null;
  /** The key itself. It is shown this once. */
  token: string;
}

/** One remembered thing about a user. */
export interface Memory {
  id: number;
  /** The id of the user whom it is about. */
  user_name: string;
  /** The display name that the user used last. */
  name: string | null;
  category: "schedule" | "fact" | "task" | "preference" | "reminder" | "other";
  /** What it is, finer than the category. Events are dated and do not expire. */
  kind: "fact" | "preference" | "event" | "schedule" | "task" | "reminder" | "relationship" | "instruction";
  /** Whom it is about, if not the user: the id of another user, or a name. */
  about: string | null;
  content: string;
  importance: number;
  band: Band;
  tags: string[];
  active: boolean;
  extracted_at: string;
  state: "active" | "superseded" | "deactivated" | "quarantined" | "expired";
  /** Why it is not active. */
  reason: string;
  priority: number;
  /** Who said it. */
  speaker: string;
  trust: "stated" | "said" | "reported";
  event: Happening | null;
  remind_at: string | null;
  expires_at: string | null;
  /** When it was first said. */
  said_at: string;
  /** Since when it is true. */
  valid_from: string;
  /** Until when it was true. */
  valid_to: string | null;
  /** The language of its text. */
  language: string | null;
  /** How sure its extractor is that it is worth remembering, 0 to 1. */
  confidence: number | null;
  /** Which matter of a person it is, such as a home or an allergy. */
  matter: "name" | "age" | "birthday" | "home" | "from" | "job" | "employer" | "study" | "speaks" | "partner" | "child" | "parent" | "sibling" | "relative" | "friend" | "colleague" | "boss" | "neighbour" | "pet" | "allergy" | "diet" | "condition" | "medicine" | "like" | "dislike" | "hobby" | "phone" | "email" | "address" | "own" | "event" | "goal" | null;
  /** The value of the matter, in the person's own words. */
  value: string | null;
  superseded_by: number | null;
  /** The messages that it was learned from, by sequence number. */
  sources: number[];
  extractor: string;
  /** How often it was said. */
  times: number;
  /** Grows with every change; the ETag of the memory. */
  revision: number;
}

/** Changes of a memory, at least one. Omitted fields stay unchanged. */
export interface MemoryEdit {
  category?: "schedule" | "fact" | "task" | "preference" | "reminder" | "other" | "event" | "relationship" | "instruction" | null;
  /** What it says. `text` is another name of this field. */
  content?: string | null;
  importance?: number | null;
  tags?: string[] | null;
  priority?: number | null;
  /** When it happens or reminds: a moment, or words such as `tomorrow at 9`. Without a time zone it is in the user's (`time_zone`). A reminder cannot lie in the past. Without it, new content that names another time moves the memory as well. */
  when?: string | null;
  expires_at?: string | null;
  /** Whom it is about, if not the user: the id of another user, or a name. */
  about?: string | null;
  /** False deactivates it, true reactivates it. */
  active?: boolean;
}

/** Memories, and how to read on. */
export interface MemoryPage {
  memories: Memory[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
}

/** What a memory was before a change. */
export interface MemoryVersion {
  before: Memory;
  action: string;
  actor: string;
  at: string;
}

/** One message of the log. */
export interface Message {
  /** Grows in the order of storing. */
  seq: number;
  id: string;
  space: string;
  /** Whose memory it belongs to. */
  user: string;
  thread: string;
  session: string;
  role: "user" | "assistant" | "system" | "tool";
  author: string;
  name: string | null;
  text: string;
  /** When it was said. */
  at: string;
  stored_at: string;
  /** False once a summary covers it. */
  active: boolean;
  /** The sequence number of the version before this one. */
  replaces: number | null;
  /** Whether there is a newer version. */
  replaced: boolean;
  /** Whether it is what is left of a message that was taken back. */
  taken_back: boolean;
  /** Texts, images, sounds and files; empty for a plain text. */
  parts: ContentPart[];
  tool_calls: ToolCall[];
  /** The call that this is the result of. */
  tool_call_id: string | null;
  metadata: Record<string, unknown>;
  /** The id of the message that it replies to. */
  reply_to: string | null;
  /** The platform's kind of message. */
  kind: string | null;
  language: string | null;
}

/** A message to store. */
export interface MessageBody {
  /** Texts, images, sounds and files. */
  parts?: PartBody[];
  /** Tools that it asks for. */
  tool_calls?: ToolCallBody[];
  /** The call that this is the result of. */
  tool_call_id?: string | null;
  /** Any JSON object. */
  metadata?: Record<string, unknown> | null;
  /** The id of the message that it replies to. */
  reply_to?: string | null;
  /** The platform's kind of message. */
  kind?: string | null;
  /** Its language. */
  language?: string | null;
  role: "user" | "assistant" | "system" | "tool";
  /** May be empty if there are parts or tool calls, or for the result of one. */
  text?: string;
  /** The text, or its parts, as OpenAI-style programs have it. Instead of `text`. */
  content?: string | unknown[] | null;
  /** When it was said. Default: now. */
  at?: string | null;
  /** The platform's message id. An id that the thread already has is not stored again. */
  id?: string | null;
  /** The speaker, if it is not the user or the assistant. */
  author?: string | null;
  /** The speaker's display name. */
  name?: string | null;
  /** The id of the message in the thread that this is a new version of. */
  replaces?: string | null;
}

/** A number of messages. */
export interface MessageCount {
  count: number;
}

/** Messages, oldest first, and how to read further back. */
export interface MessagePage {
  messages: Message[];
  /** The cursor of the page before these; null when there is none. */
  next: string | null;
}

/** A message by its id. */
export interface NamedMessage {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  /** The id of the message. */
  id: string;
}

/** Messages by their ids. */
export interface NamedMessages {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  /** The ids of the messages. */
  ids: string[];
}

/** A key to create. */
export interface NewKey {
  /** Its name in the audit log. */
  name: string;
  role: "reader" | "app" | "admin";
  /** Limits the key to one space. Default: all spaces. */
  space?: string | null;
  /** Limits the key to one user; needs `space`. */
  user?: string | null;
  expires_at?: string | null;
}

/** A memory to store. */
export interface NewMemory {
  /** The user. Not needed with a key for one user. `user` is another name of this field. */
  user_name?: string | null;
  /** The category, or the kind of what no category names (an event, a relationship, an instruction). */
  category: "schedule" | "fact" | "task" | "preference" | "reminder" | "other" | "event" | "relationship" | "instruction";
  /** What it says. `text` is another name of this field. */
  content: string;
  importance?: number;
  tags?: string[];
  priority?: number;
  /** When it happens or reminds: a moment, or words such as `tomorrow at 9`. Without a time zone it is in the user's (`time_zone`). A reminder cannot lie in the past. Without it, what the content says counts. */
  when?: string | null;
  expires_at?: string | null;
  /** Whom it is about, if not the user: the id of another user, or a name. */
  about?: string | null;
}

/** A message to store. */
export interface NewMessage {
  /** Texts, images, sounds and files. */
  parts?: PartBody[];
  /** Tools that it asks for. */
  tool_calls?: ToolCallBody[];
  /** The call that this is the result of. */
  tool_call_id?: string | null;
  /** Any JSON object. */
  metadata?: Record<string, unknown> | null;
  /** The id of the message that it replies to. */
  reply_to?: string | null;
  /** The platform's kind of message. */
  kind?: string | null;
  /** Its language. */
  language?: string | null;
  role: "user" | "assistant" | "system" | "tool";
  /** May be empty if there are parts or tool calls, or for the result of one. */
  text?: string;
  /** The text, or its parts, as OpenAI-style programs have it. Instead of `text`. */
  content?: string | unknown[] | null;
  /** When it was said. Default: now. */
  at?: string | null;
  /** The platform's message id. An id that the thread already has is not stored again. */
  id?: string | null;
  /** The speaker, if it is not the user or the assistant. */
  author?: string | null;
  /** The speaker's display name. */
  name?: string | null;
  /** The id of the message in the thread that this is a new version of. */
  replaces?: string | null;
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  /** A session by name. Default: by time. */
  session?: string | null;
}

/** Messages to store together. */
export interface NewMessages {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  /** A session by name. Default: by time. */
  session?: string | null;
  /** The messages, in their order. */
  messages: MessageBody[];
}

/** Latency and errors of an operation in the last minutes. */
export interface Operation {
  name: string;
  model: string;
  calls: number;
  per_minute: number;
  failed: number;
  error_rate: number;
  mean_seconds: number;
  p95_seconds: number | null;
  cache_hits: number;
}

/** What one feature added to a score. */
export interface Part {
  name: string;
  value: number;
}

/** A part of a message: a text, or an image, a sound or a file, with its bytes or by where it is. */
export interface PartBody {
  type: "text" | "image" | "audio" | "file";
  /** The text; or the caption or transcript. */
  text?: string | null;
  /** Where it is. */
  url?: string | null;
  media_type?: string | null;
  /** The file's name. */
  name?: string | null;
  /** The SHA-256 of its bytes. Needs `data`, or the `url` where they are. */
  hash?: string | null;
  /** Number of bytes. */
  size?: number | null;
  /** Its bytes in base64. They are stored; not in a batch. */
  data?: string | null;
}

/** The portrait of a user. */
export interface Portrait {
  user: string;
  portrait: string | null;
}

/** Problem details (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** Each field that is wrong, and what is wrong with it. */
  errors: Wrong[];
}

/** An entry of a file that could not be imported. */
export interface ProblemShape {
  where: string;
  why: string;
}

/** The number of deleted rows. */
export interface Purged {
  messages: number;
  summaries: number;
  memories: number;
  /** How many of these were others', made with the user's words. */
  of_others: number;
}

/** Whether it can store and answer. */
export interface Ready {
  status: "ready" | "failing";
}

/** The acknowledgement of a message. */
export interface Receipt {
  message: Message;
  /** Whether it survives a power cut. */
  durable: boolean;
  /** Whether it had been stored before. */
  duplicate: boolean;
  /** Notices for the user. */
  notices: string[];
}

/** Receipts, newest first. */
export interface ReceiptPage {
  receipts: ContextReceipt[];
  /** The cursor of the next page; null at the end. */
  next: string | null;
}

/** A fact to remember. */
export interface RememberRequest {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
  fact: string;
  /** The user's name in sentences. */
  name?: string | null;
  /** Who states the fact, if it is not the user. */
  by?: string | null;
}

/** The outcome of remembering. */
export interface RememberResult {
  outcome: "stored" | "known" | "quarantined";
  /** The current text of facts. */
  facts: string;
  /** Why it was quarantined. */
  reason: string;
  memory: Memory | null;
}

/** Hits, best first. */
export interface SearchResults {
  hits: Hit[];
}

/** A part of a context, and what it took. */
export interface Section {
  name: string;
  tokens: number;
  budget: number;
  items: number;
  left_out: number;
}

/** One item of a context. */
export interface SentItem {
  kind: "message" | "memory" | "summary" | "text";
  /** The number of the message, memory or summary; null for other texts. */
  id: number | null;
  tokens: number;
  /** What it says now; null for other texts and in lists. */
  text: string | null;
  /** Whether it was erased or taken back since. */
  erased: boolean;
}

/** One section of a context. */
export interface SentSection {
  name: string;
  tokens: number;
  items: SentItem[];
}

/** A stretch of a thread without a long silence. */
export interface Session {
  id: string;
  space: string;
  thread: string;
  /** Who opened it. */
  user: string;
  /** The display name that they used last. */
  name: string | null;
  started_at: string;
  last_activity: string;
  messages: number;
  state: "active" | "idle" | "closed";
}

/** Sessions, oldest first. */
export interface SessionList {
  sessions: Session[];
}

/** Settings of a user, or of a space. */
export interface Settings {
  space: string;
  /** Null for the settings of the space. */
  user: string | null;
  settings: Record<string, string | number | boolean | null>;
}

/** Settings to change. Null resets one to its default. */
export interface SettingsEdit {
  settings: Record<string, string | number | boolean | null>;
}

/** The totals of a space. */
export interface SpaceStats {
  space: string;
  users: number;
  messages: number;
  archived: number;
  /** Over all spaces; only for keys that are for all of them. */
  totals: Totals | null;
}

/** The size of the store and its growth. */
export interface Storage {
  bytes: number;
  messages: number;
  free: number | null;
  since: string | null;
  bytes_per_day: number | null;
  messages_per_day: number | null;
}

/** Summaries, highest level first. */
export interface Summaries {
  summaries: Summary[];
}

/** A text that covers messages or other summaries. */
export interface Summary {
  id: number;
  space: string;
  user: string;
  thread: string;
  kind: string;
  level: number;
  text: string;
  chunks: number[];
  /** The summaries that it was made of. */
  sources: number[];
  first: number;
  last: number;
  /** How many messages lie below it. */
  messages: number;
  model: string | null;
  created_at: string;
  active: boolean;
  rolled_back: boolean;
  began_at: string;
  ended_at: string;
  day: string | null;
  version: number;
  replaces: number | null;
  edited_by: string | null;
}

/** The new text of a summary. */
export interface SummaryEdit {
  text: string;
}

/** The user whose messages to summarise. */
export interface SummaryWanted {
  /** The user. Not needed with a key for one user. */
  user?: string | null;
  /** A channel that users share. Default: the direct chat. */
  thread?: string | null;
  /** One of the user's private chats. Default: the direct chat. */
  chat?: string | null;
}

/** A conversation of a user. */
export interface Thread {
  id: string;
  /** The id of the private chat that this is; null for any other thread. */
  chat: string | null;
  /** Number of the user's messages in it. */
  messages: number;
  first_at: string;
  last_at: string;
  /** The beginning of the newest message. */
  last_text: string;
}

/** Threads, the one with the newest message first. */
export interface ThreadList {
  threads: Thread[];
}

/** What happened and what is to come, in the order in which it happened. */
export interface Timeline {
  events: TimelineEntry[];
}

/** Something that happened, or is to come. */
export interface TimelineEntry {
  at: Happening;
  memory: Memory;
}

/** A tool that the model asked for. */
export interface ToolCall {
  id: string;
  name: string;
  /** As the model wrote them. */
  arguments: string;
}

/** A tool that the model asked for. */
export interface ToolCallBody {
  id: string;
  name: string;
  /** As the model wrote them. */
  arguments: string;
}

/** Totals over the whole store. */
export interface Totals {
  spaces: number;
  users: number;
  threads: number;
  sessions: number;
  messages: number;
  archived: number;
  summaries: number;
  memories: number;
  bytes: number;
}

/** A user who owns something. */
export interface User {
  id: string;
  /** The display name that they used last. */
  name: string | null;
  space: string;
  messages: number;
  archived: number;
  created_at: string;
  last_activity: string | null;
}

/** Users, and how to read on. */
export interface UserPage {
  users: User[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
}

/** One error in a request. */
export interface Wrong {
  /** The field: where it was sent, and its name. */
  where: string;
  what: string;
}

/** Every route of the server. */
export interface Routes {
  /** Does it run? */
  "GET /healthz": {
    options: {};
    result: Alive;
  };
  /** Can it store and answer? */
  "GET /readyz": {
    options: {};
    result: Ready;
  };
  /** Everything that is counted */
  "GET /metrics": {
    options: {};
    result: string;
  };
  /** List memories */
  "GET /api/memories": {
    options: {
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        category?: "schedule" | "fact" | "task" | "preference" | "reminder" | "other";
        /** Only memories of this kind. Finer than the category. */
        kind?: "fact" | "preference" | "event" | "schedule" | "task" | "reminder" | "relationship" | "instruction";
        /** Whether to return active or inactive ones. Default: true. */
        active?: boolean;
        /** Only memories in this state. */
        state?: "active" | "superseded" | "deactivated" | "quarantined" | "expired";
        /** All states; `active` is ignored. */
        every?: boolean;
        /** Only memories that contain these words. */
        q?: string;
        /** `next` of the page before; without it, the first page. */
        cursor?: string;
        /** Maximum number of results. */
        limit?: number;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: MemoryPage;
  };
  /** Write a memory down */
  "POST /api/memories": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** A request repeated with the same key is not processed again. */
        "Idempotency-Key"?: string;
      };
      body: NewMemory;
    };
    result: Memory;
  };
  /** Read one memory */
  "GET /api/memories/{number}": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        "if-none-match"?: string;
      };
    };
    result: Memory;
  };
  /** Correct a memory */
  "PUT /api/memories/{number}": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** The ETag of the version you read. If the memory has changed since, the response is 412. */
        "If-Match"?: string;
      };
      body: MemoryEdit;
    };
    result: Memory;
  };
  /** Put a memory away */
  "DELETE /api/memories/{number}": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** The ETag of the version you read. If the memory has changed since, the response is 412. */
        "If-Match"?: string;
      };
    };
    result: Memory;
  };
  /** What a memory was before */
  "GET /api/memories/{number}/history": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: MemoryVersion[];
  };
  /** Undo the last change */
  "POST /api/memories/{number}/undo": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** The ETag of the version you read. If the memory has changed since, the response is 412. */
        "If-Match"?: string;
      };
    };
    result: Memory;
  };
  /** Approve a memory */
  "POST /api/memories/{number}/approve": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** The ETag of the version you read. If the memory has changed since, the response is 412. */
        "If-Match"?: string;
      };
    };
    result: Memory;
  };
  /** Reject a memory */
  "POST /api/memories/{number}/reject": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** The ETag of the version you read. If the memory has changed since, the response is 412. */
        "If-Match"?: string;
      };
    };
    result: Memory;
  };
  /** End a memory */
  "POST /api/memories/{number}/end": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** Since when it is no longer true: later than `valid_from`, not in the future. Default: now. */
        at?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** The ETag of the version you read. If the memory has changed since, the response is 412. */
        "If-Match"?: string;
      };
    };
    result: Memory;
  };
  /** Restore a memory */
  "POST /api/memories/{number}/reactivate": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** The ETag of the version you read. If the memory has changed since, the response is 412. */
        "If-Match"?: string;
      };
    };
    result: Memory;
  };
  /** List users */
  "GET /api/users": {
    options: {
      query?: {
        /** `next` of the page before; without it, the first page. */
        cursor?: string;
        /** Maximum number of results. */
        limit?: number;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: UserPage;
  };
  /** Read the log */
  "GET /api/messages": {
    options: {
      query?: {
        /** The user's own messages, the whole thread, or one session. */
        within?: "user" | "thread" | "session";
        /** Include archived messages, which a summary covers. */
        archived?: boolean;
        /** Include older versions of messages. */
        versions?: boolean;
        /** `next` of the page before; without it, the first page. */
        cursor?: string;
        /** Maximum number of results. */
        limit?: number;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
        /** Only messages of this role. */
        role?: "user" | "assistant" | "system" | "tool";
        /** Only messages that this id wrote. */
        author?: string;
        /** Only messages said at this time or later. */
        since?: string;
        /** Only messages said before this time. */
        until?: string;
        /** Only messages whose metadata has these keys with equal values: a JSON object. */
        metadata?: string;
      };
    };
    result: MessagePage;
  };
  /** Store a message */
  "POST /api/messages": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** A request repeated with the same key is not processed again. */
        "Idempotency-Key"?: string;
      };
      body: NewMessage;
    };
    result: Receipt;
  };
  /** Edit a message */
  "PATCH /api/messages": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: EditedMessage;
    };
    result: Receipt;
  };
  /** Count messages */
  "GET /api/messages/count": {
    options: {
      query?: {
        /** The user's own messages, the whole thread, or one session. */
        within?: "user" | "thread" | "session";
        /** Include archived messages, which a summary covers. */
        archived?: boolean;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
        /** Only messages of this role. */
        role?: "user" | "assistant" | "system" | "tool";
        /** Only messages that this id wrote. */
        author?: string;
        /** Only messages said at this time or later. */
        since?: string;
        /** Only messages said before this time. */
        until?: string;
        /** Only messages whose metadata has these keys with equal values: a JSON object. */
        metadata?: string;
      };
    };
    result: MessageCount;
  };
  /** Store many messages */
  "POST /api/messages/batch": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** A request repeated with the same key is not processed again. */
        "Idempotency-Key"?: string;
      };
      body: NewMessages;
    };
    result: Batch;
  };
  /** Take a message back */
  "POST /api/messages/take-back": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: NamedMessage;
    };
    result: Receipt;
  };
  /** Erase messages */
  "POST /api/messages/erase": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: NamedMessages;
    };
    result: Erased;
  };
  /** Download an attachment */
  "GET /api/attachments/{hash}": {
    options: {
      path: {
        /** The hash of the part. */
        hash: string;
      };
      query: {
        /** The id of the message that has the part. */
        message: string;
        /** Whose message: the user's own, or the whole thread's. */
        within?: "user" | "thread" | "session";
        /** Read the version with this id, not the newest one. */
        versions?: boolean;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: ReadableStream<Uint8Array>;
  };
  /** Make a context */
  "POST /api/context": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: ContextWanted;
    };
    result: Context;
  };
  /** List what was sent to models */
  "GET /api/receipts": {
    options: {
      query?: {
        /** Only receipts of this time or later. */
        since?: string;
        /** Maximum number of results. */
        limit?: number;
        /** `next` of the page before; without it, the first page. */
        cursor?: string;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: ReceiptPage;
  };
  /** Read what was sent to a model */
  "GET /api/receipts/{receipt}": {
    options: {
      path: {
        /** The id, as in `X-Aforesaid-Receipt`. */
        receipt: string;
      };
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: ContextReceipt;
  };
  /** Search */
  "GET /api/search": {
    options: {
      query: {
        /** Words or a question. */
        q: string;
        /** Maximum number of results. */
        limit?: number;
        /** The user's own messages, the whole thread, or one session. */
        within?: "user" | "thread" | "session";
        /** Kinds of hits. Default: messages. */
        kinds?: ("message" | "summary" | "memory" | "session")[];
        /** By words, by meaning, or both. */
        arms?: "all" | "keyword" | "dense";
        /** Number of messages around each hit. */
        around?: number;
        /** Minimum similarity of meaning; replaces the default of min_score. */
        similarity?: number;
        /** Minimum score; 0 returns all hits. Default: 0.25 for words, 0.04 for questions; what has all words of the query is a hit with any score. */
        min_score?: number;
        /** The time of the question. Default: now. */
        at?: string;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
        /** Only messages of this role. */
        role?: "user" | "assistant" | "system" | "tool";
        /** Only messages that this id wrote. */
        author?: string;
        /** Only messages said at this time or later. */
        since?: string;
        /** Only messages said before this time. */
        until?: string;
        /** Only messages whose metadata has these keys with equal values: a JSON object. */
        metadata?: string;
      };
    };
    result: SearchResults;
  };
  /** List summaries */
  "GET /api/summaries": {
    options: {
      query?: {
        /** Whether to return active or inactive ones. Default: true. */
        active?: boolean;
        kind?: "tree" | "rolling" | "day" | "week" | "history";
        /** Only summaries of this day. */
        day?: string;
        /** All states; `active` is ignored. */
        every?: boolean;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: Summaries;
  };
  /** Summarise now */
  "POST /api/summaries": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** A request repeated with the same key is not processed again. */
        "Idempotency-Key"?: string;
      };
      body: SummaryWanted;
    };
    result: Summaries;
  };
  /** Read the messages of a summary */
  "GET /api/summaries/{number}/messages": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: Message[];
  };
  /** Correct a summary */
  "PUT /api/summaries/{number}": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: SummaryEdit;
    };
    result: Summary;
  };
  /** Take a summary back */
  "POST /api/summaries/{number}/roll-back": {
    options: {
      path: {
        /** The id. */
        number: number;
      };
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: Summary;
  };
  /** List threads */
  "GET /api/threads": {
    options: {
      query?: {
        /** Maximum number of results. */
        limit?: number;
        /** The id of the last thread of the page before; without it, the first page. */
        before?: string;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: ThreadList;
  };
  /** Clear a thread */
  "POST /api/threads/clear": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: ClearedThread;
    };
    result: MessageCount;
  };
  /** List sessions */
  "GET /api/sessions": {
    options: {
      query?: {
        /** The user's own messages, the whole thread, or one session. */
        within?: "user" | "thread" | "session";
        /** Maximum number of results. */
        limit?: number;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: SessionList;
  };
  /** Read the portrait */
  "GET /api/portrait": {
    options: {
      query?: {
        /** The user's name in sentences. */
        name?: string;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: Portrait;
  };
  /** Read the facts */
  "GET /api/facts": {
    options: {
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: Facts[];
  };
  /** Keep a fact in mind */
  "POST /api/remember": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** A request repeated with the same key is not processed again. */
        "Idempotency-Key"?: string;
      };
      body: RememberRequest;
    };
    result: RememberResult;
  };
  /** Forget a fact */
  "POST /api/forget": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      headers?: {
        /** A request repeated with the same key is not processed again. */
        "Idempotency-Key"?: string;
      };
      body: FactRequest;
    };
    result: ForgetResult;
  };
  /** Read the timeline */
  "GET /api/timeline": {
    options: {
      query?: {
        /** Only what happened at this time or later. */
        since?: string;
        /** Only what happened before this time. */
        until?: string;
        /** Only what mentions this person, by id or name. */
        about?: string;
        /** A topic or a question, such as `what happened in May?`. */
        q?: string;
        /** Maximum number of results. */
        limit?: number;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: Timeline;
  };
  /** Read who is around a user */
  "GET /api/people": {
    options: {
      query?: {
        /** Only people called so: by name, id or relation. */
        name?: string;
        /** Maximum number of results. */
        limit?: number;
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
    };
    result: KnownPeople;
  };
  /** How much is remembered */
  "GET /api/stats": {
    options: {
      query?: {
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: SpaceStats;
  };
  /** How each part is doing */
  "GET /api/health": {
    options: {};
    result: Health;
  };
  /** Read settings */
  "GET /api/settings": {
    options: {
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: Settings;
  };
  /** Change settings */
  "PUT /api/settings": {
    options: {
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: SettingsEdit;
    };
    result: Settings;
  };
  /** Read the audit log */
  "GET /api/audit": {
    options: {
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** Maximum number of results. */
        limit?: number;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: Audit;
  };
  /** Follow what changes */
  "GET /api/events": {
    options: {
      query?: {
        /** The user. Not needed with a key for one user. */
        user?: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
        /** A channel that users share. Default: the direct chat. */
        thread?: string;
        /** One of the user's private chats. Default: the direct chat. */
        chat?: string;
        /** A session by name. */
        session?: string;
      };
      headers?: {
        /** Continue after this event. Browsers send it automatically. */
        "last-event-id"?: string;
      };
    };
    result: ReadableStream<Uint8Array>;
  };
  /** Take everything out */
  "GET /api/export": {
    options: {
      query?: {
        /** Only the data of this user. Not needed with a key for one user. */
        user?: string;
        /** Include embedding vectors. */
        vectors?: boolean;
        /** The space of the user. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: ReadableStream<Uint8Array>;
  };
  /** Take a file in */
  "POST /api/import": {
    options: {
      query?: {
        /** `auto`, or the name of a format. */
        format?: "auto" | "aforesaid" | "chatgpt" | "claude" | "gemini" | "telegram" | "discord" | "whatsapp" | "slack" | "signal" | "facebook" | "instagram" | "openai" | "langchain" | "mem0" | "letta";
        /** Imports everything as the memory of this user. */
        user?: string;
        /** Check the file without storing anything. */
        dry_run?: boolean;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
      body: string | Blob | ArrayBuffer | ArrayBufferView<ArrayBuffer> | ReadableStream<Uint8Array>;
    };
    result: Loaded;
  };
  /** Erase somebody */
  "DELETE /api/users/{user}": {
    options: {
      path: {
        user: string;
      };
      query: {
        /** The user's id again, as a confirmation. */
        confirm: string;
        /** The space. Only for keys for all spaces; other keys have their own. */
        space?: string;
      };
    };
    result: Purged;
  };
  /** List keys */
  "GET /api/keys": {
    options: {};
    result: Key[];
  };
  /** Make a key */
  "POST /api/keys": {
    options: {
      body: NewKey;
    };
    result: MadeKey;
  };
  /** Take a key away */
  "DELETE /api/keys/{key_id}": {
    options: {
      path: {
        key_id: string;
      };
    };
    result: Key;
  };
}
