import { useEffect, useState } from "preact/hooks";
import { isolated, showControls } from "../../format/controls.ts";
import { count } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Empty, Shown } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { useLoaded } from "../../stream/load.ts";
import { useFragment } from "../api/fragment.ts";
import { ask } from "../api/session.ts";
import type { Account } from "../api/types.ts";
import { AccountScreen } from "./account.tsx";
import { CreateAccount, type Created } from "./create-account.tsx";
import { ShownOnce } from "./once.tsx";
import { Pager } from "./pager.tsx";
import { Standing } from "./standing-badge.tsx";
import { Table } from "./table.tsx";

const perPage = 50;
const typingMs = 250;

/** All accounts, or the one that the address names. */
export function AccountsScreen() {
  const [, id] = useFragment();
  return id === undefined ? <List /> : <AccountScreen key={id} id={id} />;
}

function List() {
  const [typed, setTyped] = useState("");
  const [search, setSearch] = useState({ q: "", page: 0 });
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<Created | null>(null);
  const { q, page } = search;
  const list = useLoaded(`accounts ${q} ${page}`, (signal) =>
    ask<{ tenants: Account[]; total: number }>("/operator/tenants", { signal, query: { q, page, size: perPage } }),
  );
  useEffect(() => {
    const timer = setTimeout(() => setSearch((now) => (now.q === typed ? now : { q: typed, page: 0 })), typingMs);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <>
      <PageHead title="Accounts">
        <div class="end">
          <Button onClick={() => setCreating(true)} aria-haspopup="dialog">
            Create an account …
          </Button>
        </div>
      </PageHead>
      <div class="stack">
        <Field
          label="Find"
          type="search"
          value={typed}
          onType={setTyped}
          placeholder="Part of an id, a name or an e-mail address"
        />
        <Panel title={list.data ? countOf(list.data.total) : "Looking"} isFlush>
          <Shown
            of={list}
            isEmpty={({ tenants }) => tenants.length === 0}
            empty={
              <Empty
                sentence={
                  q === "" ? "There is no account yet." : "No account has this in its id, name or e-mail address."
                }
              />
            }
          >
            {({ tenants, total }) => (
              <>
                <Table columns={["Account", "Tier", "Status", "Created"]}>
                  {tenants.map((account) => (
                    <tr key={account.tenant_id}>
                      <td>
                        <a href={`#accounts/${account.tenant_id}`}>
                          <bdi class="op-name">{showControls(account.tenant_name)}</bdi>
                        </a>{" "}
                        <span class="soft mono">{account.tenant_id}</span>{" "}
                        <bdi class="soft">{showControls(account.email)}</bdi>
                      </td>
                      <td data-name="Tier">{account.tier}</td>
                      <td data-name="Status">
                        <Standing of={account} />
                      </td>
                      <td data-name="Created">
                        <Time at={account.created_at} />
                      </td>
                    </tr>
                  ))}
                </Table>
                <Pager page={page} total={total} perPage={perPage} onTurn={(to) => setSearch({ q, page: to })} />
              </>
            )}
          </Shown>
        </Panel>
      </div>
      {isCreating && (
        <CreateAccount
          onClose={() => setCreating(false)}
          onCreated={(account) => {
            setCreating(false);
            setCreated(account);
            list.reload();
          }}
        />
      )}
      {created && (
        <ShownOnce
          title={`Password of ${isolated(created.name)}`}
          what="password"
          secret={created.password}
          onClose={() => {
            location.hash = `#accounts/${created.tenant_id}`;
          }}
        />
      )}
    </>
  );
}

const countOf = (total: number) => (total === 1 ? "1 account" : `${count(total)} accounts`);
