import { expect, test } from "bun:test";
import { diskFactOf } from "../../../web/operator/screens/disk-fact.ts";

const mb = 1e6;

test.each([
  ["above its floor", 300 * mb, 200 * mb, { text: "100 MB until new events are refused", isBad: false }],
  [
    "below its floor",
    100 * mb,
    200 * mb,
    { text: "100 MB free, below the floor of 200 MB: new events are refused", isBad: true },
  ],
  ["without a floor", 100 * mb, 0, { text: "100 MB free", isBad: false }],
  ["full, without a floor", 0, 0, { text: "0 B free", isBad: true }],
])("a disk that is %s", (_, disk_free_bytes, disk_floor_bytes, fact) => {
  expect(diskFactOf({ disk_free_bytes, disk_floor_bytes })).toEqual(fact);
});
