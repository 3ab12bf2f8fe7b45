import type { StreamWatched } from "./changes.ts";
import { storageUnavailable } from "./faults.ts";
import { arrayText } from "./parameters.ts";
import type { Pool } from "./pool.ts";
import type { Writes } from "./writes.ts";

/**
 * Which tenants' streams are watched on any node: the other nodes write messages only for those. A node that begins to watch
 * tells all others, through a change, so from then on none of them drops any messages; the end of watching is noticed by an
 * occasional look.
 */
export interface StreamWatchers {
  /** Whether a message of this tenant has to be written. */
  isWatched(tenantId: string): boolean;
  isWatchedElsewhere(tenantId: string): boolean;
  /**
   * This node begins to watch it. @returns once every living node knows: whether nobody watched before, so that messages are
   * missing
   * @throws DomainError `unavailable`
   */
  begin(tenantId: string): Promise<{ isFirst: boolean }>;
  end(tenantId: string): void;
  heed(change: StreamWatched): void;
  /** Until the next look, what was heard may be incomplete: everything counts as watched. */
  doubt(): void;
  /** Never rejects. */
  look(): Promise<void>;
  /** Waits for what is in progress. */
  close(): Promise<void>;
}

export interface StreamWatchersOptions {
  pool: Pool;
  writes: Pick<Writes, "submit">;
  /** Null while this process is not a node. */
  node(): { readonly incarnation: number } | null;
  /** Whether it has heard everything that others rely on. See `Membership`. */
  mayTrust(): boolean;
  onFailure(error: unknown): void;
}

export function createStreamWatchers({
  pool,
  writes,
  node,
  mayTrust,
  onFailure,
}: StreamWatchersOptions): StreamWatchers {
  const own = new Set<string>();
  let others = new Map<string, Set<number>>();
  let isSure = false;
  /** Counts changes heard; a look during which one arrives may have missed it. */
  let heard = 0;
  /** What this node does about a tenant, one step after the other. */
  const underWay = new Map<string, Promise<unknown>>();

  function inTurn<T>(tenantId: string, act: () => Promise<T>): Promise<T> {
    const done = (underWay.get(tenantId) ?? Promise.resolve()).catch(() => {}).then(act);
    underWay.set(tenantId, done);
    const clear = () => underWay.get(tenantId) === done && underWay.delete(tenantId);
    done.then(clear, clear);
    return done;
  }

  /** The head is locked, so of two nodes that begin at the same time one is first. */
  const register = (tenantId: string, incarnation: number) =>
    writes.submit(async (tx) => {
      await tx.run(
        `insert into stream_head (tenant_id, epoch, last_id)
         values ($1, (extract(epoch from clock_timestamp()) * 1000)::bigint::text, 0) on conflict do nothing`,
        [tenantId],
      );
      await tx.run("select 1 from stream_head where tenant_id = $1 for update", [tenantId]);
      await tx.run(
        "insert into stream_watch (tenant_id, incarnation) values ($1, $2) on conflict (tenant_id, incarnation) do nothing",
        [tenantId, incarnation],
      );
      const [present] = await tx.run(
        `select 1 from stream_watch join node using (incarnation)
         where stream_watch.tenant_id = $1 and incarnation <> $2 limit 1`,
        [tenantId, incarnation],
      );
      if (!present) {
        // Earlier messages are below this number, so nobody resumes from there.
        await tx.run("update stream_head set last_id = last_id + 1 where tenant_id = $1", [tenantId]);
        await tx.run("delete from stream_message where tenant_id = $1", [tenantId]);
      }
      tx.changed({ kind: "stream_watched", tenantId, incarnation });
      return { isFirst: !present };
    });

  const unregister = (tenantIds: readonly string[], incarnations: readonly number[]) =>
    pool.write(
      `delete from stream_watch using unnest($1::text[], $2::int[]) as ended(tenant_id, incarnation)
       where stream_watch.tenant_id = ended.tenant_id and stream_watch.incarnation = ended.incarnation`,
      [arrayText(tenantIds), arrayText(incarnations)],
    );

  function isEnded({ tenantId, incarnation, lives }: { tenantId: string; incarnation: number; lives: boolean }) {
    if (!lives) return true;
    return incarnation === node()?.incarnation && !own.has(tenantId) && !underWay.has(tenantId);
  }

  const isWatchedElsewhere = (tenantId: string) => others.has(tenantId) || !isSure || !mayTrust();

  return {
    isWatched: (tenantId) => own.has(tenantId) || isWatchedElsewhere(tenantId),
    isWatchedElsewhere,

    begin(tenantId) {
      own.add(tenantId);
      return inTurn(tenantId, async () => {
        const here = node();
        if (here === null) throw storageUnavailable("passing");
        return register(tenantId, here.incarnation);
      });
    },

    end(tenantId) {
      own.delete(tenantId);
      inTurn(tenantId, async () => {
        const here = node();
        if (here !== null && !own.has(tenantId)) await unregister([tenantId], [here.incarnation]);
      }).catch(onFailure);
    },

    heed({ tenantId, incarnation }) {
      heard += 1;
      if (incarnation === node()?.incarnation) return;
      others.set(tenantId, (others.get(tenantId) ?? new Set()).add(incarnation));
    },

    async close() {
      await Promise.allSettled(underWay.values());
    },

    doubt() {
      isSure = false;
    },

    async look() {
      try {
        let heardBefore: number;
        let rows: { tenantId: string; incarnation: number; lives: boolean }[];
        do {
          heardBefore = heard;
          rows = await pool.read(
            `select w.tenant_id as "tenantId", w.incarnation, n.incarnation is not null as lives
             from stream_watch w left join node n using (incarnation)`,
          );
        } while (heard !== heardBefore);
        const found = new Map<string, Set<number>>();
        for (const { tenantId, incarnation, lives } of rows) {
          if (!lives || incarnation === node()?.incarnation) continue;
          found.set(tenantId, (found.get(tenantId) ?? new Set()).add(incarnation));
        }
        others = found;
        isSure = true;
        const ended = rows.filter(isEnded);
        if (ended.length === 0) return;
        await unregister(
          ended.map(({ tenantId }) => tenantId),
          ended.map(({ incarnation }) => incarnation),
        );
      } catch (error) {
        onFailure(error);
      }
    },
  };
}
