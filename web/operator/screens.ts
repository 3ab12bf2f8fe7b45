import type { ComponentType } from "preact";
import type { IconName } from "../parts/icon.tsx";
import { ServersScreen } from "./screens/servers.tsx";

export interface Screen {
  /** In the fragment of the address. */
  readonly id: string;
  readonly name: string;
  readonly icon: IconName;
  readonly Screen: ComponentType;
}

/** In the order of the navigation; the first one is shown at first. Each has a file of its own. */
export const screens: readonly [Screen, ...Screen[]] = [
  { id: "servers", name: "Servers", icon: "servers", Screen: ServersScreen },
];
