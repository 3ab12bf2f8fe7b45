import type { Queries } from "./queries.ts";

/** The queries of `queries.ts`, answered by a read-only connection in a Worker. */
export interface Reader {
  run<Name extends keyof Queries>(name: Name, params: Parameters<Queries[Name]>[0]): Promise<ReturnType<Queries[Name]>>;
  close(): void;
}

export interface ReaderRequest {
  id: number;
  name: keyof Queries;
  params: unknown;
}

export type ReaderAnswer = { id: number; result: unknown } | { id: number; error: string };

/** Starts the Worker on the first query: a server that nobody pages through deeply does without it. */
export function createReader(databasePath: string): Reader {
  let worker: Worker | null = null;
  let lastId = 0;
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();

  function start(): Worker {
    const started = new Worker(new URL("./reader-worker.ts", import.meta.url), { env: {} });
    started.postMessage({ databasePath });
    started.onmessage = ({ data }: MessageEvent<ReaderAnswer>) => {
      const waiter = waiting.get(data.id);
      waiting.delete(data.id);
      if (waiting.size === 0) started.unref();
      if ("error" in data) waiter?.reject(new Error(data.error));
      else waiter?.resolve(data.result);
    };
    started.onerror = (event) => {
      for (const waiter of waiting.values()) waiter.reject(new Error(`The reader stopped: ${event.message}`));
      waiting.clear();
      worker = null;
    };
    return started;
  }

  return {
    run<Name extends keyof Queries>(name: Name, params: Parameters<Queries[Name]>[0]) {
      worker ??= start();
      worker.ref();
      lastId += 1;
      const request: ReaderRequest = { id: lastId, name, params };
      const answer = new Promise<unknown>((resolve, reject) => waiting.set(request.id, { resolve, reject }));
      worker.postMessage(request);
      return answer as Promise<ReturnType<Queries[Name]>>;
    },
    close() {
      worker?.terminate();
      worker = null;
    },
  };
}
