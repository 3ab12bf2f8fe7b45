import { rawRequest } from "../support/api-server.ts";
import type { TestApp } from "../support/test-app.ts";

export interface Call {
  token?: string;
  body?: string | Uint8Array;
  type?: string;
  encoding?: string;
}

/** Sends requests with exactly these headers; without `type` they have no Content-Type. */
export const exactRequests =
  (server: () => TestApp) =>
  (method: string, path: string, { token, body, type, encoding }: Call = {}) =>
    rawRequest(server(), method, path, {
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(type !== undefined && { "Content-Type": type }),
        ...(encoding !== undefined && { "Content-Encoding": encoding }),
        ...(body !== undefined && { "Content-Length": String(Buffer.byteLength(body)) }),
      },
      ...(body !== undefined && { chunks: [body] }),
    });
