import { call } from "../../api/client.ts";
import type { Replay, ReplayPage } from "../../api/types.ts";
import { belongTogether, type PageAround } from "../../parts/replay-groups.ts";

export const pageSize = 50;

export interface ReplaysRead extends PageAround {
  readonly total: number;
}

/** A page of the list, and the pages beside it that a group of it goes on in. @param page from 1 */
export async function readReplays(page: number, signal: AbortSignal): Promise<ReplaysRead> {
  const read = (number: number, size: number) =>
    call<ReplayPage>("/v1/events/replays", { query: { page: number - 1, size }, signal });
  /** @param next the position in the list of the one after `edge`, from 1 */
  const beside = async (edge: Replay | undefined, next: number, itsPage: number): Promise<readonly Replay[]> => {
    if (edge?.kind !== "single") return [];
    const [found] = (await read(next, 1)).replays;
    return found && belongTogether(edge, found) ? (await read(itsPage, pageSize)).replays : [];
  };
  const { replays, total } = await read(page, pageSize);
  const [first, last] = [(page - 1) * pageSize + 1, page * pageSize];
  const [newer, older] = await Promise.all([
    page > 1 ? beside(replays[0], first - 1, page - 1) : [],
    last < total ? beside(replays.at(-1), last + 1, page + 1) : [],
  ]);
  const isAllOf = { newer: page <= 2, older: last + pageSize >= total };
  return { newer, replays, older, isAllOf, total };
}
