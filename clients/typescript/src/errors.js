// All errors of the client:
//
//   AforesaidError
//   ├── ConnectionError       the server cannot be reached, or the connection broke
//   ├── RequestTimeout        no answer in time
//   ├── InvalidResponse       an answer that is not from an Aforesaid server
//   └── ApiError              the server refused the request; `status`, `type`, `detail` and `errors` say why
//       ├── InvalidInput          400, 422
//       ├── Unauthorized          401
//       ├── Forbidden             403
//       ├── NotFound              404
//       ├── Conflict              409
//       ├── PreconditionFailed    412
//       ├── TooLarge              413
//       ├── TooManyRequests       429; `retryAfterSeconds`
//       ├── Unavailable           502, 503, 504; `retryAfterSeconds`
//       └── StorageFull           507

/** @import * as types from "../types/index.d.ts" */

export class AforesaidError extends Error {
  /** @param {string} message @param {{ cause?: unknown }} [options] */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

export class ConnectionError extends AforesaidError {}

export class RequestTimeout extends AforesaidError {}

export class InvalidResponse extends AforesaidError {}

export class ApiError extends AforesaidError {
  /** @param {types.Problem} problem @param {number | null} [retryAfterSeconds] */
  constructor(problem, retryAfterSeconds = null) {
    super(`${problem.status} ${problem.title}: ${problem.detail}`);
    this.status = problem.status;
    this.type = problem.type;
    this.title = problem.title;
    this.detail = problem.detail;
    this.errors = problem.errors;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export class InvalidInput extends ApiError {}

export class Unauthorized extends ApiError {}

export class Forbidden extends ApiError {}

export class NotFound extends ApiError {}

export class Conflict extends ApiError {}

export class PreconditionFailed extends ApiError {}

export class TooLarge extends ApiError {}

export class TooManyRequests extends ApiError {}

export class Unavailable extends ApiError {}

export class StorageFull extends ApiError {}

/** @type {Record<number, typeof ApiError>} */
const CLASSES = {
  400: InvalidInput,
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  412: PreconditionFailed,
  413: TooLarge,
  422: InvalidInput,
  429: TooManyRequests,
  502: Unavailable,
  503: Unavailable,
  504: Unavailable,
  507: StorageFull,
};

/**
 * Return the error that a response stands for. A proxy in between may answer with something else than problem details.
 *
 * @param {Response} response
 * @returns {Promise<ApiError>}
 */
export async function errorOf(response) {
  const text = await response.text();
  const problem = {
    type: "about:blank",
    title: response.statusText || "Error",
    status: response.status,
    detail: text.slice(0, 500),
    errors: [],
    ...parsed(text),
  };
  return new (CLASSES[response.status] ?? ApiError)(problem, retryAfter(response.headers.get("retry-after")));
}

/** @param {string} text @returns {Partial<types.Problem>} */
function parsed(text) {
  try {
    const value = JSON.parse(text);
    return typeof value?.detail === "string" && typeof value.type === "string" ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** @param {string | null} header seconds, or a date */
function retryAfter(header) {
  if (header === null) return null;
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}
