import { unavailable } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { createLoop } from "../lib/loop.ts";
import { createVault } from "../lib/vault.ts";
import { keyIdOf } from "../secrets.ts";
import {
  beforeAll,
  contextOf,
  type Resealed,
  type SealedContexts,
  type SealedPlace,
  type SealedRef,
  type SealedValue,
  sealedPlaces,
} from "../store/sealed.ts";
import type { Store } from "../store/store.ts";
import {
  formerKeyIn,
  fromVaultCheck,
  type KeptSecrets,
  toVaultCheck,
  vaultCheckContext,
  withFormerKey,
} from "../store/vault-check.ts";
import type { MasterKeys } from "./master-keys.ts";

/**
 * Replaces the master key of a store that is in use.
 *
 *   every server has the new key ─▶ `vault_check` is sealed with it, the former one in it ─▶ all seal with the new key
 *     ─▶ what is left is resealed, in steps ─▶ a walk finds nothing more, and has waited for what was under way
 *     ─▶ `vault_check` without the former key
 *
 * Progress is recorded in the store: a server that was killed resumes when it restarts, and where there are several servers,
 * another one takes over right away. Two that work at the same time compare what they find.
 */
export interface KeyRotation {
  /** @throws unavailable `master_key_missing`, `master_key_not_made`, `master_key_overtaken`, `storage_unavailable`; then nothing has changed */
  begin(): Promise<KeyRotationStanding>;
  standing(): KeyRotationStanding;
  /** Called when the store's key may have changed. */
  adopt(): void;
  /** Resolves once this server seals with the store's key. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface KeyRotationStanding {
  readonly isUnderWay: boolean;
  /** By this server, in the rotation under way or the most recent one. */
  readonly resealed: number;
  /** Values that no key opens, or that storage has damaged. They are left as they are. */
  readonly damaged: number;
  /** Where the master key belongs on this server. */
  readonly file: string;
  /** False: the key is still in the next file, because this server could not replace `file`. */
  readonly isInPlace: boolean;
}

export interface KeyRotationDeps {
  store: Pick<Store, "sealedValues" | "reseal" | "keyCheck" | "replaceKeyCheck">;
  keys: MasterKeys;
  contexts: SealedContexts;
  /** Secrets that have to outlive the given master key. */
  outliving(masterKey: Uint8Array): KeptSecrets;
  /** Tells the other servers which keys this one has. Never rejects. */
  announce(): Promise<void>;
  /** Whether this server does the background work. */
  mayRun(): boolean;
  clock: Pick<Clock, "after" | "monotonicMs">;
  log: Log;
  /** @default settleMs */
  settleMs?: number;
}

/**
 * A value sealed with the former key may still be on its way to the store, or may have been read and be about to be written
 * back. So the last walk begins only once everything that was under way has ended.
 */
export const settleMs = 20_000;

/** Rows per step: a few milliseconds of work. */
const chunk = 100;
const pausePerWork = 2;
const failurePauseMs = 3000;
const askAgainMs = 1000;

/**
 *   sealing ── all places walked, and every server seals with the new key ─▶ resting ── settleMs ─▶ looking
 *   looking ── something was found ─▶ resting          looking ── nothing ─▶ the rotation has ended
 */
type Phase = "sealing" | "resting" | "looking";

interface Walk {
  /** Index in `sealedPlaces`. */
  place: number;
  after: SealedRef;
  found: number;
  damaged: number;
}

const newWalk = (): Walk => ({ place: 0, after: beforeAll, found: 0, damaged: 0 });

interface FoundCheck {
  readonly row: Uint8Array;
  /** The key that the row is sealed with. */
  readonly key: Uint8Array;
  readonly kept: KeptSecrets;
}

