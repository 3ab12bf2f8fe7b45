import { DomainError } from "../../../../src/domain/errors.ts";
import type { Random } from "../../../../src/lib/random.ts";
import type { Heard } from "./clients.ts";
import { createIncarnation, type Incarnation, type IncarnationDeps, type Watch } from "./incarnation.ts";
import type { Findings } from "./invariants.ts";

export interface HostDeps
  extends Omit<IncarnationDeps, "diesAt" | "onCrash" | "underWay" | "travel" | "watch" | "random"> {
  random: Random;
  findings: Findings;
  watch: Omit<Watch, "failed">;
  isQuiet(): boolean;
  /** The program is gone, and its files are closed: nobody hears of what was under way. */
  onEnd(): void;
}

/** What the program says of a disk in trouble. */
const diskWords = /server's disk is full|storage cannot be written/;

/** The machine that the program runs on: it starts it, lets it crash or stops it, and starts it again over the same disk. */
export function createHost({ random, findings, watch, isQuiet, onEnd, ...deps }: HostDeps) {
  const { clock, disk, network } = deps;
  const counts = { crashes: 0, stops: 0, refusals: 0 };
  /** Whether it dies of itself, and how slowly answers of the store travel. */
  const dies = random.chance(0.6);
  const lagShare = random.pick([0, 0, 0.1, 0.4]);
  let crashIn = random.between(5, 400);
  let program: Incarnation | null = null;
  let isStopping = false;
  let underWay = 0;
  /** As long as it grows, something happens. */
  let calls = 0;
  /** Requests that have not been answered. */
  const open = new Set<Heard<never>>();
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

  /** Rests when the program has begun, or cannot. */
  async function start(): Promise<void> {
    underWay += 1;
    try {
      program = await begin();
    } catch (error) {
      findings.broken("sound", `the program does not start: ${error}`);
    } finally {
      underWay -= 1;
    }
  }

  async function begin(): Promise<Incarnation> {
    let born: Incarnation | null = null;
    born = await createIncarnation({
      ...deps,
      random: random.next,
      diesAt(_moment, call) {
        calls += 1;
        if (born === null || !dies || isQuiet()) return false;
        // An attempt whose outcome is not recorded is what matters most.
        crashIn -= call === "settle" ? 2 : 1;
        if (crashIn > 0) return false;
        crashIn = random.between(100, 1_500);
        return true;
      },
      onCrash() {
        if (born !== null && program === born) end(born, "crashes");
      },
      underWay(change) {
        underWay += change;
      },
      async travel() {
        if (isQuiet() || !random.chance(lagShare)) return;
        for (let turns = random.between(1, 4); turns > 0; turns -= 1) await turn();
      },
      watch: {
        ...watch,
        failed(event, error) {
          // The end of the program may break off an attempt; a disk in trouble may not, only what can wait for it.
          const isKnown = /shutting down/.test(error) || (event !== "delivery.broken" && diskWords.test(error));
          if (isKnown) return;
          findings.broken("sound", `${event}: ${error}`);
        },
      },
    });
    return born;
  }

  function end(gone: Incarnation, how: "crashes" | "stops"): void {
    counts[how] += 1;
    program = null;
    isStopping = false;
    network.drop();
    for (const heard of [...open]) heard.lost?.();
    open.clear();
    underWay += 1;
    gone.bury().then(
      () => {
        underWay -= 1;
        onEnd();
        clock.after(isQuiet() ? 1 : random.pick([1, 40, 1_000, 20_000]), () => void start());
      },
      (error: unknown) => findings.broken("sound", `the database could not be closed: ${error}`),
    );
  }

  return {
    counts,
    start,
    /** Null while it is down, or does not answer any more. */
    get program() {
      return isStopping ? null : program;
    },
    crash() {
      if (dies) program?.crash();
    },
    stop() {
      const stopping = program;
      if (!stopping || isStopping) return;
      isStopping = true;
      void stopping.stop(8_000).then(() => {
        if (program === stopping) end(stopping, "stops");
      });
    },

    /** Asks something of the program; false when it is down. */
    act<T>(ask: (running: Incarnation) => Promise<T>, heard: Heard<T> = {}): boolean {
      if (!program || isStopping) return false;
      const entry = heard as Heard<never>;
      open.add(entry);
      ask(program)
        .then(
          (value) => open.delete(entry) && heard.answered?.(value),
          (error: unknown) => {
            if (!open.delete(entry)) return;
            if (error instanceof DomainError) counts.refusals += error.kind === "unavailable" ? 1 : 0;
            else findings.broken("sound", `an answer was ${error}`);
            heard.refused?.();
          },
        )
        .catch((error: unknown) => findings.broken("sound", String(error)));
      return true;
    },

    /** Resolves when nothing is under way but what waits for the clock, or for a disk that is in doubt. */
    async whenIdle(): Promise<void> {
      let before = -1;
      for (let quiet = 0, turns = 0; quiet < 4; turns += 1) {
        if (turns > 200_000) throw new Error("The program does not come to rest");
        await turn();
        const isBusy = (underWay > 0 && !disk.isInDoubt) || program?.isPreparing === true || calls !== before;
        before = calls;
        quiet = isBusy ? 0 : quiet + 1;
      }
    },

    /** Ends it for good. @returns what it still held in memory, or null when it was down */
    async close(): Promise<number | null> {
      const last = program;
      if (!last) return null;
      const { held } = last.dispatcher;
      await last.stop(0);
      program = null;
      await last.bury();
      return held;
    },
  };
}

export type Host = ReturnType<typeof createHost>;
