import { callForPage } from "../../api/client.ts";
import type { Attempt } from "../../api/types.ts";
import { attemptsAtOnce, newestPages } from "./attempt-pages.ts";

export interface NewestAttempts {
  /** Oldest first. */
  readonly attempts: readonly Attempt[];
  /** How many attempts there are before them. */
  readonly earlier: number;
}

/** Reads the newest attempts of an event: at least `wanted`, or all. */
export async function readNewestAttempts(id: string, wanted: number, signal: AbortSignal): Promise<NewestAttempts> {
  const read = (page: number) =>
    callForPage<Attempt>(`/v1/events/${encodeURIComponent(id)}/attempts`, {
      query: { page, size: attemptsAtOnce },
      signal,
    });
  const oldest = await read(0);
  const pages = newestPages(oldest.total, wanted);
  const attempts: Attempt[] = [];
  for (const page of pages) attempts.push(...(page === 0 ? oldest : await read(page)).entries);
  return { attempts, earlier: (pages[0] ?? 0) * attemptsAtOnce };
}