export function createKeyRotation(deps: KeyRotationDeps): KeyRotation {
  const { store, keys, contexts, clock, log, mayRun, announce } = deps;
  const { vault } = keys;
  const restMs = deps.settleMs ?? settleMs;
  /** The key being replaced; null when no rotation is under way. */
  let former: Uint8Array | null = null;
  let mustAdopt = false;
  let isOurs = false;
  let resealed = 0;
  let damaged = 0;
  let phase: Phase = "sealing";
  let walk = newWalk();
  let restsUntil = 0;
  let cancelWake = () => {};

  /** Null: the store does not check its master key. @throws unavailable when no key here opens the row */
  async function readCheck(): Promise<FoundCheck | null> {
    const row = await store.keyCheck();
    if (row === null) return null;
    if (vault.keyOf(row, vaultCheckContext) === null) keys.look();
    const key = vault.keyOf(row, vaultCheckContext);
    if (key !== null) return { row, kept: fromVaultCheck(vault.open(row, vaultCheckContext)), key };
    throw unavailable(
      `The master key was replaced, and this server does not have the new one. Try: put it into ${keys.files.current}.`,
      "storage_unavailable",
      30,
    );
  }

  /** Adopts what the store says. @throws as `readCheck` */
  async function adoptNow(): Promise<void> {
    mustAdopt = false;
    try {
      const found = await readCheck();
      if (found === null) return;
      const { kept, key } = found;
      const isAnother = !isSame(key, vault.key);
      keys.use(key);
      const before = former;
      former = formerKeyIn(kept);
      if (former !== null) vault.learn(former);
      if (former !== null && (isAnother || before === null)) {
        [resealed, damaged] = [0, 0];
        [phase, walk] = ["sealing", newWalk()];
        loop.wake();
      }
      if (isAnother) {
        log.write("info", "master_key.replaced", { file: keys.files.current });
        void announce();
      }
    } catch (error) {
      mustAdopt = true;
      throw error;
    }
  }

  function wakeIn(ms: number): "idle" {
    cancelWake();
    cancelWake = clock.after(ms, loop.wake);
    return "idle";
  }

  async function step(): Promise<"more" | "idle"> {
    if (mustAdopt) await adoptNow();
    if (former === null) return "idle";
    // If the server that began the rotation has died, the one that does the background work carries on.
    if (!isOurs && !mayRun()) return wakeIn(askAgainMs);
    if (phase === "resting") {
      const leftMs = restsUntil - clock.monotonicMs();
      if (leftMs > 0) return wakeIn(leftMs);
      [phase, walk] = ["looking", newWalk()];
    }
    const place = sealedPlaces[walk.place];
    if (place === undefined) return endWalk();
    const { values, next, damaged: unreadable } = await store.sealedValues(place, walk.after, chunk);
    walk.damaged += unreadable;
    const changes = values.flatMap((value) => sealAnew(place, value));
    if (changes.length > 0) {
      const { replaced, damaged: left } = await store.reseal(place, changes);
      resealed += replaced;
      walk.damaged += left;
      // What cannot be replaced now cannot be later either: to wait for it would be to wait for ever.
      walk.found += changes.length - left;
    }
    walk.after = next ?? beforeAll;
    if (next === null) walk.place += 1;
    return "more";
  }

  function sealAnew(place: SealedPlace, value: SealedValue): Resealed[] {
    const context = contextOf(contexts, place, value);
    const key = vault.keyOf(value.sealed, context);
    if (key === null) walk.damaged += 1;
    if (key === null || isSame(key, vault.key)) return [];
    return [{ ...value, was: value.sealed, sealed: vault.seal(vault.open(value.sealed, context), context) }];
  }

  async function endWalk(): Promise<"more" | "idle"> {
    damaged = walk.damaged;
    if (phase === "looking" && walk.found === 0) return retire();
    // Until then another server may still seal with the former key.
    if (phase === "sealing" && !(await replaceCheck((kept) => kept))) return wakeIn(failurePauseMs);
    phase = "resting";
    restsUntil = clock.monotonicMs() + restMs;
    return "more";
  }

  async function retire(): Promise<"more" | "idle"> {
    if (!(await replaceCheck((kept) => withFormerKey(kept, null)))) return wakeIn(failurePauseMs);
    mustAdopt = true;
    log.write("info", "master_key.rotated", { resealed, damaged });
    return "more";
  }

  /** Succeeds only if every server seals with the new key. Also false when another rotation has overtaken this one. */
  async function replaceCheck(change: (kept: KeptSecrets) => KeptSecrets): Promise<boolean> {
    const found = await readCheck();
    if (found === null || !isSame(found.key, vault.key) || formerKeyIn(found.kept) === null) {
      mustAdopt = true;
      return false;
    }
    const is = vault.seal(toVaultCheck(change(found.kept)), vaultCheckContext);
    const outcome = await store.replaceKeyCheck(found.row, is, { keyId: keyIdOf(vault.key), by: "used" });
    if (outcome.kind === "overtaken") mustAdopt = true;
    return outcome.kind === "replaced";
  }

  const loop = createLoop({
    clock,
    mayStep: () => true,
    passOn() {},
    step,
    pausePerWork,
    failurePauseMs,
    onFailure: (error) => log.write("error", "master_key.rotation_failed", { message: messageOf(error) }),
  });

  const standing = () => ({
    ...{ isUnderWay: former !== null, resealed, damaged },
    ...{ isInPlace: keys.isInPlace(), file: keys.files.current },
  });

  return {
    standing,

    adopt() {
      mustAdopt = true;
      loop.wake();
    },

    async start() {
      await adoptNow();
      loop.start();
    },

    async stop() {
      cancelWake();
      await loop.stop();
    },

    async begin() {
      const wasInPlace = keys.isInPlace();
      await adoptNow();
      isOurs = true;
      // What the last rotation could not do is what is asked for: another one would overwrite the key that earlier backups need.
      const isEnded = !wasInPlace && keys.isInPlace();
      if (former !== null || isEnded) return standing();
      const found = await readCheck();
      if (found === null) throw noKeyLookedAt();
      const before = vault.key;
      const next = keys.next();
      vault.learn(next);
      await announce();
      const kept = withFormerKey({ ...deps.outliving(before), ...found.kept }, before);
      const is = createVault(next).seal(toVaultCheck(kept), vaultCheckContext);
      // Whatever comes of it, the store says which key is in force.
      mustAdopt = true;
      const outcome = await store
        .replaceKeyCheck(found.row, is, { keyId: keyIdOf(next), by: "known" })
        .finally(loop.wake);
      if (outcome.kind === "missing") throw notEverywhere(outcome.nodes, keys.files.next);
      if (outcome.kind === "overtaken") throw overtaken();
      await adoptNow();
      return standing();
    },
  };
}

const isSame = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;

const notEverywhere = (nodes: readonly string[], file: string) =>
  unavailable(
    `The new master key is in ${file} on this server, but ${nodes.join(" and ")} ${nodes.length === 1 ? "does" : "do"} not have it; ` +
      "nothing has changed. Try: copy it next to the key file on each of them, with .next appended to its name, wait 5 seconds and run this again.",
    "master_key_missing",
    5,
  );

const overtaken = () =>
  unavailable("Another rotation of the master key has just begun. Try: repeat this.", "master_key_overtaken");

const noKeyLookedAt = () =>
  unavailable("The store has no master key to be replaced. Try: restart the server.", "storage_unavailable");
