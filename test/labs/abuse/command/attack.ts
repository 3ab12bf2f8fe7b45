import type { Tier } from "../../../../src/domain/tenant.ts";
import type { Store } from "../../../../src/store/store.ts";
import type { AttackTarget, SeededAccount, Tally } from "./target.ts";

/** One attack, run by a process of its own, so that it costs the server and not those who measure. */
export interface Attack {
  readonly name: string;
  /** What it does, for the report. */
  readonly load: string;
  /** Accounts of the attacker. */
  readonly accounts: number;
  /** The plan of its accounts. @default "enterprise" */
  readonly tier?: Tier;
  /** What its accounts have stored before the server starts, whose memory the making of it is not to count in. */
  seed?(store: Store, accounts: readonly SeededAccount[]): Promise<void>;
  /** The healthy tenant's requests may wait so long, in ms (99th percentile); not judged when absent. */
  readonly ingestionP99Ms?: number;
  /** Its accounts have real passwords. A hundred of them take the server seconds to make. */
  readonly guessesPasswords?: boolean;
  /** Seconds at least, when that is more than what was asked for. */
  readonly seconds?: number;
  /** It has an end of its own, which is waited for. */
  readonly isFinite?: boolean;
  /** What may be answered; anything else fails the run. */
  readonly expected: readonly (string | number)[];
  /** The server's memory may grow by this much, and why. */
  readonly growthBytes: number;
  readonly growthReason: string;
  /** The data directory may grow by this much, and why; absent: nobody looks. */
  readonly diskBytes?: number;
  readonly diskReason?: string;
  run(target: AttackTarget, tally: Tally, isOver: () => boolean): Promise<void>;
}

/** So many at a time, each the next one as soon as it has an answer, until it is over. */
export async function inParallel(
  workers: number,
  isOver: () => boolean,
  act: (n: number) => Promise<void>,
): Promise<void> {
  let n = 0;
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (!isOver()) await act(n++);
    }),
  );
}

/** One request that has to succeed: it sets the scene. */
export async function ask<T>(
  { port }: AttackTarget,
  method: string,
  path: string,
  token: string,
  body: unknown,
): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

export interface Call {
  token?: string;
  body?: string;
  /** The address for which the attacker's proxy speaks. */
  from?: string;
}

/** One request; counts its status, and by its word a refusal that carries no `Retry-After` although it should. */
export async function call(
  { port }: AttackTarget,
  tally: Tally,
  method: string,
  path: string,
  { token, body, from }: Call = {},
): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: {
      "Content-Type": "application/json",
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(from !== undefined && { "X-Forwarded-For": from }),
    },
    ...(body !== undefined && { body }),
  });
  await response.arrayBuffer();
  const { status } = response;
  tally[status] = (tally[status] ?? 0) + 1;
  if ((status === 429 || status === 503) && !(Number(response.headers.get("Retry-After")) > 0)) {
    tally["without Retry-After"] = (tally["without Retry-After"] ?? 0) + 1;
  }
  return status;
}
