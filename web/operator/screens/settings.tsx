import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Shown } from "../../parts/states.tsx";
import { useLoaded } from "../../stream/load.ts";
import { ask } from "../api/session.ts";
import type { SettingInForce } from "../api/types.ts";
import { Table } from "./table.tsx";

/** The settings that the responding server was started with. Secrets are masked. */
export function SettingsScreen() {
  const loaded = useLoaded("settings", (signal) => ask<{ settings: SettingInForce[] }>("/operator/config", { signal }));
  return (
    <>
      <PageHead title="Settings" />
      <div class="stack">
        <p class="soft">
          As this server was started. To change one, change the environment, a file or a flag, and restart.
        </p>
        <Panel title="In force" isFlush>
          <Shown of={loaded}>
            {({ settings }) => (
              <Table columns={["Setting", "Value", "From"]}>
                {settings.map(({ setting, value, source, by, file, note }) => (
                  <tr key={setting}>
                    <td>
                      <span class="mono">{setting}</span>
                    </td>
                    <td data-name="Value">
                      <span class="mono">{value ?? "–"}</span> {note && <span class="soft">{note}</span>}
                    </td>
                    <td data-name="From">
                      {source === "default" ? <span class="soft">default</span> : (file ?? by ?? source)}
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </Shown>
        </Panel>
      </div>
    </>
  );
}
