import { and, count, desc, eq, gt, lt, sql } from "drizzle-orm";
import type { ListedDelivery } from "../../domain/inbox.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { InboxVerbs } from "../inbox.ts";
import type { Connection } from "./connection.ts";
import { inboxDelivery, inboxSetting } from "./inbox-schema.ts";
import type { InboxRow } from "./list-steps.ts";
import { livingTenants } from "./living-tenants.ts";
import { cursorOver } from "./step-cursor.ts";

const value = sql.placeholder;

/** Above every key. */
const noKey = Number.MAX_SAFE_INTEGER;

export function inboxVerbs(connection: Connection): InboxVerbs {
  const { client, db, writer, hold, rowKeys, audit } = connection;
  const ofTenant = eq(inboxDelivery.tenantKey, value("tenantKey"));
  const answerOf = db
    .select({ status: inboxSetting.status, delayMs: inboxSetting.delayMs, silent: inboxSetting.silent })
    .from(inboxSetting)
    .where(eq(inboxSetting.tenantKey, value("tenantKey")))
    .prepare();
  const add = db
    .insert(inboxDelivery)
    .values({
      key: value("key"),
      id: value("id"),
      tenantKey: value("tenantKey"),
      receivedAt: value("receivedAt"),
      eventId: value("eventId"),
      answeredStatus: value("answeredStatus"),
      isTest: value("isTest"),
      headers: value("headers"),
      body: value("body"),
    })
    .prepare();
  const trim = client.prepare(
    `delete from inbox_delivery where tenant_key = ?1 and key <=
       (select key from inbox_delivery where tenant_key = ?1 order by key desc limit 1 offset ?2)`,
  );
  const keyOf = db
    .select({ key: inboxDelivery.key })
    .from(inboxDelivery)
    .where(and(ofTenant, eq(inboxDelivery.id, value("id"))))
    .prepare();
  const between = db
    .select({ key: inboxDelivery.key })
    .from(inboxDelivery)
    .where(and(ofTenant, gt(inboxDelivery.key, value("after")), lt(inboxDelivery.key, value("before"))))
    .orderBy(desc(inboxDelivery.key))
    .limit(value("limit"))
    .prepare();
  const countOf = db.select({ n: count() }).from(inboxDelivery).where(ofTenant).prepare();

  const forTenant = livingTenants({ writer, hold, audit });

  /** A delivery that is no longer there counts as older than all that are. */
  const keyIn = (tenantKey: number, id: string) => keyOf.get({ tenantKey, id })?.key ?? 0;

  return {
    inboxAnswer: async (tenantKey) => answerOf.get({ tenantKey }) ?? null,

    setInboxAnswer: (tenantKey, { status, delayMs, silent }) =>
      forTenant<void>(tenantKey, undefined, () => {
        const set = { status, delayMs, silent };
        db.insert(inboxSetting)
          .values({ tenantKey, ...set })
          .onConflictDoUpdate({ target: inboxSetting.tenantKey, set })
          .run();
      }),

    keepInboxDelivery: (tenantKey, { body, ...rest }, kept) =>
      forTenant<Tenant>(tenantKey, undefined, ({ tenant }) => {
        const key = rowKeys.nextInboxDelivery();
        add.run({ ...rest, key, tenantKey, body: Buffer.from(body.buffer, body.byteOffset, body.byteLength) });
        trim.run(tenantKey, kept);
        return tenant;
      }),

    async inboxDeliveries(tenantKey, { limit, after, before }) {
      const found = between.all({
        tenantKey,
        after: after === undefined ? 0 : keyIn(tenantKey, after),
        before: before === undefined ? noKey : keyIn(tenantKey, before),
        limit,
      });
      const keys = found.map(({ key }) => key);
      const deliveries = cursorOver(
        connection,
        { keys, isNear: true, read: (run, step) => run("inboxDeliveries", { ...step, tenantKey }) },
        toDelivery,
      );
      return { deliveries, total: countOf.get({ tenantKey })?.n ?? 0 };
    },

    emptyInbox: (tenantKey) =>
      forTenant<void>(tenantKey, undefined, () => {
        db.delete(inboxDelivery).where(eq(inboxDelivery.tenantKey, tenantKey)).run();
      }),
  };
}

const toDelivery = ({ headers, isTest, ...row }: InboxRow): ListedDelivery => ({
  ...row,
  headers: JSON.parse(headers),
  isTest: isTest !== 0,
});
