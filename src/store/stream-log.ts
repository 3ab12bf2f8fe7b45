/** What a client is shown. A separate `resync` tells a single client that it has missed some. */
export type StreamEventKind =
  | "event.accepted"
  | "delivery.attempted"
  | "delivery.finished"
  | "replay.progressed"
  | "webhook.changed"
  | "account.changed";

/**
 * Defines the order in which a tenant's messages go out, and which of them are kept for clients that resume (rules, section
 * 11). The hub shows its readers what is in here.
 *
 * `test/contract/stream/` is this text as a suite.
 */
export interface StreamLog {
  /**
   * Keeps a tenant's messages until `forget`. At most one watch per tenant at a time.
   * @param onMore called when there are more to read, possibly from within `append`; must not throw
   */
  watch(tenantId: string, onMore: () => void): Tail;
  /**
   * Adds a message; messages are read in the order in which they were added. `data` is called only if the tenant is watched;
   * if it throws, so does `append`, and nothing is added. Never waits.
   */
  append(tenantId: string, kind: StreamEventKind, data: () => Record<string, unknown>): void;
}

/** The kept messages of one tenant, by position. A reader is just a position, so it holds no memory, however far behind it is. */
export interface Tail {
  /** Position of the oldest message that is still there. */
  readonly first: number;
  /** Position after the newest one. */
  readonly end: number;
  /** Messages from `position` on, as they are sent to the client, and the position after them. */
  chunkFrom(position: number): { bytes: Uint8Array<ArrayBuffer>; next: number };
  /** Position after the message with this id; null when the id is unknown, or messages after it are no longer there. */
  positionAfter(id: string): number | null;
  /** The id from which a client that has seen everything so far resumes. */
  endId(): string;
  /**
   * Resolves once everything can be read that was appended here before, or by any node as far as it is available by now; from
   * the first time on nothing is missed. Until then nothing else may be called. Null when that always holds.
   * @throws DomainError `unavailable`; if the first call fails, the tail is to be forgotten
   */
  ready(): Promise<void> | null;
  forget(): void;
}

const encoder = new TextEncoder();

/** One message of `text/event-stream` (HTML Standard, section 9.2). */
export const encodeMessage = (kind: StreamEventKind | "resync", id: string, data: Record<string, unknown>) =>
  encodeText(kind, id, JSON.stringify(data));

/** @param json in a single line */
export const encodeText = (kind: string, id: string, json: string) =>
  encoder.encode(`event: ${kind}\nid: ${id}\ndata: ${json}\n\n`);
