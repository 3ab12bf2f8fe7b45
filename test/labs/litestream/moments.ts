/** What happened when: it tells at which restart a lost event was accepted, to be matched with Litestream's log. */
export interface Moments {
  note(what: string): void;
  /** How many of them lie after which moment, and from when to when. */
  place(events: readonly { at: number }[]): string;
}

const timeOf = (at: number) => new Date(at).toISOString().slice(11, 23);

export function createMoments(say: (text: string) => void): Moments {
  const moments: { what: string; at: number }[] = [];
  return {
    note(what) {
      moments.push({ what, at: Date.now() });
      say(`${timeOf(Date.now())} ${what}`);
    },
    place(events) {
      const byMoment = Map.groupBy(events, ({ at }) => moments.findLast((moment) => moment.at <= at));
      return [...byMoment]
        .map(([moment, some]) => {
          const times = some.map(({ at }) => at);
          const span = `${timeOf(Math.min(...times))} to ${timeOf(Math.max(...times))}`;
          const after = moment ? `, after "${moment.what}" at ${timeOf(moment.at)}` : "";
          return `${some.length} from ${span}${after}`;
        })
        .join("; ");
    },
  };
}
