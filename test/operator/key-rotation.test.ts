import { describe, expect, test } from "bun:test";
import { messageOf } from "../../src/lib/error-message.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createVault } from "../../src/lib/vault.ts";
import { createKeyRotation, settleMs } from "../../src/operator/key-rotation.ts";
import { createMasterKeys } from "../../src/operator/master-keys.ts";
import { keyIdOf } from "../../src/secrets.ts";
import type { KeyCheckOutcome, Resealed, SealedContexts, SealedPlace, SealedValue } from "../../src/store/sealed.ts";
import type { Store } from "../../src/store/store.ts";
import { formerKeyIn, fromVaultCheck, toVaultCheck, vaultCheckContext } from "../../src/store/vault-check.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const [oldKey, newKey] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const text = (owner: string, id = "") => `${owner}:${id}`;
const contexts: SealedContexts = { key: text, signingSecret: text, headers: text, card: text };
const same = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;

/** What outlives a server: rows and files. */
function createDisk() {
  const sealed = (place: string, n: number) => createVault(oldKey).seal(`${place} ${n}`, text("t", `${n}`));
  const rows = new Map<string, Uint8Array>();
  for (const place of ["api_key", "signing_key"]) {
    for (let n = 1; n <= 150; n++) rows.set(`${place} ${n}`, sealed(place, n));
  }
  const check = createVault(oldKey).seal(toVaultCheck({}), vaultCheckContext);
  const lost = { unreadable: new Set<string>(), unwritable: new Set<string>() };
  const disk: Disk = { rows, lost, check, files: { current: oldKey, next: null } };
  return disk;
}

interface Disk {
  readonly rows: Map<string, Uint8Array>;
  /** Rows on damaged pages, and those for which something on one is needed. */
  readonly lost: { readonly unreadable: Set<string>; readonly unwritable: Set<string> };
  check: Uint8Array;
  readonly files: { current: Uint8Array; next: Uint8Array | null };
}

/** Dies at one of its acts: from then on nothing is answered, and nothing is done. */
interface Death {
  /** Counts down to 0; the act of that moment is done, or is not. */
  actsLeft: number;
  readonly isDone: boolean;
}

const never = new Promise<never>(() => {});

function startServer(disk: Disk, death: Death = { actsLeft: Number.POSITIVE_INFINITY, isDone: true }) {
  const clock = createFakeClock();
  let isDead = false;
  const nodes: string[] = [];

  /** @throws never answers: of a file nobody can wait, so whoever asked is as good as dead */
  function act<T>(change: () => T): T {
    if (isDead) throw new Error("dead");
    death.actsLeft -= 1;
    if (death.actsLeft > 0) return change();
    isDead = true;
    if (death.isDone) change();
    throw new Error("dead");
  }
  async function answer<T>(change: () => T): Promise<T> {
    try {
      return act(change);
    } catch (error) {
      if (isDead) return never;
      throw error;
    }
  }

  const store: Pick<Store, "sealedValues" | "reseal" | "keyCheck" | "replaceKeyCheck"> = {
    sealedValues: (place, after, limit) =>
      answer(() => {
        const found = [...disk.rows].filter(([name]) => name.startsWith(`${place} `));
        const values = found
          .map(([name, value]): SealedValue => {
            const key = Number(name.split(" ")[1]);
            return { owner: 1, ownerId: "t", key, id: String(key), sealed: value };
          })
          .filter(({ key }) => key > after.key)
          .slice(0, limit);
        const last = values.length < limit ? undefined : values.at(-1);
        const readable = values.filter(({ key }) => !disk.lost.unreadable.has(`${place} ${key}`));
        const damaged = values.length - readable.length;
        return { values: readable, next: last ? { owner: 1, key: last.key } : null, damaged };
      }),
    reseal: (place: SealedPlace, values: readonly Resealed[]) =>
      answer(() => {
        const writable = values.filter(({ key }) => !disk.lost.unwritable.has(`${place} ${key}`));
        const still = writable.filter(({ key, was }) => same(disk.rows.get(`${place} ${key}`) ?? was, was));
        for (const { key, sealed } of still) disk.rows.set(`${place} ${key}`, sealed);
        return { replaced: still.length, damaged: values.length - writable.length };
      }),
    keyCheck: () => answer(() => disk.check),
    replaceKeyCheck: (was, is): Promise<KeyCheckOutcome> =>
      answer(() => {
        if (nodes.length > 0) return { kind: "missing", nodes: [...nodes] };
        if (!same(disk.check, was)) return { kind: "overtaken" };
        disk.check = is;
        return { kind: "replaced" };
      }),
  };
  const { files } = disk;
  const home = {
    masterKeyFiles: {
      ...{ current: "master-key", next: "master-key.next" },
      readCurrent: () => files.current,
      readNext: () => files.next,
      makeNext: () =>
        act(() => {
          files.next ??= newKey;
          return files.next;
        }),
      promote: () =>
        act(() => {
          files.current = files.next ?? files.current;
          files.next = null;
        }),
    },
  };
  const keys = createMasterKeys({ masterKey: files.current, home, log: silentLog });
  keys.look();
  const rotation = createKeyRotation({
    ...{ store, keys, contexts, clock, log: silentLog },
    outliving: (key) => ({ inbox: keyIdOf(key) }),
    announce: async () => {},
    mayRun: () => true,
  });
  return { rotation, keys, clock, nodes, isDead: () => isDead };
}

