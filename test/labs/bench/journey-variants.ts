import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { encodeEventId, nextEventSeq, randomTail } from "../../../src/lib/id.ts";
import type { AcceptedEvents, AcceptRequest, Store } from "../../../src/store/store.ts";

/** Postrider with stages of an event taken out: verbs of its store do nothing and answer as if they had done it. */
export interface Variant {
  /** Whether events are to arrive: all of them, or none. */
  readonly delivers: boolean;
  replacing(store: Store): Partial<Pick<Store, "acceptEvents" | "settle">>;
}

export type VariantName = "all" | "no-settling" | "no-storing" | "no-deliveries" | "only-http";

export const variants: Readonly<Record<VariantName, Variant>> = {
  all: { delivers: true, replacing: () => ({}) },
  // What was sent stays pending, and owned, so that nobody claims it and sends it again.
  "no-settling": { delivers: true, replacing: () => ({ settle: settleNothing() }) },
  "no-storing": {
    delivers: true,
    replacing: (store) => ({ acceptEvents: storeNothing(store), settle: settleNothing() }),
  },
  // Nobody looks for deliveries but after a wake or an offer, and these are owned besides.
  "no-deliveries": {
    delivers: false,
    replacing: (store) => ({
      acceptEvents: async (request) => ({ ...(await store.acceptEvents(request)), deliveries: [], unowned: [] }),
    }),
  },
  "only-http": { delivers: false, replacing: () => ({ acceptEvents: answerOnly() }) },
};

export const variantNames = Object.keys(variants) as VariantName[];

/** Above all keys that the store gives in a run: those of its own rows stay apart from ours. */
const firstKey = 2 ** 40;

function settleNothing(): Store["settle"] {
  let key = firstKey;
  return async ({ delivery: { tenantKey, eventSeq } }) => {
    key += 1;
    return { kind: "settled", attempt: { tenantKey, eventSeq, key } };
  };
}

/** The first delivery of an account is the store's, the others are copies of it. */
function storeNothing(store: Store): Store["acceptEvents"] {
  const samples = new Map<number, DueDelivery>();
  const nextId = createIds();
  let deliveryKey = firstKey;
  return async (request) => {
    const sample = samples.get(request.tenantKey);
    if (sample === undefined) {
      const accepted = await store.acceptEvents(request);
      const [first] = accepted.deliveries;
      if (first !== undefined) samples.set(request.tenantKey, first);
      return accepted;
    }
    const { events, trace = null } = request;
    const deliveries = events.map(({ payload }): DueDelivery => {
      deliveryKey += 1;
      return { ...sample, ...nextId(), deliveryKey, payload, trace };
    });
    return acceptedAs(deliveries, deliveries);
  };
}

function answerOnly(): Store["acceptEvents"] {
  const nextId = createIds();
  return async ({ events }: AcceptRequest) => acceptedAs(events.map(nextId), []);
}

type EventName = Pick<DueDelivery, "eventSeq" | "eventId">;

/** As the store names events. */
function createIds(): () => EventName {
  let eventSeq = 0;
  return () => {
    eventSeq = nextEventSeq(eventSeq, Date.now());
    return { eventSeq, eventId: encodeEventId(eventSeq, randomTail()) };
  };
}

const acceptedAs = (events: readonly EventName[], deliveries: readonly DueDelivery[]): AcceptedEvents => ({
  eventIds: events.map(({ eventId }) => eventId),
  repeated: false,
  deliveries,
  unowned: [],
  failed: [],
});
