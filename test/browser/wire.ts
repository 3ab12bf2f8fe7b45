import { afterAll } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** The network between a browser and the server, which a test can take away. */
export interface Wire {
  /** The server, through it. */
  readonly url: string;
  /** Cuts all connections and takes no new ones, as a server that is gone. */
  cut(): void;
  /**
   * Lets the connections stand that carry a stream, and carries nothing on them any more, as for a machine that slept, or
   * one behind a router that forgot them. Those that are idle end, as browsers see to it. New ones work.
   */
  stall(): void;
  /** New connections work again. */
  mend(): void;
}

/** For the top of a test file; ends after its last test. */
export async function startWire(target: string): Promise<Wire> {
  const { port } = new URL(target);
  type Pair = readonly [Socket, Socket];
  const pairs = new Set<Pair>();
  const streams = new WeakSet<Pair>();
  let isCut = false;

  const server = createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect(Number(port), "127.0.0.1");
    const pair = [near, far] as const;
    pairs.add(pair);
    near.on("data", (bytes) => {
      if (bytes.includes("GET /v1/stream ")) streams.add(pair);
    });
    near.pipe(far).pipe(near);
    for (const socket of pair) {
      socket.on("error", () => {});
      socket.on("close", () => {
        // One that is stalled must not tell its other end.
        if (pairs.delete(pair)) for (const end of pair) end.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const stalled: Socket[] = [];
  const destroyAll = () => {
    for (const [near, far] of [...pairs]) {
      near.destroy();
      far.destroy();
    }
  };
  afterAll(() => {
    destroyAll();
    for (const socket of stalled) socket.destroy();
    server.close();
  });

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true;
      destroyAll();
    },
    stall() {
      for (const pair of [...pairs].filter((one) => streams.has(one))) {
        const [near, far] = pair;
        pairs.delete(pair);
        near.unpipe(far);
        far.unpipe(near);
        near.pause();
        far.pause();
        stalled.push(near, far);
      }
      destroyAll();
    },
    mend() {
      isCut = false;
    },
  };
}
