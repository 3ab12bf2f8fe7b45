/** What a client is shown; `resync` says to it alone that it has missed some. */
export type StreamEventKind =
  | "event.accepted"
  | "delivery.attempted"
  | "delivery.finished"
  | "replay.progressed"
  | "webhook.changed"
  | "account.changed";

/**
 * In which order the messages of a tenant go out, and what is kept of them for those who resume (rules, section 11). The hub
 * shows to its readers what stands here.
 *
 * `test/contract/stream/` is this text as a suite.
 */
export interface StreamLog {
  /**
   * Keeps a tenant's messages, until `forget`. One at a time for a tenant.
   * @param onMore told that there are more to read, also while they are appended; must not throw
   */
  watch(tenantId: string, onMore: () => void): Tail;
  /**
   * Adds a message; what was added first is read first. `data` is called only if the tenant is watched; what it throws is
   * thrown, and then nothing is added. Never waits.
   */
  append(tenantId: string, kind: StreamEventKind, data: () => Record<string, unknown>): void;
}

/** The kept messages of one tenant, by position: a reader is a position, so however far behind it is, it holds no memory. */
export interface Tail {
  /** Position of the oldest message that is still there. */
  readonly first: number;
  /** Position after the newest one. */
  readonly end: number;
  /** Messages from `position` on, as they go to the client, and the position after them. */
  chunkFrom(position: number): { bytes: Uint8Array<ArrayBuffer>; next: number };
  /** Position of the message after that of an id; null when the id is unknown, or messages after it are no longer there. */
  positionAfter(id: string): number | null;
  /** An id from which a client resumes that has seen all so far. */
  endId(): string;
  /**
   * Resolves when what was appended here before, or anywhere and is to be had by now, can be read; from the first time on
   * nothing is missed. Until then nothing else may be asked. Null: that is so at any time.
   * @throws DomainError `unavailable`; what failed the first time is to be forgotten
   */
  ready(): Promise<void> | null;
  forget(): void;
}

const encoder = new TextEncoder();

/** One message of `text/event-stream` (HTML Standard, section 9.2). */
export const encodeMessage = (kind: StreamEventKind | "resync", id: string, data: Record<string, unknown>) =>
  encodeText(kind, id, JSON.stringify(data));

/** @param json of one line */
export const encodeText = (kind: string, id: string, json: string) =>
  encoder.encode(`event: ${kind}\nid: ${id}\ndata: ${json}\n\n`);
