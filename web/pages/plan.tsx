import "./plan/plan.css";
import { useState } from "preact/hooks";
import { PageHead } from "../parts/page.tsx";
import { Shown, Skeleton } from "../parts/states.tsx";
import { sells, useServer } from "../session/server.ts";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { AccountPanel } from "./plan/account-panel.tsx";
import { Activity } from "./plan/activity.tsx";
import { Charges } from "./plan/charges.tsx";
import { Payment } from "./plan/payment.tsx";
import { readPlan } from "./plan/plan-view.ts";
import { Plans } from "./plan/plans.tsx";
import { Standing, usePaymentWatch } from "./plan/standing.tsx";
import { type Upgrade, UpgradeDialog } from "./plan/upgrade-dialog.tsx";
import { Usage } from "./plan/usage.tsx";

/** What the account may use, has used and has to pay; its sign-in, and its deletion. */
export function PlanPage() {
  const view = useLoaded("plan", readPlan);
  const about = useServer();
  const [upgrade, setUpgrade] = useState<Upgrade | null>(null);
  useRefresh(["account.changed"], 300, view.reload);
  useRefresh(["event.accepted"], 5_000, view.reload);
  usePaymentWatch(view);

  return (
    <>
      <PageHead title={sells() ? "Plan" : "Usage"} />
      <Shown
        of={view}
        skeleton={
          <div class="stack">
            <Skeleton width="100%" height="150px" />
            <Skeleton width="100%" height="180px" />
            <Skeleton width="100%" height="120px" />
          </div>
        }
      >
        {(data) => (
          <Shown of={about} skeleton={<Skeleton width="100%" height="150px" />}>
            {(server) => (
              <div class="stack">
                <Standing view={data} plans={server.plans ?? []} />
                <Usage view={data} />
                {server.plans && (
                  <Plans view={data} plans={server.plans} payments={server.payments} onUpgrade={setUpgrade} />
                )}
                {data.billing && (
                  <>
                    <Payment billing={data.billing} />
                    <Charges of={data.billing.charges} />
                  </>
                )}
                <AccountPanel view={data} />
                <Activity />
              </div>
            )}
          </Shown>
        )}
      </Shown>
      {upgrade && <UpgradeDialog upgrade={upgrade} onClose={() => setUpgrade(null)} onDone={view.reload} />}
    </>
  );
}
