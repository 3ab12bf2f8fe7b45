import { describe, expect, test } from "bun:test";
import type { DeliveryState } from "../../src/domain/delivery.ts";
import { join, lineOf, type PlaceInLine, rejoin } from "../../src/domain/order.ts";

const [own, other] = [7, 8];
const nobody = () => false;
const somebody = (orderHash: number) => orderHash === own;
const alone: PlaceInLine = { orderHash: null, isHeldBack: false };
const head: PlaceInLine = { orderHash: own, isHeldBack: false };
const behind: PlaceInLine = { orderHash: own, isHeldBack: true };

describe("a delivery", () => {
  test.each([
    ["goes by the key of its event, if its webhook is ordered", true, "customer 7", "customer 7"],
    ["goes by itself if its webhook is not", false, "customer 7", null],
    ["goes by itself without a key", true, null, null],
  ])("%s", (_, ordered, key, line) => {
    expect(lineOf({ ordered }, key)).toBe(line);
  });

  test.each([
    ["that stands in no line is never held back", null, somebody, alone],
    ["that finds nobody is the head", own, nobody, head],
    ["that finds a head is held back", own, somebody, behind],
  ])("%s", (_, orderHash, hasHead, place) => {
    expect(join(orderHash, hasHead)).toEqual(place);
  });
});

describe("a record that a replay begins again", () => {
  const inOther: PlaceInLine = { orderHash: other, isHeldBack: false };
  const rows: [string, DeliveryState, PlaceInLine, boolean, number | null, PlaceInLine, number | null][] = [
    ["has ended: joins the line", "DELIVERED", alone, false, own, behind, null],
    ["has ended, and its webhook is not ordered: stands in none", "FAILED", alone, false, null, alone, null],
    ["is the head: stays", "PENDING", head, false, own, head, null],
    ["is the head, in hand: stays", "PENDING", head, true, own, head, null],
    ["is held back: stays", "PENDING", behind, false, own, behind, null],
    ["waits for no other, and its webhook came to be ordered: joins", "PENDING", alone, false, own, behind, null],
    ["is in hand as its webhook came to be ordered: stays", "PENDING", alone, true, own, alone, null],
    ["is the head as its webhook is not ordered any more: leaves", "PENDING", inOther, false, null, alone, other],
    ["is the head then, and in hand: stays until it ends", "PENDING", inOther, true, null, inOther, null],
    ["is held back then: leaves, and nobody follows", "PENDING", behind, false, null, alone, null],
  ];
  test.each(rows)("%s", (_, state, found, isOwned, orderHash, place, leaves) => {
    expect(rejoin({ ...found, state, isOwned }, orderHash, somebody)).toEqual({ ...place, leaves });
  });
});