type Server = ReturnType<typeof startServer>;

/** As long as it takes: steps follow each other by turns of the event loop and by the clock. */
async function isOver({ rotation, clock, isDead }: Server): Promise<boolean> {
  for (let turn = 0; turn < 2_000; turn++) {
    if (isDead() || !rotation.standing().isUnderWay) return true;
    await new Promise<void>((resolve) => setImmediate(resolve));
    clock.advance(250);
  }
  return false;
}

async function untilOver(server: Server): Promise<void> {
  if (!(await isOver(server))) throw new Error("It does not come to its end");
}

/** How many values open with this key. */
const opened = ({ rows }: Disk, key: Uint8Array) =>
  [...rows].filter(([name, value]) => {
    const id = name.split(" ")[1] ?? "";
    try {
      return Buffer.from(createVault(key).open(value, text("t", id))).toString() === name;
    } catch {
      return false;
    }
  }).length;

describe("a rotation of the master key", () => {
  test("seals all anew, keeps what outlives the key, and ends without the former one", async () => {
    const disk = createDisk();
    const server = startServer(disk);
    await server.rotation.start();
    expect((await server.rotation.begin()).isUnderWay).toBe(true);
    expect(same(server.keys.vault.key, newKey)).toBe(true);
    // What opens the check can open everything else from the first moment on.
    const during = fromVaultCheck(createVault(newKey).open(disk.check, vaultCheckContext));
    expect(formerKeyIn(during)).toEqual(Buffer.from(oldKey));
    await untilOver(server);
    expect(opened(disk, newKey)).toBe(300);
    const kept = fromVaultCheck(createVault(newKey).open(disk.check, vaultCheckContext));
    expect(kept).toEqual({ inbox: keyIdOf(oldKey) });
    expect(disk.files).toEqual({ current: newKey, next: null });
    expect(server.rotation.standing()).toMatchObject({ resealed: 300, damaged: 0, isInPlace: true });
    await server.rotation.stop();
  });

  test("finds what was on its way to the store, sealed with the former key", async () => {
    const disk = createDisk();
    const server = startServer(disk);
    await server.rotation.start();
    await server.rotation.begin();
    const startedAt = server.clock.monotonicMs();
    while (opened(disk, newKey) < 300) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      server.clock.advance(10);
    }
    disk.rows.set("api_key 151", createVault(oldKey).seal("api_key 151", text("t", "151")));
    await untilOver(server);
    expect(opened(disk, newKey)).toBe(301);
    expect(server.clock.monotonicMs() - startedAt).toBeGreaterThanOrEqual(2 * settleMs);
    await server.rotation.stop();
  });

  test("leaves a damaged value as it is, and says so", async () => {
    const disk = createDisk();
    disk.rows.set("api_key 7", Buffer.from("damaged"));
    const server = startServer(disk);
    await server.rotation.start();
    await server.rotation.begin();
    await untilOver(server);
    expect(server.rotation.standing()).toMatchObject({ resealed: 299, damaged: 1 });
    await server.rotation.stop();
  });

  test("ends although some values cannot be read, or cannot be written, and says how many", async () => {
    const disk = createDisk();
    for (const row of ["api_key 40", "api_key 41"]) disk.lost.unreadable.add(row);
    disk.lost.unwritable.add("signing_key 9");
    const server = startServer(disk);
    await server.rotation.start();
    await server.rotation.begin();
    await untilOver(server);
    expect(opened(disk, newKey)).toBe(297);
    expect(server.rotation.standing()).toMatchObject({ resealed: 297, damaged: 3 });
    await server.rotation.stop();
  });

  test("does not begin while a server lacks the key, and does not end while one seals with the former", async () => {
    const disk = createDisk();
    const server = startServer(disk);
    await server.rotation.start();
    server.nodes.push("relay-2", "relay-3");
    const refusal = await server.rotation.begin().catch(messageOf);
    expect(refusal).toContain("master-key.next on this server, but relay-2 and relay-3 do not have it");
    expect(server.rotation.standing().isUnderWay).toBe(false);
    expect([same(server.keys.vault.key, oldKey), opened(disk, oldKey)]).toEqual([true, 300]);
    server.nodes.length = 0;
    await server.rotation.begin();
    server.nodes.push("relay-2");
    expect(await isOver(server)).toBe(false);
    server.nodes.length = 0;
    await untilOver(server);
    expect(opened(disk, newKey)).toBe(300);
    await server.rotation.stop();
  });

  test.each([true, false])(
    "loses nothing wherever it is killed, whether what it was at was done or not (%p)",
    async (isDone) => {
      let deaths = 0;
      for (let act = 1; ; act++) {
        const disk = createDisk();
        const victim = startServer(disk, { actsLeft: act, isDone });
        const life = victim.rotation
          .start()
          .then(victim.rotation.begin)
          .catch(() => {});
        await Promise.race([life, new Promise((resolve) => setTimeout(resolve, 0))]);
        await untilOver(victim);
        if (!victim.isDead()) break;
        deaths += 1;
        // The next one has the files, and the store.
        const server = startServer(disk);
        await server.rotation.start();
        await untilOver(server);
        const inUse = server.keys.vault.key;
        expect([act, opened(disk, inUse)]).toEqual([act, 300]);
        expect([act, server.rotation.standing().isInPlace]).toEqual([act, true]);
        await server.rotation.stop();
      }
      expect(deaths).toBeGreaterThan(10);
    },
  );
});
