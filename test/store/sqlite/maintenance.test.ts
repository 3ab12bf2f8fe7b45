import { expect, test } from "bun:test";
import { useSqlite } from "../../support/sqlite-store.ts";
import { newTenant } from "../../support/store-factory.ts";

const sqlite = useSqlite();

test("maintenance with nothing to do writes nothing, so the disk of a server at rest can rest too", async () => {
  let commits = 0;
  const { store } = await sqlite.store({
    commit(commit) {
      commits += 1;
      commit();
    },
  });
  await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
  const before = commits;
  expect(await store.returnCancelled(100, Date.now())).toBeNull();
  expect(await store.queueReplayBatch(100, Date.now())).toBeNull();
  expect(await store.failUndeliverable(100)).toBe(false);
  expect(await store.endOrder(100)).toBeNull();
  expect(await store.eraseDeleted(100)).toBe(false);
  expect(await store.prune(Date.now(), 100)).toBe(false);
  expect(commits).toBe(before);
});
