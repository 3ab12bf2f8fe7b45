import { describe, expect, test } from "bun:test";
import { bodyRoomBytes, bodyRoomOfOneBytes, createBodyRoom, smallEnoughBytes } from "../../src/http/body-room.ts";

const large = smallEnoughBytes + 1;
const code = (act: () => void) => {
  try {
    act();
  } catch (error) {
    return (error as { code?: string }).code;
  }
};

describe("the room of bodies", () => {
  test("is 64 MiB, and 24 MiB for one account", () => {
    expect([bodyRoomBytes, bodyRoomOfOneBytes]).toEqual([64 * 2 ** 20, 24 * 2 ** 20]);
  });

  test("has an end for one account, which leaves room for another one", () => {
    const room = createBodyRoom(3 * large, 2 * large);
    room.enter("ada").grow(large);
    room.enter("ada").grow(large);
    expect(code(() => room.enter("ada").grow(large))).toBe("too_many_bodies");
    expect(code(() => room.enter("bob").grow(large))).toBeUndefined();
  });

  test("has an end for all together", () => {
    const room = createBodyRoom(2 * large, 2 * large);
    room.enter("ada").grow(large);
    room.enter("bob").grow(large);
    expect(code(() => room.enter("eve").grow(large))).toBe("too_many_bodies");
  });

  test("is one account's for all who have none", () => {
    const room = createBodyRoom(3 * large, large);
    room.enter(undefined).grow(large);
    expect(code(() => room.enter(undefined).grow(large))).toBe("too_many_bodies");
  });

  test("is there for a small body also when it is full", () => {
    const room = createBodyRoom(large, large);
    room.enter("ada").grow(large);
    expect(code(() => room.enter("ada").grow(smallEnoughBytes))).toBeUndefined();
  });

  test("counts all of a body that grows beyond small, piece by piece", () => {
    const room = createBodyRoom(large, large);
    const place = room.enter("ada");
    for (let n = 0; n < large; n++) place.grow(1);
    expect(code(() => place.grow(1))).toBe("too_many_bodies");
  });

  test("is given back in full, once, by whoever leaves", () => {
    const room = createBodyRoom(2 * large, 2 * large);
    const [first, second] = [room.enter("ada"), room.enter("ada")];
    first.grow(large);
    second.grow(large);
    first.leave();
    first.leave();
    expect(code(() => room.enter("ada").grow(large))).toBeUndefined();
    expect(code(() => room.enter("ada").grow(large))).toBe("too_many_bodies");
  });
});
