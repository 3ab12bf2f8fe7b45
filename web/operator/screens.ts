import type { ComponentType } from "preact";
import type { IconName } from "../parts/icon.tsx";
import { sells } from "../session/server.ts";
import { AccountsScreen } from "./screens/accounts.tsx";
import { AuditScreen } from "./screens/audit.tsx";
import { BackupsScreen } from "./screens/backups.tsx";
import { OverviewScreen } from "./screens/overview.tsx";
import { PaymentsScreen } from "./screens/payments.tsx";
import { ServersScreen } from "./screens/servers.tsx";
import { SettingsScreen } from "./screens/settings.tsx";

export interface Screen {
  /** In the fragment of the address. */
  readonly id: string;
  readonly name: string;
  readonly icon: IconName;
  readonly Screen: ComponentType;
  /** Whether it has a place in the bar at the bottom of a phone; the others are behind "More". */
  readonly isOnPhone?: true;
  /** @default always */
  readonly isShown?: () => boolean;
}

/** In navigation order; the first is the initial screen. Each has a file of its own. */
export const screens: readonly [Screen, ...Screen[]] = [
  { id: "overview", name: "Overview", icon: "overview", isOnPhone: true, Screen: OverviewScreen },
  { id: "accounts", name: "Accounts", icon: "events", isOnPhone: true, Screen: AccountsScreen },
  { id: "backups", name: "Backups", icon: "inbox", isOnPhone: true, Screen: BackupsScreen },
  { id: "audit", name: "Audit", icon: "docs", Screen: AuditScreen },
  { id: "settings", name: "Settings", icon: "keys", Screen: SettingsScreen },
  { id: "payments", name: "Payments", icon: "plan", Screen: PaymentsScreen, isShown: sells },
  { id: "servers", name: "Servers", icon: "servers", isOnPhone: true, Screen: ServersScreen },
];
