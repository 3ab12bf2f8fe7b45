import { expect, test } from "bun:test";
import { type AnnounceDeps, createAnnouncer } from "../../src/delivery/announce.ts";
import { encodeEventId, firstSeqAt, randomTail } from "../../src/lib/id.ts";
import type { AcceptedEvents } from "../../src/store/store.ts";

test("each event of a batch is announced with its own ingestion time", () => {
  const told: Record<string, unknown>[] = [];
  const deps: Partial<Record<keyof AnnounceDeps, unknown>> = {
    hub: { publish: (...[, , data]: Parameters<AnnounceDeps["hub"]["publish"]>) => void told.push(data()) },
    stats: { accepted() {} },
    metrics: { eventsAccepted() {} },
    log: { enabled: () => false },
  };
  const { accepted } = createAnnouncer(deps as AnnounceDeps);
  const at = Date.UTC(2026, 2, 1, 12);
  const eventIds = [firstSeqAt(at), firstSeqAt(at + 1) - 1, firstSeqAt(at + 1)].map((seq) =>
    encodeEventId(seq, randomTail()),
  );
  const answer: AcceptedEvents = { eventIds, repeated: false, deliveries: [], unowned: [], failed: [] };
  accepted({ key: 1, id: "t1" }, answer);
  expect(told).toEqual(
    ["000Z", "000Z", "001Z"].map((end, i) => ({
      eventId: eventIds[i],
      ingestionTimestamp: `2026-03-01T12:00:00.${end}`,
    })),
  );
});
