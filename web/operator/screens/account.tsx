import { useEffect, useState } from "preact/hooks";
import { isolated } from "../../format/controls.ts";
import { bytes, count } from "../../format/number.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Choice } from "../../parts/field.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { say } from "../../parts/said.tsx";
import { Shown } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { type Loaded, useLoaded } from "../../stream/load.ts";
import { ask } from "../api/session.ts";
import type { AccountDetail } from "../api/types.ts";
import { DeleteAccount, ResetPassword, Suspend } from "./account-dialogs.tsx";
import { AuditList } from "./audit-list.tsx";
import { Limits } from "./limits.tsx";
import { ShownOnce } from "./once.tsx";
import { Standing } from "./standing-badge.tsx";
import { tiers } from "./tiers.ts";

/** How long a measurement may go on before the page looks for its result again. */
const measuringMs = 3_000;

type Asked = "suspend" | "password" | "delete" | null;

/** One account: what it has and uses, and everything the operator can do to it. */
export function AccountScreen({ id }: { id: string }) {
  const loaded = useLoaded(`account ${id}`, (signal) => ask<AccountDetail>(`/operator/tenants/${id}`, { signal }));
  useMeasured(loaded);
  const [asked, setAsked] = useState<Asked>(null);
  const [newPassword, setNewPassword] = useState<string | null>(null);
  /** A counter that makes the audit log reload. */
  const [acts, setActs] = useState(0);
  const done = (text: string) => {
    setAsked(null);
    setActs((n) => n + 1);
    say(text);
    loaded.reload();
  };
  return (
    <>
      <PageHead title={isolated(loaded.data?.tenant_name ?? "Account")}>
        <div class="end">
          <LinkButton href="#accounts">All accounts</LinkButton>
        </div>
      </PageHead>
      <Shown of={loaded}>
        {(account) => (
          <div class="stack">
            <Facts of={account} onViewed={() => setActs((n) => n + 1)} />
            <Limits
              key={JSON.stringify(account.limits)}
              of={account}
              onSaved={() => done("The new limits are in effect.")}
            />
            <Panel title="Standing">
              <div class="stack">
                <SetTier of={account} onDone={done} />
                <div class="buttons">
                  {account.suspended_by?.includes("operator") ? (
                    <Button
                      onClick={async () => {
                        await ask(`/operator/tenants/${id}/resume`, { method: "POST" });
                        done("The suspension has ended.");
                      }}
                    >
                      End the suspension
                    </Button>
                  ) : (
                    <Button onClick={() => setAsked("suspend")} aria-haspopup="dialog">
                      Suspend …
                    </Button>
                  )}
                  <Button onClick={() => setAsked("password")} aria-haspopup="dialog">
                    Reset the password …
                  </Button>
                  <Button kind="danger" onClick={() => setAsked("delete")} aria-haspopup="dialog">
                    Delete …
                  </Button>
                </div>
              </div>
            </Panel>
            <Panel title="What was done" isFlush>
              <AuditList key={acts} tenant={id} isShort />
            </Panel>
            {asked === "suspend" && <Suspend of={account} onClose={() => setAsked(null)} onDone={done} />}
            {asked === "password" && (
              <ResetPassword
                of={account}
                onClose={() => setAsked(null)}
                onReset={(password) => {
                  setAsked(null);
                  setNewPassword(password);
                }}
              />
            )}
            {newPassword !== null && (
              <ShownOnce
                title={`New password of ${isolated(account.tenant_name)}`}
                what="password"
                secret={newPassword}
                onClose={() => {
                  setNewPassword(null);
                  done("Every session of it has ended.");
                }}
              />
            )}
            {asked === "delete" && <DeleteAccount of={account} onClose={() => setAsked(null)} />}
          </div>
        )}
      </Shown>
    </>
  );
}

/** Reads again until the account has been measured. */
function useMeasured({ data, error, reload }: Loaded<AccountDetail>): void {
  useEffect(() => {
    // After a failed read, too.
    if (data?.storage_bytes !== null) return;
    const timer = setTimeout(reload, measuringMs);
    return () => clearTimeout(timer);
  }, [data, error, reload]);
}

function Facts({ of: account, onViewed }: { of: AccountDetail; onViewed(): void }) {
  const { quota, inactive, invalid } = account.refused_this_month;
  async function view(): Promise<void> {
    // A window opened after a response arrives would be blocked as a pop-up.
    const tab = open("about:blank", "_blank");
    try {
      const { token } = await ask<{ token: string }>(`/operator/tenants/${account.tenant_id}/view`, { method: "POST" });
      if (tab) tab.location.href = `/#view=${token}`;
      onViewed();
    } catch (error) {
      tab?.close();
      throw error;
    }
  }
  return (
    <Panel title="Account" actions={<Button onClick={view}>View as this account</Button>}>
      <dl class="op-facts">
        <dt>Id</dt>
        <dd>
          <code>{account.tenant_id}</code> <Copy text={account.tenant_id} what="account id" />
        </dd>
        <dt>E-mail address</dt>
        <dd>{isolated(account.email)}</dd>
        <dt>Status</dt>
        <dd>
          <Standing of={account} />
        </dd>
        <dt>Created</dt>
        <dd>
          <Time at={account.created_at} />
        </dd>
        <dt>Events this month</dt>
        <dd>
          {count(account.events_this_month)} of {count(account.max_events_per_month)}; refused: {count(quota)} over the
          quota, {count(inactive)} while inactive, {count(invalid)} invalid
        </dd>
        <dt>Webhooks</dt>
        <dd>
          {count(account.webhooks)} of {count(account.max_webhooks)}
        </dd>
        <dt>Storage</dt>
        <dd>{account.storage_bytes === null ? "being measured" : bytes(account.storage_bytes)}</dd>
      </dl>
    </Panel>
  );
}

function SetTier({ of: account, onDone }: { of: AccountDetail; onDone(text: string): void }) {
  const [tier, setTier] = useState(account.tier);
  const set = async () => {
    await ask(`/operator/tenants/${account.tenant_id}/tier`, { method: "PUT", body: { tier } });
    onDone(`The tier is ${tier} from now on.`);
  };
  return (
    <div class="buttons">
      <Choice label="Tier" options={tiers} value={tier} onChoose={setTier} />
      {tier !== account.tier && <Button onClick={set}>Set the tier to {tier}</Button>}
    </div>
  );
}
