/** One run of the program, from start to crash. Whatever was in progress at the crash never completes. */
export interface Life {
  /** The same object, except that each call may be the last thing that this run of the program does. */
  mortal<T extends object>(target: T): T;
  crash(): void;
  readonly isDead: boolean;
}

export interface LifeDeps {
  /** Asked before and after every call. True: the program dies here. */
  diesAt(moment: "before" | "after", call: string): boolean;
  onCrash(): void;
  /** Counts what is in progress, so that the world knows when nothing is. */
  underWay(change: 1 | -1): void;
  /** How long an answer is in transit. @default no time */
  travel?: () => Promise<void>;
}

/** A new promise for each call: a shared one would hold on to everything that ever waited for it. */
export const never = () => new Promise<never>(() => {});

export function createLife({ diesAt, onCrash, underWay, travel }: LifeDeps): Life {
  let isDead = false;

  function crash(): void {
    if (isDead) return;
    isDead = true;
    onCrash();
  }

  function mortal<T extends object>(target: T): T {
    return new Proxy(target, {
      get(object, name, receiver) {
        const member: unknown = Reflect.get(object, name, receiver);
        if (typeof member !== "function") return member;
        return async (...args: unknown[]) => {
          if (isDead) return never();
          underWay(1);
          try {
            if (diesAt("before", String(name))) crash();
            if (isDead) return never();
            const result: unknown = await Reflect.apply(member, object, args);
            if (!isDead && diesAt("after", String(name))) crash();
            if (!isDead && travel) await travel();
            return isDead ? never() : result;
          } catch (error) {
            if (isDead) return never();
            throw error;
          } finally {
            underWay(-1);
          }
        };
      },
    });
  }

  return {
    mortal,
    crash,
    get isDead() {
      return isDead;
    },
  };
}
